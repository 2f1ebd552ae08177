/* What sinfo and squeue say: as nodes and as jobs, whole and byte by byte. */
#include <string.h>

#include "daemon/base/buf.h"
#include "daemon/engine/elements.h"
#include "daemon/engine/slurm_read.h"
#include "daemon/engine/slurm_words.h"
#include "tests/fuzz/fuzz.h"

static json_t *parsed(struct buf *seen, const char *text, size_t length)
{
    FUZZ_CHECK(length >= 2 && text[0] == '{' && text[length - 1] == '}');
    buf_add(seen, text, length);
    return json_loadb(text, length, 0, NULL);
}

/* A node is used only in states that are known, one of them at least. */
static void check_node(void *arg, const struct slurm_node *node)
{
    char held[SLURM_CAUSE_SIZE];

    (void)arg;
    slurm_node_held(node, false, held);
    FUZZ_CHECK(held[0] || strstr(node->state, "IDLE") || strstr(node->state, "MIXED") ||
               strstr(node->state, "ALLOCATED"));
    FUZZ_CHECK(held[0] ||
               (!strstr(node->state, "DRAIN") && !strstr(node->state, "DOWN+")));
}

static void check_job(const json_t *json)
{
    char cause[SLURM_CAUSE_SIZE], waits[SLURM_CAUSE_SIZE];
    struct slurm_job job;

    slurm_job_read(json, &job);
    slurm_job_cause(&job, cause);
    slurm_job_waits(&job, waits);
    FUZZ_CHECK(job.preempted >= 0 && waits[0]);
    FUZZ_CHECK(!cause[0] || slurm_job_phase(&job) == SLURM_ENDED);
}

static void take(void *arg, const char *text, size_t length)
{
    json_t *json = parsed(arg, text, length);

    slurm_nodes_read(json, check_node, NULL);
    check_job(json);
    json_decref(json);
}

static void take_error(void *arg, const char *text, size_t length)
{
    json_t *json = parsed(arg, text, length);
    char said[SLURM_TEXT_SIZE];

    slurm_error_read(json, said);
    FUZZ_CHECK(said[0]);
    json_decref(json);
}

static bool feed(const char *key, const char *text, size_t size, size_t piece,
                 struct buf *seen)
{
    struct elements elements = { .arrays = { { key, true, take },
                                             { "errors", false, take_error },
                                             { "sinfo", true, take } },
                                 .arg = seen };
    bool whole;

    for (size_t i = 0; i < size; i += piece) {
        elements_feed(&elements, text + i, size - i < piece ? size - i : piece);
    }
    whole = elements_whole(&elements);
    elements_release(&elements);
    return whole;
}

static void run(const uint8_t *data, size_t size)
{
    static const char *const keys[] = { "nodes", "jobs" };
    char *text = fuzz_text(data, size);

    for (int i = 0; i < 2; i++) {
        struct buf at_once = BUF_INIT, in_pieces = BUF_INIT;

        FUZZ_CHECK(feed(keys[i], text, size, size + 1, &at_once) ==
                   feed(keys[i], text, size, 1, &in_pieces));
        FUZZ_CHECK(at_once.length == in_pieces.length);
        FUZZ_CHECK(!at_once.length ||
                   memcmp(at_once.data, in_pieces.data, at_once.length) == 0);
        buf_release(&at_once);
        buf_release(&in_pieces);
    }
    free(text);
}

FUZZ_TARGET("slurm", run);
