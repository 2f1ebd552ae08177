/* What a fleet tells an engine (daemon/fleet/fleet_engine.h).  Loop thread only. */
#ifndef DAEMON_FLEET_FLEET_HOOKS_H
#define DAEMON_FLEET_FLEET_HOOKS_H

#include <jansson.h>
#include <stdbool.h>

enum { FLEET_EXPLAIN_MS = 15000 };

struct fleet_engine {
    void *arg;
    /* The launch command of a host of the configuration that has an engine: an array of
     * words (new reference).  Such hosts are held from the start, until fleet_unhold. */
    json_t *(*launch)(void *arg, const json_t *host);
    /* The launch command of HOST was started.  NULL is fine. */
    void (*started)(void *arg, const char *host);
    /* The agent of HOST ended because of CAUSE, or could not be started; it was not let
     * go.  RUNS of its devices are lost with it.  True: fleet_explain will say more; what
     * is lost is recorded then, or after FLEET_EXPLAIN_MS.  NULL: nobody will. */
    bool (*ended)(void *arg, const char *host, const char *cause, int runs);
    /* The agent of HOST is let go: there is nothing to do, or it is held.  NULL is fine.
     */
    void (*released)(void *arg, const char *host);
    /* What is shown of HOST there (new reference); NULL: nothing.  Asked again after
     * fleet_heard.  NULL is fine. */
    json_t *(*node)(void *arg, const char *host);
};

#endif
