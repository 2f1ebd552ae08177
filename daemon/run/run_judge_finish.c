/* The second half of run_judge.h: how a run ended, and what its result is. */
#include "daemon/run/run_judge.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"

/* reprod-launch's own: limits, not executable, not there. */
enum { LAUNCH_FAILED_FIRST = 125, LAUNCH_FAILED_LAST = 127 };

__attribute__((format(printf, 3, 4))) static enum outcome
conclude(char *ret_cause, enum outcome outcome, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(ret_cause, RUN_JUDGE_CAUSE_SIZE, format, args);
    va_end(args);
    return outcome;
}

static enum outcome judge_reason(const struct run_judge *judge, enum exit_reason reason,
                                 char *ret_cause)
{
    switch (reason) {
    case EXIT_REASON_TIMEOUT:
        return conclude(ret_cause, OUTCOME_TIMEOUT,
                        "killed at its deadline after %lld of %lld iterations",
                        (long long)judge->seen, (long long)judge->asked);
    case EXIT_REASON_CANCELLED:
        return conclude(ret_cause, OUTCOME_CANCELLED, "cancelled");
    case EXIT_REASON_FLOOD:
        return conclude(ret_cause, OUTCOME_INVALID,
                        "flood: wrote more, or longer lines, than a run may");
    default:
        return conclude(ret_cause, OUTCOME_INFRA,
                        "stuck: its process did not end after SIGKILL; the kernel holds "
                        "it, waiting for a driver or a disk. It may still occupy the "
                        "device, where the next run starts beside it");
    }
}

/* Whether it wrote its events into its log instead. */
static bool said_elsewhere(const struct run_judge *judge, const struct run_exit *exit)
{
    static const char sign[] = "{\"event\":";

    return !judge->started && exit->log &&
           memmem(exit->log, exit->log_length, sign, strlen(sign));
}

/* Of a process that ended by itself. */
static enum outcome judge_exit(const struct run_judge *judge, const struct run_exit *exit,
                               char *ret_cause)
{
    if (exit->signal) {
        return conclude(ret_cause, OUTCOME_CRASHED, "killed by SIG%s (signal %d)",
                        exit_signal_name(exit->signal), exit->signal);
    }
    if (!judge->started && exit->exit_code >= LAUNCH_FAILED_FIRST &&
        exit->exit_code <= LAUNCH_FAILED_LAST) {
        return conclude(ret_cause, OUTCOME_INFRA,
                        "the worker could not be started: exit status %d",
                        exit->exit_code);
    }
    if (judge->deviation[0]) {
        return conclude(ret_cause, OUTCOME_INVALID, "%s", judge->deviation);
    }
    if (!judge->ended) {
        return conclude(ret_cause, OUTCOME_CRASHED,
                        "exit status %d without an end event%s", exit->exit_code,
                        said_elsewhere(judge, exit)
                            ? ": events belong on descriptor 3, not on standard output"
                            : "");
    }
    if (exit->exit_code != 0) {
        return conclude(ret_cause, OUTCOME_INVALID, "exit status %d after the end event",
                        exit->exit_code);
    }
    if (judge->end_outcome == OUTCOME_COMPLETED &&
        run_hashed_too_fast(judge->run.bytes_hashed, exit->wall_ms)) {
        return conclude(ret_cause, OUTCOME_INVALID,
                        "no proof of work: nothing hashes %lld bytes in %.0f ms",
                        (long long)judge->run.bytes_hashed, exit->wall_ms);
    }
    return conclude(ret_cause, judge->end_outcome, "%s", judge->end_cause);
}

static enum outcome decide(const struct run_judge *judge, const struct run_exit *exit,
                           char ret_cause[RUN_JUDGE_CAUSE_SIZE])
{
    return exit->reason == EXIT_REASON_EXITED
               ? judge_exit(judge, exit, ret_cause)
               : judge_reason(judge, exit->reason, ret_cause);
}

/* The result. */

static int compare_digests(const void *a, const void *b)
{
    const struct run_judge_iteration *x = a, *y = b;
    int order = strcmp(x->digest, y->digest);

    return order ? order : (x->index > y->index) - (x->index < y->index);
}

static int compare_ns(const void *a, const void *b)
{
    const struct run_judge_iteration *x = a, *y = b;

    return (x->ns > y->ns) - (x->ns < y->ns);
}

