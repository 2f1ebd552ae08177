#include "daemon/config/config.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/array.h"
#include "daemon/base/mem.h"
#include "daemon/base/nearest.h"
#include "daemon/config/config_workloads.h"
#include "daemon/config/external.h"
#include "daemon/evidence/catalogue.h"
#include "daemon/evidence/recipe.h"
#include "daemon/jobs/case.h"

struct reader {
    struct config *config;
    const char *file;
    struct err *err;
};

enum kind {
    KIND_LISTEN,
    KIND_TEXT,
    KIND_BOOL,
    KIND_INT,
    KIND_STACKS,
    KIND_HOSTS,
    KIND_PATHS,
    KIND_WORKLOADS
};

/* One row a setting: its key, what it holds, its bounds, where it goes. */
struct setting {
    const char *key;
    enum kind kind;
    int least, most;
    size_t target; /* offset in struct config */
};

#define TARGET(field) offsetof(struct config, field)
static const struct setting settings[] = {
    { "listen", KIND_LISTEN, 0, 0, 0 },
    { "data", KIND_TEXT, 0, 0, TARGET(data) },
    { "survey", KIND_BOOL, 0, 0, TARGET(survey) },
    { "stale_after_hours", KIND_INT, 0, 24 * 365 * 10, TARGET(stale_after_hours) },
    { "connection_limit", KIND_INT, 8, 65536, TARGET(connection_limit) },
    { "grace_ms", KIND_INT, 10, 600000, TARGET(grace_ms) },
    { "stacks", KIND_STACKS, 0, 0, TARGET(stacks) },
    { "hosts", KIND_HOSTS, 0, 0, TARGET(hosts) },
    { "profiles", KIND_PATHS, 0, 0, TARGET(profiles) },
    { "gpu_reports", KIND_PATHS, 0, 0, TARGET(gpu_reports) },
    { "workloads", KIND_WORKLOADS, 0, 0, TARGET(workloads) },
};
enum { SETTING_COUNT = COUNT_OF(settings) };

void config_init(struct config *config)
{
    *config = (struct config){
        .address = xstrdup("127.0.0.1"),
        .port = 7357,
        .data = xstrdup("var"),
        .survey = true,
        .stale_after_hours = 24 * 30,
        .connection_limit = 512,
        .grace_ms = 2000,
        .stacks = json_array(),
        .hosts = json_array(),
        .profiles = json_array(),
        .gpu_reports = json_array(),
        .workloads = json_array(),
    };
}

void config_release(struct config *config)
{
    free(config->address);
    free(config->data);
    json_decref(config->stacks);
    json_decref(config->hosts);
    json_decref(config->profiles);
    json_decref(config->gpu_reports);
    json_decref(config->workloads);
}

enum err_code config_set_listen(struct config *config, const char *text, struct err *err)
{
    const char *colon = strrchr(text, ':');
    const char *digits = colon ? colon + 1 : text;
    size_t length = colon ? (size_t)(colon - text) : 0;
    char *address = colon ? xstrndup(text, length) : xstrdup(config->address);
    unsigned char parsed[sizeof(struct in6_addr)];
    char *end;
    long port = strtol(digits, &end, 10);

    if (length >= 2 && address[0] == '[' && address[length - 1] == ']') {
        memmove(address, address + 1, length - 2);
        address[length - 2] = '\0';
    }
    if (end == digits || *end || port < 0 || port > 65535 ||
        (inet_pton(AF_INET, address, parsed) != 1 &&
         inet_pton(AF_INET6, address, parsed) != 1)) {
        free(address);
        return err_set(
            err, ERR_INVALID,
            "'%s' is not ADDRESS:PORT with a numeric address and a port in 0..65535",
            text);
    }
    free(config->address);
    config->address = address;
    config->port = (int)port;
    return ERR_OK;
}

static enum err_code fail(struct reader *r, const char *pointer, const char *reason)
{
    return err_set(r->err, ERR_INVALID, "%s: /%s: %s", r->file, pointer, reason);
}

static bool is_text(const json_t *value)
{
    return json_is_string(value) && json_string_length(value) > 0 &&
           strlen(json_string_value(value)) == json_string_length(value);
}

