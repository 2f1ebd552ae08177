#include "daemon/jobs/peer_run.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"

static const char *const refusals[] = {
    [PEER_MALFORMED] = "malformed",         [PEER_DAMAGED] = "damaged",
    [PEER_NO_PROOF] = "no_proof",           [PEER_TOO_LONG] = "too_long",
    [PEER_OTHER_RUN] = "other_run",         [PEER_OTHER_ITEM] = "other_item",
    [PEER_OTHER_CASE] = "other_case",       [PEER_OTHER_STATE] = "other_state",
    [PEER_CONTRADICTORY] = "contradictory",
};

const char *peer_refusal_name(enum peer_refusal refusal)
{
    return refusals[refusal];
}

void peer_run_release(struct peer_run *run)
{
    free(run->digests);
    free(run->attributes);
    free(run->environment);
    free(run->environment_title);
}

void peer_page_release(struct peer_page *page)
{
    for (int i = 0; i < page->count; i++) {
        peer_run_release(&page->runs[i]);
    }
    free(page->runs);
    *page = (struct peer_page){ .count = 0 };
}

void peer_run_refuse(struct peer_run *run, enum peer_refusal refusal, const char *format,
                     ...)
{
    va_list args;

    if (run->refusal == PEER_TAKEN) {
        run->refusal = refusal;
        va_start(args, format);
        vsnprintf(run->words, sizeof run->words, format, args);
        va_end(args);
    }
}

/* Proof */

__attribute__((format(printf, 2, 3))) static bool deny(struct peer_run *run,
                                                       const char *format, ...)
{
    char words[PEER_WORDS_SIZE];
    va_list args;

    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    peer_run_refuse(run, PEER_NO_PROOF, "%s", words);
    return false;
}

static bool shows(const struct peer_run *run, const char *digest)
{
    for (int i = 0; i < run->digest_count; i++) {
        if (strcmp(run->digests[i].digest, digest) == 0) {
            return true;
        }
    }
    return false;
}

/* They are in the order of their first iterations, and each is another one. */
static bool prove_digests(struct peer_run *run)
{
    int64_t iterations = 0, last = -1;

    for (int i = 0; i < run->digest_count; i++) {
        const struct run_digest *digest = &run->digests[i];

        if (strspn(digest->digest, "0") == strlen(digest->digest)) {
            return deny(run, "a digest of zeros");
        }
        if (digest->first_iteration <= last ||
            digest->first_iteration >= run->run.iterations) {
            return deny(run, "the digests are not in the order of their iterations");
        }
        for (int other = 0; other < i; other++) {
            if (strcmp(run->digests[other].digest, digest->digest) == 0) {
                return deny(run, "a digest is listed twice");
            }
        }
        last = digest->first_iteration;
        iterations += digest->iterations;
    }
    if (run->digest_count == 0 || run->digests[0].first_iteration != 0 ||
        iterations != run->run.iterations) {
        return deny(run,
                    "%d digests of %" PRId64 " iterations, and %" PRId64 " were done",
                    run->digest_count, iterations, run->run.iterations);
    }
    return true;
}

static bool prove_work(struct peer_run *run)
{
    const struct run_record *r = &run->run;

    if (r->iterations != run->asked || r->iterations < 1) {
        return deny(run, "%" PRId64 " of %" PRId64 " iterations", r->iterations,
                    run->asked);
    }
    if (r->elements <= 0 || r->bytes_hashed <= 0 ||
        r->elements > r->bytes_hashed / r->iterations) {
        return deny(run,
                    "%" PRId64 " elements, %" PRId64 " bytes hashed in %" PRId64
                    " iterations",
                    r->elements, r->bytes_hashed, r->iterations);
    }
    if (run_hashed_too_fast(r->bytes_hashed, (double)r->wall_ns / 1e6)) {
        return deny(run, "nothing hashes %" PRId64 " bytes in %" PRId64 " ms",
                    r->bytes_hashed, r->wall_ns / 1000000);
    }
    if (strcmp(r->device_read_back, r->device) != 0) {
        return deny(run, "its device is '%.80s', '%.80s' was asked for",
                    r->device_read_back, r->device);
    }
    if (!r->input_digest[0] || !r->weight_sum[0] || !run->environment) {
        return deny(run,
                    "without a digest of its inputs, a weight sum or an environment");
    }
    if (r->min_ns < 0 || r->median_ns < r->min_ns || r->max_ns < r->median_ns) {
        return deny(run, "its times contradict each other");
    }
    return true;
}

