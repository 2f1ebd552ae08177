#include "api/matrix_choice.h"

#include <jansson.h>
#include <string.h>

#include "api/http/params.h"
#include "daemon/base/choices.h"
#include "daemon/base/mem.h"
#include "daemon/base/nearest.h"
#include "daemon/evidence/catalogue.h"
#include "db/fleet.h"
#include "db/names.h"

enum { TABLES_MAX = 32, ENVIRONMENTS_MAX = 1000 };

const struct profile_table *matrix_choice_table(struct request *r,
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

void matrix_choice_read(struct request *r, int64_t now_ms,
                        struct matrix_choice *ret_choice)
{
    const struct device_stack *devices;
    int count;

    *ret_choice = (struct matrix_choice){ .as_of_ms = param_time(r, "as_of") };
    param_text(r, "environment", ret_choice->environment, sizeof ret_choice->environment);
    param_text(r, "device", ret_choice->device, sizeof ret_choice->device);
    count = r->api->hooks.devices(r->api->hooks.arg, &devices);
    matrix_subject_find(devices, count, ret_choice->device, &ret_choice->subject);
    if (ret_choice->environment[0] && ret_choice->device[0]) {
        problems_add_parameter(&r->problems, PROBLEM_INVALID_PARAMETER, "device",
                               "give either 'environment' or 'device', not both");
    }
    if (ret_choice->as_of_ms > now_ms) {
        problems_add_parameter(&r->problems, PROBLEM_INVALID_PARAMETER, "as_of",
                               "lies in the future");
    }
}

/* Looks for a device, then for the environments of its kind. */
struct search {
    const char *id;
    bool found;
    char backend[CASE_NAME_SIZE], model[CASE_TITLE_SIZE];
    char environment[DIGEST_TEXT_SIZE];
};

static void match_device(void *arg, const struct device *device)
{
    struct search *s = arg;

    if (strcmp(device->id, s->id) == 0) {
        s->found = true;
        copy_text(s->backend, sizeof s->backend, device->backend);
        copy_text(s->model, sizeof s->model, device->model);
    }
}

static void match_environment(void *arg, const struct environment *e)
{
    struct search *s = arg;
    json_t *facts;
    const char *backend;
    const char *model;

    if (s->environment[0]) {
        return;
    }
    facts = json_loads(e->json, 0, NULL);
    backend = json_string_value(json_object_get(facts, "backend"));
    model = json_string_value(json_object_get(facts, "model"));
    if (backend && model && strcmp(backend, s->backend) == 0 &&
        strcmp(model, s->model) == 0) {
        copy_text(s->environment, sizeof s->environment, e->id);
    }
    json_decref(facts);
}

static void add_name(void *arg, const char *name)
{
    choices_add(arg, name);
}

static enum err_code refuse_device(struct tx *tx, const char *device,
                                   struct problems *problems, struct err *err)
{
    struct choices known = { .count = 0 };
    enum err_code code = names_each(tx, NAME_DEVICE, "", add_name, &known, err);

    if (code == ERR_OK) {
        char hint[NEAREST_HINT_SIZE];

        problems_add_parameter(problems, PROBLEM_UNKNOWN_DEVICE, "device",
                               "there is no device '%.100s'%s; see /v1/devices", device,
                               choices_hint(&known, device, hint));
        code = err_set(err, ERR_NOT_FOUND, "no device %s", device);
    }
    choices_release(&known);
    return code;
}

/* The environment last used on the kind of CHOICE's device. */
static enum err_code find_by_device(struct tx *tx, const struct matrix_choice *choice,
                                    struct problems *problems,
                                    char ret_id[DIGEST_TEXT_SIZE], struct err *err)
{
    struct search s = { .id = choice->device };

    if (devices_each(tx, match_device, &s, err) != ERR_OK) {
        return err->code;
    }
    if (!s.found) {
        return refuse_device(tx, choice->device, problems, err);
    }
    if (environments_each(tx, 0, 0, ENVIRONMENTS_MAX, match_environment, &s, err) !=
        ERR_OK) {
        return err->code;
    }
    memcpy(ret_id, s.environment, sizeof s.environment);
    return s.environment[0]
               ? ERR_OK
               : err_set(err, ERR_NOT_FOUND, "nothing was run on %s", choice->device);
}

enum err_code matrix_choice_environment(struct tx *tx, const struct matrix_choice *choice,
                                        struct problems *problems,
                                        char ret_id[DIGEST_TEXT_SIZE], struct err *err)
{
    copy_text(ret_id, DIGEST_TEXT_SIZE, choice->environment);
    if (!ret_id[0] &&
        matrix_subject_environment(tx, &choice->subject, ret_id, err) != ERR_OK) {
        return err->code;
    }
    return !ret_id[0] && choice->device[0]
               ? find_by_device(tx, choice, problems, ret_id, err)
               : ERR_OK;
}
