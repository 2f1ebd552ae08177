#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/run/run_fold.h"
#include "daemon/run/run_judge.h"

static int compare_digests(const void *a, const void *b)
{
    const struct run_fold_iteration *x = a, *y = b;
    int order = strcmp(x->digest, y->digest);

    return order ? order : (x->index > y->index) - (x->index < y->index);
}

static int compare_ns(const void *a, const void *b)
{
    const struct run_fold_iteration *x = a, *y = b;

    return (x->ns > y->ns) - (x->ns < y->ns);
}

static int compare_first(const void *a, const void *b)
{
    const struct run_digest *x = a, *y = b;

    return (x->first_iteration > y->first_iteration) -
           (x->first_iteration < y->first_iteration);
}

static void count_digests(struct run_fold *fold)
{
    size_t count = (size_t)fold->seen;

    qsort(fold->iterations, count, sizeof *fold->iterations, compare_digests);
    fold->digests = xcalloc(count, sizeof *fold->digests);
    for (size_t i = 0; i < count; i++) {
        const struct run_fold_iteration *it = &fold->iterations[i];

        if (i == 0 || strcmp(it->digest, fold->iterations[i - 1].digest) != 0) {
            struct run_digest *digest = &fold->digests[fold->digest_count++];

            copy_text(digest->digest, sizeof digest->digest, it->digest);
            digest->first_iteration = it->index;
        }
        fold->digests[fold->digest_count - 1].iterations++;
    }
    qsort(fold->digests, (size_t)fold->digest_count, sizeof *fold->digests,
          compare_first);
    fold->run.distinct_digests = fold->digest_count;
    copy_text(fold->run.digest, sizeof fold->run.digest, fold->digests[0].digest);
}

static void take_times(struct run_fold *fold)
{
    const struct run_fold_iteration *it = fold->iterations;
    int64_t count = fold->seen;

    qsort(fold->iterations, (size_t)count, sizeof *fold->iterations, compare_ns);
    fold->run.min_ns = it[0].ns;
    fold->run.max_ns = it[count - 1].ns;
    fold->run.median_ns = (it[(count - 1) / 2].ns + it[count / 2].ns) / 2;
}

void run_fold_finish(struct run_fold *fold, const struct run_exit *exit,
                     struct run_record *ret_run, struct run_result *ret_result)
{
    enum outcome outcome = run_judge(fold, exit, fold->run.cause);

    fold->run.outcome = outcome;
    fold->run.finished = true;
    fold->run.iterations = fold->seen;
    fold->run.wall_ns = (int64_t)(exit->wall_ms * 1e6);
    fold->run.max_rss_kb = exit->max_rss_kb;
    fold->log = xcalloc(exit->log_length + 1, 1);
    if (exit->log_length) {
        memcpy(fold->log, exit->log, exit->log_length);
    }
    /* What only a completed run may say: anything else shows nothing. */
    if (outcome == OUTCOME_COMPLETED) {
        count_digests(fold);
        take_times(fold);
    } else {
        fold->run.weight_sum[0] = fold->run.loss[0] = '\0';
        fold->run.elements = fold->run.bytes_hashed = 0;
    }
    *ret_run = fold->run;
    *ret_result = (struct run_result){ .run = ret_run,
                                       .digests = fold->digests,
                                       .digest_count = fold->digest_count,
                                       .environment_json = fold->environment,
                                       .environment_title = fold->environment_title,
                                       .libraries_json = fold->libraries,
                                       .telemetry_start = fold->telemetry_start,
                                       .telemetry_end = fold->telemetry_end,
                                       .trace = fold->trace.count ? &fold->trace : NULL,
                                       .tensors = fold->tensors.items,
                                       .tensor_count = fold->tensors.count,
                                       .log = fold->log,
                                       .log_length = (int64_t)exit->log_length,
                                       .log_bytes = exit->log_bytes };
}

void run_fold_release(struct run_fold *fold)
{
    free(fold->iterations);
    free(fold->environment);
    free(fold->environment_title);
    free(fold->libraries);
    free(fold->telemetry_start);
    free(fold->telemetry_end);
    free(fold->log);
    free(fold->digests);
    trace_release(&fold->trace);
    run_tensors_release(&fold->tensors);
    memset(fold, 0, sizeof *fold);
}
