/* The lines that a worker, ours or anyone's, writes about its run, and those of its agent
 * that tell several iterations.  The first byte is how
 * many bytes are read at a time. */
#include <string.h>

#include "daemon/process/wire.h"
#include "daemon/run/run_judge.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/store.h"

enum { ITERATIONS = 2 };

static int take_line(void *arg, const char *text, size_t length)
{
    struct run_judge *judge = arg;
    struct err err;
    json_t *event = wire_parse(text, length, &err);

    if (event && json_is_array(json_object_get(event, "ms"))) {
        run_judge_iterations(judge, event); /* as an agent says them */
        json_decref(event);
    } else if (event) {
        run_judge_event(judge, event);
        json_decref(event);
    } else {
        run_judge_garbage(judge, err.message);
    }
    return 0;
}

static void feed(struct run_judge *judge, const uint8_t *data, size_t size)
{
    size_t step = size ? data[0] + 1U : 1;
    struct wire_lines lines;
    int rc = 0;

    wire_lines_init(&lines, WIRE_LINE_MAX);
    for (size_t at = 1; at < size && rc == 0; at += step) {
        size_t left = size - at;

        rc = wire_lines_feed(&lines, (const char *)data + at, left < step ? left : step,
                             take_line, judge);
    }
    if (rc != 0 || wire_lines_rest(&lines)) {
        run_judge_garbage(judge, "the last line is incomplete");
    }
    wire_lines_release(&lines);
}

/* Completed is earned: by all its iterations, with their digests, on its device. */
static void check_completed(const struct run_record *run, const struct run_result *result)
{
    int64_t iterations = 0;

    for (int i = 0; i < result->digest_count; i++) {
        iterations += result->digests[i].iterations;
    }
    FUZZ_CHECK(run->iterations == ITERATIONS && iterations == ITERATIONS);
    FUZZ_CHECK(result->digest_count == run->distinct_digests);
    FUZZ_CHECK(strlen(run->digest) == DIGEST_TEXT_SIZE - 1);
    FUZZ_CHECK(run->elements > 0 && run->bytes_hashed > 0);
    FUZZ_CHECK(strcmp(run->device_read_back, "cpu:a") == 0);
    FUZZ_CHECK(result->environment_json);
    FUZZ_CHECK(run->check.state != CHECK_PASSED || run->check.share_ppm <= 1000000);
}

/* Whatever a worker wrote, its run can be ended: the runner would try for ever. */
static void check_stored(const struct case_key *key, struct run_record *run,
                         struct run_result *result)
{
    struct err err = { .message = "" };
    enum err_code code = fuzz_store_result(key, run, result, &err);

    if (code != ERR_OK) {
        fprintf(stderr, "%s: %s\n", outcome_name(run->outcome), err.message);
    }
    FUZZ_CHECK(code == ERR_OK);
}

static void run(const uint8_t *data, size_t size)
{
    static const struct case_key key = { "wgrad", 2, "ordered", "small", "float32", 7 };
    static const struct run_exit exit = { .reason = EXIT_REASON_EXITED, .wall_ms = 1 };
    const struct run_options options = { .probes = size ? data[0] % 2 : 0 };
    struct run_judge judge;
    struct run_result result;
    struct run_record folded;

    run_judge_init(&judge, &key, "cpu:a", ITERATIONS);
    run_judge_options(&judge, &options);
    if (size && data[0] & 2) {
        run_judge_asks_check(&judge,
                             data[0] & 4 ? "00112233445566778899aabbccddeeff" : "");
    }
    feed(&judge, data, size);
    run_judge_finish(&judge, &exit, &folded, &result);
    if (folded.outcome == OUTCOME_COMPLETED) {
        check_completed(&folded, &result);
    }
    check_stored(&key, &folded, &result);
    run_judge_release(&judge);
}

FUZZ_TARGET("run_events", run);
