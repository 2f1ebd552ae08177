/* Work with a deadline that holds whatever the work does: it is done in a child, which
 * says how far it is, and what came of it so far.  A driver that does not answer stops
 * the child, and not this process. */
#ifndef DAEMON_CLIENT_PREFLIGHT_WATCH_H
#define DAEMON_CLIENT_PREFLIGHT_WATCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"

enum { PHASE_SIZE = 300 };

struct watched {
    json_t *report;         /* the last that was sent, caller releases; NULL: none */
    char phase[PHASE_SIZE]; /* the last that was sent */
    bool ended;             /* the work did, before the deadline */
};

/* WORK in a new folder in TMPDIR; it sends over FD. */
typedef void watch_fn(void *arg, const char *folder, int fd);

/* Returns when WORK(ARG) has ended, or UNTIL_MS (of clock_monotonic_ms) has come, or this
 * process is sent SIGTERM, SIGINT or SIGHUP.  What was started is ended then, and, where
 * that takes long, left: this takes two seconds at most.  The folder is removed.  ERR_IO:
 * there is no folder, or no process. */
enum err_code watch_run(watch_fn *work, void *arg, int64_t until_ms,
                        struct watched *ret_watched, struct err *err);

/* For the work. */
void watch_phase(int fd, const char *phase);
void watch_report(int fd, const json_t *report);

#endif
