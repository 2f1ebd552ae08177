#include "daemon/config/engine.h"

const char *const engine_names[] = { "slurm", NULL };

static const struct in_member a_word = { .kind = IN_TEXT };

/* srun has the last word on what these may be. */
#define OPTION(name)                                                                     \
    {                                                                                    \
        (name), IN_TEXT, .flags = IN_OPTIONAL, .least = 1, .most = 1000                  \
    }

static const struct in_member slurm_members[] = {
    OPTION("node"),
    OPTION("partition"),
    OPTION("qos"),
    OPTION("account"),
    OPTION("constraint"),
    OPTION("gres"),
    OPTION("reservation"),
    OPTION("time"),
    { "exclusive", IN_BOOL, .flags = IN_OPTIONAL },
    { "arguments", IN_ARRAY, .flags = IN_OPTIONAL, .item = &a_word },
};
const struct in_shape engine_slurm_shape = IN_SHAPE(slurm_members, "slurm has no member");

enum err_code engine_check(const json_t *entry, const char *where, struct err *err)
{
    bool engine = json_object_get(entry, "engine") != NULL;
    bool launch = json_object_get(entry, "launch") != NULL;
    bool agent = json_object_get(entry, "agent") != NULL;

    if (!engine && !launch) {
        return err_set(err, ERR_INVALID, "%s/launch: is missing", where);
    }
    if (engine && launch) {
        return err_set(err, ERR_INVALID, "%s/launch: its engine makes it", where);
    }
    if (engine && !agent) {
        return err_set(err, ERR_INVALID,
                       "%s/agent: is missing: the command of the agent on the node",
                       where);
    }
    if (!engine && (agent || json_object_get(entry, "slurm"))) {
        return err_set(err, ERR_INVALID, "%s/%s: belongs to an engine, and there is none",
                       where, agent ? "agent" : "slurm");
    }
    return ERR_OK;
}
