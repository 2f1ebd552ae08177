#include "daemon/stopping.h"

#include "daemon/base/log.h"
#include "daemon/engine/slurm.h"

enum { FINISH_PATIENCE_MS = 10000, DRAIN_PATIENCE_MS = 10000 };

static void enter(struct stopping *s, enum stopping_stage stage, int64_t deadline_ms)
{
    s->stage = stage;
    s->deadline_ms = deadline_ms;
}

void stopping_request(struct stopping *s, int64_t now)
{
    int busy = runner_busy(s->runner);

    if (s->stage == STOPPING_NOT) {
        runner_stop(s->runner);
        if (busy > 0) {
            log_info("stopping: %d run%s in flight may finish; a second signal cancels",
                     busy, busy == 1 ? "" : "s");
        }
        enter(s, STOPPING_FINISHING, now + FINISH_PATIENCE_MS);
    } else if (s->stage == STOPPING_FINISHING) {
        s->deadline_ms = now;
    }
}

static void jobs_are_gone(void *arg)
{
    struct stopping *s = arg;

    s->agents_gone = true;
}

static void agents_are_gone(void *arg)
{
    struct stopping *s = arg;

    slurm_close(s->slurm, jobs_are_gone, s);
}

static void pulls_are_gone(void *arg)
{
    struct stopping *s = arg;

    s->pulls_gone = true;
}

static void drain(struct stopping *s, int64_t now)
{
    enter(s, STOPPING_DRAINING, now + DRAIN_PATIENCE_MS);
    api_quiesce(s->api);
    fleet_close(s->fleet, agents_are_gone, s);
    peers_close(s->peers, pulls_are_gone, s);
}

bool stopping_advance(struct stopping *s, int64_t now)
{
    bool late = now >= s->deadline_ms;
    bool busy = runner_busy(s->runner) > 0;

    if (s->stage == STOPPING_FINISHING && busy && late) {
        runner_cancel_all(s->runner, "the service stopped");
        enter(s, STOPPING_CANCELLING, now + 3 * s->grace_ms + 1000);
    } else if ((s->stage == STOPPING_FINISHING && !busy) ||
               (s->stage == STOPPING_CANCELLING && (!busy || late))) {
        drain(s, now);
    } else if (s->stage == STOPPING_DRAINING && s->agents_gone && s->pulls_gone &&
               ((store_pending(s->store) == 0 && api_idle(s->api)) || late)) {
        s->stage = STOPPING_DONE;
    }
    return s->stage == STOPPING_DONE;
}
