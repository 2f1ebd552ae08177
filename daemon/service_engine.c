/* What the service has for hosts that an engine starts: between the fleet and Slurm. */
#include "daemon/engine/slurm.h"
#include "daemon/engine/slurm_launch.h"
#include "daemon/fleet/fleet_engine.h"
#include "daemon/service.h"

static json_t *make_launch(void *arg, const json_t *host)
{
    const struct service *s = arg;

    return slurm_launch(host, s->slurm_name);
}

static void agent_started(void *arg, const char *host)
{
    const struct service *s = arg;

    slurm_started(s->slurm, host);
}

static bool agent_ended(void *arg, const char *host, const char *cause, int runs)
{
    const struct service *s = arg;

    (void)cause;
    (void)runs;
    return slurm_ask(s->slurm, host);
}

static void agent_released(void *arg, const char *host)
{
    const struct service *s = arg;

    slurm_let_go(s->slurm, host);
}

static void hold(void *arg, const char *host, const char *cause, bool leave)
{
    const struct service *s = arg;

    if (cause) {
        fleet_hold(s->fleet, host, cause, leave);
    } else {
        fleet_unhold(s->fleet, host);
    }
}

static void tell_waiting(void *arg, const char *host, const char *words)
{
    const struct service *s = arg;

    fleet_note(s->fleet, host, words);
}

static void explain(void *arg, const char *host, const char *cause)
{
    const struct service *s = arg;

    fleet_explain(s->fleet, host, cause);
}

static bool has_agent(void *arg, const char *host)
{
    const struct service *s = arg;

    return fleet_has_agent(s->fleet, host);
}

static void heard(void *arg)
{
    const struct service *s = arg;

    fleet_heard(s->fleet);
}

/* The fleet starts its first hosts before the engine is there. */
static json_t *node(void *arg, const char *host)
{
    const struct service *s = arg;

    return slurm_json(s->slurm, host);
}

struct fleet_engine service_engine(struct service *s)
{
    s->slurm_name = slurm_name(s->config.data);
    return (struct fleet_engine){ .arg = s,
                                  .launch = make_launch,
                                  .started = agent_started,
                                  .ended = agent_ended,
                                  .released = agent_released,
                                  .node = node };
}

void service_open_engine(struct service *s)
{
    const struct slurm_hooks hooks = { .arg = s,
                                       .hold = hold,
                                       .waits = tell_waiting,
                                       .ended = explain,
                                       .has_agent = has_agent,
                                       .heard = heard };

    if (!s->reads_only) {
        s->slurm = slurm_new(&s->loop, s->config.hosts, s->slurm_name,
                             (int64_t)s->config.slurm.every_seconds * 1000, &hooks);
        fleet_heard(s->fleet);
    }
}
