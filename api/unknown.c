#include "api/unknown.h"

#include "api/http/request.h"
#include "daemon/base/choices.h"
#include "daemon/base/nearest.h"
#include "daemon/evidence/profile.h"
#include "db/fleet.h"

enum { TABLES_MAX = 32, ENVIRONMENTS_MAX = 1000 };

static void add_environment(void *arg, const struct environment *e)
{
    choices_add(arg, e->id);
}

static enum err_code hint_environment(struct tx *tx, const char *id,
                                      char ret_hint[NEAREST_HINT_SIZE], struct err *err)
{
    struct choices known = { .count = 0 };
    enum err_code code =
        environments_each(tx, 0, 0, ENVIRONMENTS_MAX, add_environment, &known, err);

    choices_hint(&known, id, ret_hint);
    choices_release(&known);
    return code;
}

enum err_code unknown_environment_parameter(struct tx *tx, struct request *r,
                                            const char *parameter, const char *id,
                                            struct err *err)
{
    char hint[NEAREST_HINT_SIZE];
    enum err_code code = hint_environment(tx, id, hint, err);

    problems_add_parameter(&r->problems, PROBLEM_UNKNOWN_ENVIRONMENT, parameter,
                           "there is no environment '%s'%s; see /v1/environments", id,
                           hint);
    return code;
}

enum err_code unknown_environment(struct tx *tx, const char *id, struct err *err)
{
    char hint[NEAREST_HINT_SIZE];
    enum err_code code = hint_environment(tx, id, hint, err);

    return code == ERR_OK ? err_set(err, ERR_NOT_FOUND,
                                    "there is no environment '%.64s'%s", id, hint)
                          : code;
}

static void add_device(void *arg, const struct device *device)
{
    choices_add(arg, device->id);
}

static void add_host(void *arg, const struct host *host)
{
    choices_add(arg, host->name);
}

/* NOUN 'NAME' is none of KNOWN, which was read with CODE and is released. */
static enum err_code none_of(struct choices *known, enum err_code code, const char *noun,
                             const char *name, struct err *err)
{
    char hint[NEAREST_HINT_SIZE];

    if (code == ERR_OK) {
        code = err_set(err, ERR_NOT_FOUND, "there is no %s '%.64s'%s", noun, name,
                       choices_hint(known, name, hint));
    }
    choices_release(known);
    return code;
}

enum err_code unknown_device(struct tx *tx, const char *id, struct err *err)
{
    struct choices known = { .count = 0 };

    return none_of(&known, devices_each(tx, add_device, &known, err), "device", id, err);
}

enum err_code unknown_host(struct tx *tx, const char *name, struct err *err)
{
    struct choices known = { .count = 0 };

    return none_of(&known, hosts_each(tx, add_host, &known, err), "host", name, err);
}

const struct profile_table *param_table(struct request *r,
                                        const struct profile_set *profiles)
{
    const char *id = request_parameter(r, "table");
    const struct profile_table *table =
        id ? profile_set_find(profiles, id) : profile_set_at(profiles, 0);
    const char *ids[TABLES_MAX];
    int count = profile_set_count(profiles);
    const char *near;

    if (table) {
        return table;
    }
    count = count < TABLES_MAX ? count : TABLES_MAX;
    for (int i = 0; i < count; i++) {
        ids[i] = profile_set_at(profiles, i)->id;
    }
    near = nearest_name(id, ids, count);
    problems_add_parameter(&r->problems, PROBLEM_UNKNOWN_TABLE, "table",
                           "there is no table '%.64s'; did you mean '%s'?", id,
                           near ? near : ids[0]);
    return NULL;
}
