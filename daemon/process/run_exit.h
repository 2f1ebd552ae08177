/* How the process of a run ended, as the agent saw it. */
#ifndef DAEMON_PROCESS_RUN_EXIT_H
#define DAEMON_PROCESS_RUN_EXIT_H

#include <stddef.h>
#include <stdint.h>

#define EXIT_REASON_MAP(X)                                                               \
    X(EXIT_REASON_EXITED, "exited")       /* by itself: exit status or signal */         \
    X(EXIT_REASON_TIMEOUT, "timeout")     /* killed at its deadline */                   \
    X(EXIT_REASON_CANCELLED, "cancelled") /* killed on request */                        \
    X(EXIT_REASON_FLOOD, "flood")         /* killed: wrote more than a run may */        \
    X(EXIT_REASON_STUCK, "stuck")         /* still there after SIGKILL */

enum exit_reason {
#define X(reason, name) reason,
    EXIT_REASON_MAP(X)
#undef X
};

const char *exit_reason_name(enum exit_reason reason);

/* Returns 0, or -1 if NAME is not a reason. */
int exit_reason_parse(const char *name, enum exit_reason *ret_reason);

/* "KILL" for SIGKILL; "?" for a signal that has no name, such as a real-time one. */
const char *exit_signal_name(int number);

struct run_exit {
    int exit_code; /* -1: none, a signal ended it or it is stuck */
    int signal;    /* 0: none */
    enum exit_reason reason;
    double wall_ms;
    int64_t max_rss_kb;
    const char *log;   /* tail of stdout and stderr; borrowed */
    size_t log_length; /* bytes kept */
    int64_t log_bytes; /* bytes written */
};

#endif
