/* Forkers: workers that have imported a framework, and fork a process for each run.
 *
 * To import a framework takes seconds, most operations take milliseconds.  A forker is
 * started as a run would be, with --fork instead of --run, and is asked for one run after
 * another on its standard input.  Each run is a process of its own that has computed
 * nothing before; what it shares with the other runs of the forker is what was there
 * after the import: the layout of the memory, the seed of hashes.  So no forker forks the
 * same case twice, and the runs of a case never share an import.
 *
 * Its lines are those of the run that it has forked last, and, once that ended,
 *     {"event":"forked_exited","nonce":"…","exit_code":0,"signal":null,"max_rss_kb":81234}
 * (workloads/PROTOCOL.md).  Where the forker itself ends, its run ends as the forker did.
 */
#ifndef DAEMON_AGENT_FORKERS_H
#define DAEMON_AGENT_FORKERS_H

#include <jansson.h>

#include "daemon/agent/supervise.h"

struct forker;

/* Embedded; zero-initialised, but for the supervisor, which is borrowed. */
struct forkers {
    struct supervisor *supervisor;
    struct forker *first; /* the one used last */
};

/* All is borrowed for the call. */
struct forker_run {
    struct supervise process; /* how a forker is started that can fork the run */
    const char *key;          /* forkers of the same key can fork the same runs */
    const char *device;       /* of which but a few may wait at a time */
    const char *what;         /* the case: no forker forks the same twice */
    const json_t *request;    /* what the forker is asked, with the run's nonce */
};

/* Has a forker fork the run, one that is there or a new one.  As supervisor_start: EVENTS
 * is borrowed for ever, and `finished` is called once.  Until then the process is the
 * forker's: its id is that of the leader of the run's session, and what ends it ends the
 * run. */
enum err_code forkers_run(struct forkers *forkers, const struct forker_run *run,
                          const struct supervised_events *events, void *arg,
                          struct supervised **ret_supervised, struct err *err);

#endif