static const char *look_up(void *arg, const char *name)
{
    return json_string_value(json_object_get(arg, name));
}

/* Texts only, and no recipe that would not do what it seems to. */
static enum err_code check_env(struct reader *r, size_t index, json_t *env)
{
    struct recipes recipes;
    struct recipe_refusal refusal;
    char pointer[128];
    const char *key;
    json_t *value;

    json_object_foreach(env, key, value)
    {
        if (!json_is_string(value)) {
            snprintf(pointer, sizeof pointer, "stacks/%zu/env/%.64s", index, key);
            return fail(r, pointer, "must be a text");
        }
    }
    if (!recipe_read(look_up, env, &recipes, &refusal)) {
        snprintf(pointer, sizeof pointer, "stacks/%zu/env/%s", index, refusal.variable);
        return fail(r, pointer, refusal.reason);
    }
    return ERR_OK;
}

/* The name of OWNER, which stands at POINTER, is kept whole in SIZE bytes. */
static enum err_code check_name(struct reader *r, const char *pointer,
                                const json_t *owner, size_t size)
{
    char name[80];
    char problem[64];

    if (json_string_length(json_object_get(owner, "name")) < size) {
        return ERR_OK;
    }
    snprintf(name, sizeof name, "%s/name", pointer);
    snprintf(problem, sizeof problem, "has more than %zu bytes", size - 1);
    return fail(r, name, problem);
}

static enum err_code check_stack(struct reader *r, size_t index, json_t *stack)
{
    char pointer[64];
    const char *key;
    json_t *value;

    snprintf(pointer, sizeof pointer, "stacks/%zu", index);
    if (!json_is_object(stack) || !is_text(json_object_get(stack, "name"))) {
        return fail(r, pointer, "must be an object with a name");
    }
    if (check_name(r, pointer, stack, CASE_NAME_SIZE) != ERR_OK) {
        return r->err->code;
    }
    json_object_foreach(stack, key, value)
    {
        bool right = (strcmp(key, "name") == 0 || strcmp(key, "worker") == 0 ||
                      strcmp(key, "library_path") == 0)
                         ? is_text(value)
                     : strcmp(key, "env") == 0 ? json_is_object(value)
                     : strcmp(key, "threads") == 0
                         ? json_is_integer(value) && json_integer_value(value) >= 1 &&
                               json_integer_value(value) <= 256
                         : false;

        if (!right) {
            snprintf(pointer, sizeof pointer, "stacks/%zu/%.32s", index, key);
            return fail(
                r, pointer,
                "expected name, worker, library_path (texts), env (object) or threads "
                "(1..256)");
        }
    }
    if (external_stack_is(json_string_value(json_object_get(stack, "name")))) {
        snprintf(pointer, sizeof pointer, "stacks/%zu/name", index);
        return fail(r, pointer, "is the name of the stack of external workloads");
    }
    return check_env(r, index, json_object_get(stack, "env"));
}

static enum err_code check_host(struct reader *r, size_t index, json_t *host)
{
    char pointer[64];
    json_t *launch = json_object_get(host, "launch");
    size_t i;
    json_t *word;

    snprintf(pointer, sizeof pointer, "hosts/%zu", index);
    if (!json_is_object(host) || !is_text(json_object_get(host, "name")) ||
        json_array_size(launch) < 1 || json_object_size(host) != 2) {
        return fail(r, pointer,
                    "must be {\"name\": text, \"launch\": [program, argument, ...]}");
    }
    json_array_foreach(launch, i, word)
    {
        if (!json_is_string(word)) {
            return fail(r, pointer, "launch must be texts only");
        }
    }
    return check_name(r, pointer, host, CASE_TITLE_SIZE);
}

static enum err_code check_path(struct reader *r, const char *key, size_t index,
                                const json_t *path)
{
    char pointer[64];

    if (!is_text(path)) {
        snprintf(pointer, sizeof pointer, "%s/%zu", key, index);
        return fail(r, pointer, "must be the path of a file");
    }
    return ERR_OK;
}