static int compare_first(const void *a, const void *b)
{
    const struct run_digest *x = a, *y = b;

    return (x->first_iteration > y->first_iteration) -
           (x->first_iteration < y->first_iteration);
}

static void count_digests(struct run_judge *judge)
{
    size_t count = (size_t)judge->seen;

    qsort(judge->iterations, count, sizeof *judge->iterations, compare_digests);
    judge->digests = xcalloc(count, sizeof *judge->digests);
    for (size_t i = 0; i < count; i++) {
        const struct run_judge_iteration *it = &judge->iterations[i];

        if (i == 0 || strcmp(it->digest, judge->iterations[i - 1].digest) != 0) {
            struct run_digest *digest = &judge->digests[judge->digest_count++];

            copy_text(digest->digest, sizeof digest->digest, it->digest);
            digest->first_iteration = it->index;
        }
        judge->digests[judge->digest_count - 1].iterations++;
    }
    qsort(judge->digests, (size_t)judge->digest_count, sizeof *judge->digests,
          compare_first);
    judge->run.distinct_digests = judge->digest_count;
    copy_text(judge->run.digest, sizeof judge->run.digest, judge->digests[0].digest);
}

/* Of the iterations after the first: that one loads and compiles what the others find.
 * So a run of one iteration has no times. */
static void take_times(struct run_judge *judge)
{
    struct run_judge_iteration *it = judge->iterations;
    int64_t count = 0;

    for (int64_t i = 0; i < judge->seen; i++) {
        if (it[i].index > 0) {
            it[count++] = it[i];
        }
    }
    if (count == 0) {
        return;
    }
    qsort(it, (size_t)count, sizeof *it, compare_ns);
    judge->run.min_ns = it[0].ns;
    judge->run.max_ns = it[count - 1].ns;
    judge->run.median_ns = (it[(count - 1) / 2].ns + it[count / 2].ns) / 2;
}

/* Whether the run failed while it compared: its own work was done. */
static bool was_cut_off(const struct run_judge *judge, enum outcome outcome)
{
    return judge->checks && judge->checking && judge->run.check.state == CHECK_NONE &&
           judge->seen == judge->asked &&
           (outcome == OUTCOME_CRASHED || outcome == OUTCOME_TIMEOUT ||
            outcome == OUTCOME_OUT_OF_MEMORY);
}

static void say_cut_off(struct run_judge *judge)
{
    char *cause = judge->run.cause;
    char *whole = xasprintf("while it compared with the float64 reference: %s", cause);

    copy_text(cause, sizeof judge->run.cause, whole);
    free(whole);
    judge->run.check = (struct run_check){ .state = CHECK_CUT_OFF };
}

void run_judge_finish(struct run_judge *judge, const struct run_exit *exit,
                      struct run_record *ret_run, struct run_result *ret_result)
{
    enum outcome outcome = decide(judge, exit, judge->run.cause);

    judge->run.outcome = outcome;
    judge->run.finished = true;
    judge->run.iterations = judge->seen;
    judge->run.wall_ns = (int64_t)(exit->wall_ms * 1e6);
    judge->run.max_rss_kb = exit->max_rss_kb;
    judge->log = xcalloc(exit->log_length + 1, 1);
    if (exit->log_length) {
        memcpy(judge->log, exit->log, exit->log_length);
    }
    /* What only a completed run may say: anything else shows nothing. */
    if (outcome == OUTCOME_COMPLETED) {
        count_digests(judge);
        take_times(judge);
    } else {
        judge->run.weight_sum[0] = judge->run.loss[0] = '\0';
        judge->run.elements = judge->run.bytes_hashed = 0;
        if (was_cut_off(judge, outcome)) {
            say_cut_off(judge);
        } else {
            judge->run.check = (struct run_check){ .state = CHECK_NONE };
        }
    }
    *ret_run = judge->run;
    *ret_result = (struct run_result){ .run = ret_run,
                                       .digests = judge->digests,
                                       .digest_count = judge->digest_count,
                                       .environment_json = judge->environment,
                                       .environment_title = judge->environment_title,
                                       .libraries_json = judge->libraries,
                                       .telemetry_start = judge->telemetry_start,
                                       .telemetry_end = judge->telemetry_end,
                                       .trace = judge->trace.count ? &judge->trace : NULL,
                                       .tensors = judge->tensors.items,
                                       .tensor_count = judge->tensors.count,
                                       .log = judge->log,
                                       .log_length = (int64_t)exit->log_length,
                                       .log_bytes = exit->log_bytes };
}