static bool prove_check(struct peer_run *run)
{
    const struct run_check *check = &run->run.check;
    bool compared = check->state == CHECK_PASSED || check->state == CHECK_FAILED;

    if (check->state == CHECK_CUT_OFF || check->state == CHECK_KNOWN) {
        return deny(run, "it completed, and its check did not end");
    }
    if (compared && !shows(run, check->digest)) {
        return deny(run, "what was checked has a digest that no iteration has");
    }
    return check->state != CHECK_PASSED ||
           (check->share_ppm >= 0 && check->share_ppm <= 1000000) ||
           deny(run, "its check passed beyond its bound");
}

static bool was_drawn(const char *asked, const char *taken)
{
    return !asked[0] == !taken[0] &&
           (strcmp(asked, "random") == 0 || strcmp(asked, taken) == 0);
}

/* A run counts among those that had the same options: it must have had them. */
static bool prove_circumstances(struct peer_run *run)
{
    struct run_options options;
    struct run_circumstances taken;
    const struct run_circumstances *asked = &options.circumstances;

    return (run_options_read(run->options, &options) &&
            run_circumstances_read(run->run.circumstances, &taken) &&
            asked->contention == taken.contention &&
            asked->shared_import == taken.shared_import &&
            was_drawn(asked->memory_poison, taken.memory_poison) &&
            was_drawn(asked->allocation_jitter, taken.allocation_jitter)) ||
           deny(run, "it computed under other circumstances than it was asked for");
}

bool peer_run_prove(struct peer_run *run)
{
    return prove_work(run) && prove_digests(run) && prove_check(run) &&
           prove_circumstances(run);
}

/* Names */

bool peer_device_is_unique(const char *id)
{
    static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";

    if (strncmp(id, "GPU-", 4) != 0 && strncmp(id, "MIG-", 4) != 0) {
        return false;
    }
    id += 4;
    for (const char *c = form; *c; c++, id++) {
        if (*c == '-' ? *id != '-' : !*id || !strchr("0123456789abcdefABCDEF", *id)) {
            return false;
        }
    }
    return *id == '\0';
}

static bool put_before(struct peer_run *run, const char *before, const char *peer,
                       char between, char *name, size_t size)
{
    char *whole = xasprintf("%s%s%c%s", before, peer, between, name + strlen(before));
    bool fits = strlen(whole) < size;

    if (fits) {
        copy_text(name, size, whole);
    } else {
        peer_run_refuse(run, PEER_TOO_LONG, "'%.200s' has more than %zu bytes", whole,
                        size - 1);
    }
    free(whole);
    return fits;
}

static bool is_external(const char *stack)
{
    return strcmp(stack, "external") == 0 || strncmp(stack, "external-", 9) == 0;
}

static bool qualify_device(struct peer_run *run, const char *peer, char *id, size_t size)
{
    return !id[0] || peer_device_is_unique(id) ||
           put_before(run, strncmp(id, "cpu:", 4) == 0 ? "cpu:" : "", peer, '/', id,
                      size);
}

/* Whoever could open no device says so (daemon/run/run_judge.h). */
static bool qualify_read_back(struct peer_run *run, const char *peer)
{
    struct run_record *r = &run->run;

    return strcmp(r->device_read_back, "unknown") == 0 ||
           qualify_device(run, peer, r->device_read_back, sizeof r->device_read_back);
}

/* The stack of a command stays: its name says that it has no reference, and its workload
 * is qualified.  Behind a slash in a stack's name a workload is looked for (db/fleet.h).
 */
bool peer_run_qualify(struct peer_run *run, const char *peer)
{
    struct run_record *r = &run->run;

    return qualify_device(run, peer, r->device, sizeof r->device) &&
           qualify_read_back(run, peer) &&
           qualify_device(run, peer, run->device.id, sizeof run->device.id) &&
           put_before(run, "", peer, '/', run->device.host, sizeof run->device.host) &&
           (is_external(r->stack)
                ? put_before(run, "", peer, '/', r->key.workload, sizeof r->key.workload)
                : put_before(run, "", peer, ':', r->stack, sizeof r->stack));
}