static enum err_code read_array(struct reader *r, const struct setting *s, json_t *value)
{
    json_t **target = (json_t **)((char *)r->config + s->target);
    size_t i;
    json_t *item;

    if (!json_is_array(value)) {
        return fail(r, s->key, "must be an array");
    }
    json_array_foreach(value, i, item)
    {
        enum err_code code = s->kind == KIND_STACKS  ? check_stack(r, i, item)
                             : s->kind == KIND_HOSTS ? check_host(r, i, item)
                                                     : check_path(r, s->key, i, item);

        if (code != ERR_OK) {
            return code;
        }
    }
    json_decref(*target);
    *target = json_incref(value);
    return ERR_OK;
}

static enum err_code read_int(struct reader *r, const struct setting *s, json_t *value)
{
    json_int_t number = json_integer_value(value);
    char reason[80];

    if (!json_is_integer(value) || number < s->least || number > s->most) {
        snprintf(reason, sizeof reason, "must be a whole number from %d to %d", s->least,
                 s->most);
        return fail(r, s->key, reason);
    }
    *(int *)((char *)r->config + s->target) = (int)number;
    return ERR_OK;
}

static enum err_code read_text(struct reader *r, const struct setting *s, json_t *value)
{
    char **target = (char **)((char *)r->config + s->target);

    if (!is_text(value)) {
        return fail(r, s->key, "must be a text that is not empty");
    }
    free(*target);
    *target = xstrdup(json_string_value(value));
    return ERR_OK;
}

static enum err_code read_setting(struct reader *r, const struct setting *s,
                                  json_t *value)
{
    switch (s->kind) {
    case KIND_LISTEN:
        if (!is_text(value)) {
            return fail(r, s->key, "must be a text, ADDRESS:PORT");
        }
        return config_set_listen(r->config, json_string_value(value), r->err) == ERR_OK
                   ? ERR_OK
                   : err_wrap(r->err, "%s: /%s", r->file, s->key);
    case KIND_TEXT:
        return read_text(r, s, value);
    case KIND_BOOL:
        if (!json_is_boolean(value)) {
            return fail(r, s->key, "must be true or false");
        }
        *(bool *)((char *)r->config + s->target) = json_is_true(value);
        return ERR_OK;
    case KIND_INT:
        return read_int(r, s, value);
    case KIND_STACKS:
    case KIND_HOSTS:
    case KIND_PATHS:
        break;
    case KIND_WORKLOADS:
        return config_read_workloads(r->file, value, &r->config->workloads, r->err);
    }
    return read_array(r, s, value);
}

static enum err_code unknown_key(struct reader *r, const char *key)
{
    const char *keys[SETTING_COUNT];
    const char *nearest;

    for (int i = 0; i < SETTING_COUNT; i++) {
        keys[i] = settings[i].key;
    }
    nearest = nearest_name(key, keys, SETTING_COUNT);
    return err_set(r->err, ERR_INVALID, "%s: /%.64s: no such setting%s%s%s", r->file, key,
                   nearest ? "; did you mean '" : "", nearest ? nearest : "",
                   nearest ? "'?" : "");
}

enum err_code config_read(struct config *config, const char *file, struct err *err)
{
    struct reader r = { config, file, err };
    json_error_t where;
    json_t *json = json_load_file(file, JSON_REJECT_DUPLICATES, &where);
    const char *key;
    json_t *value;

    err->code = ERR_OK;
    if (!json) {
        return where.line < 0 ? err_set(err, ERR_IO, "%s", where.text)
                              : err_set(err, ERR_INVALID, "%s: line %d column %d: %s",
                                        file, where.line, where.column, where.text);
    }
    if (!json_is_object(json)) {
        err_set(err, ERR_INVALID, "%s: must be a JSON object", file);
    }
    json_object_foreach(json, key, value)
    {
        int i = 0;

        while (i < SETTING_COUNT && strcmp(settings[i].key, key) != 0) {
            i++;
        }
        if (i == SETTING_COUNT) {
            unknown_key(&r, key);
        } else {
            read_setting(&r, &settings[i], value);
        }
        if (err->code != ERR_OK) {
            break;
        }
    }
    json_decref(json);
    return err->code;
}
