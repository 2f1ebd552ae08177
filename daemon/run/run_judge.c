#include "daemon/run/run_judge.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* reprod-launch's own: limits, not executable, not there. */
enum { LAUNCH_FAILED_FIRST = 125, LAUNCH_FAILED_LAST = 127 };

__attribute__((format(printf, 3, 4))) static enum outcome
conclude(char *ret_cause, enum outcome outcome, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(ret_cause, RUN_FOLD_CAUSE_SIZE, format, args);
    va_end(args);
    return outcome;
}

static enum outcome judge_reason(const struct run_fold *fold, enum exit_reason reason,
                                 char *ret_cause)
{
    switch (reason) {
    case EXIT_REASON_TIMEOUT:
        return conclude(ret_cause, OUTCOME_TIMEOUT,
                        "killed at its deadline after %lld of %lld iterations",
                        (long long)fold->seen, (long long)fold->asked);
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
static bool said_elsewhere(const struct run_fold *fold, const struct run_exit *exit)
{
    static const char sign[] = "{\"event\":";

    return !fold->started && exit->log &&
           memmem(exit->log, exit->log_length, sign, strlen(sign));
}

/* Of a process that ended by itself. */
static enum outcome judge_exit(const struct run_fold *fold, const struct run_exit *exit,
                               char *ret_cause)
{
    if (exit->signal) {
        return conclude(ret_cause, OUTCOME_CRASHED, "killed by SIG%s (signal %d)",
                        exit_signal_name(exit->signal), exit->signal);
    }
    if (!fold->started && exit->exit_code >= LAUNCH_FAILED_FIRST &&
        exit->exit_code <= LAUNCH_FAILED_LAST) {
        return conclude(ret_cause, OUTCOME_INFRA,
                        "the worker could not be started: exit status %d",
                        exit->exit_code);
    }
    if (fold->deviation[0]) {
        return conclude(ret_cause, OUTCOME_INVALID, "%s", fold->deviation);
    }
    if (!fold->ended) {
        return conclude(ret_cause, OUTCOME_CRASHED,
                        "exit status %d without an end event%s", exit->exit_code,
                        said_elsewhere(fold, exit)
                            ? ": events belong on descriptor 3, not on standard output"
                            : "");
    }
    if (exit->exit_code != 0) {
        return conclude(ret_cause, OUTCOME_INVALID, "exit status %d after the end event",
                        exit->exit_code);
    }
    return conclude(ret_cause, fold->end_outcome, "%s", fold->end_cause);
}

enum outcome run_judge(const struct run_fold *fold, const struct run_exit *exit,
                       char ret_cause[RUN_FOLD_CAUSE_SIZE])
{
    return exit->reason == EXIT_REASON_EXITED
               ? judge_exit(fold, exit, ret_cause)
               : judge_reason(fold, exit->reason, ret_cause);
}
