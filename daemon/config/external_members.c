#include "daemon/config/external_members.h"

#include <string.h>

#include "daemon/base/array.h"
#include "daemon/base/nearest.h"
#include "daemon/config/external.h"
#include "daemon/evidence/catalogue.h"
#include "daemon/evidence/recipe.h"
#include "daemon/jobs/case.h"

enum { WORDS_MAX = 256, TIMEOUT_SECONDS_MAX = 86400, THREADS_MAX = 256 };
static const char *const backends[] = { "cpu", "cuda" };

/* What a member may hold.  Each check sets the reason alone. */
typedef enum err_code check_fn(json_t *value, struct err *err);

struct member {
    const char *key;
    check_fn *check;
    const char *fallback; /* as JSON; NULL: must be there */
};

static enum err_code refuse(struct err *err, const char *reason)
{
    return err_set(err, ERR_INVALID, "%s", reason);
}

static bool is_text(const json_t *value)
{
    return json_is_string(value) && json_string_length(value) > 0 &&
           strlen(json_string_value(value)) == json_string_length(value);
}

static enum err_code check_name(json_t *value, struct err *err)
{
    const char *name = json_string_value(value);

    if (!is_text(value) || *name < 'a' || *name > 'z' || strlen(name) >= CASE_NAME_SIZE ||
        name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")]) {
        return err_set(err, ERR_INVALID,
                       "must be a name, [a-z][a-z0-9_]* of at most %d characters",
                       CASE_NAME_SIZE - 1);
    }
    return ERR_OK;
}

static enum err_code check_text(json_t *value, struct err *err)
{
    return is_text(value) ? ERR_OK : refuse(err, "must be a text that is not empty");
}

static enum err_code check_text_or_null(json_t *value, struct err *err)
{
    return json_is_null(value) || is_text(value)
               ? ERR_OK
               : refuse(err, "must be a text that is not empty, or null");
}

static enum err_code check_bool(json_t *value, struct err *err)
{
    return json_is_boolean(value) ? ERR_OK : refuse(err, "must be true or false");
}

static enum err_code check_number(const json_t *value, int most, struct err *err)
{
    return json_is_integer(value) && json_integer_value(value) >= 1 &&
                   json_integer_value(value) <= most
               ? ERR_OK
               : err_set(err, ERR_INVALID, "must be a whole number from 1 to %d", most);
}

static enum err_code check_version(json_t *value, struct err *err)
{
    return check_number(value, 1000000, err);
}

static enum err_code check_timeout(json_t *value, struct err *err)
{
    return check_number(value, TIMEOUT_SECONDS_MAX, err);
}

static enum err_code check_threads(json_t *value, struct err *err)
{
    return json_is_null(value) ? ERR_OK : check_number(value, THREADS_MAX, err);
}

/* KIND '…'; did you mean '…'? */
static enum err_code unknown(struct err *err, const char *kind, const char *name,
                             const char *const *names, int count)
{
    const char *nearest = nearest_name(name, names, count);

    return err_set(err, ERR_INVALID, "%s '%.64s'%s%s%s", kind, name,
                   nearest ? "; did you mean '" : "", nearest ? nearest : "",
                   nearest ? "'?" : "");
}

static enum err_code check_backend(json_t *value, struct err *err)
{
    const char *name = json_string_value(value);

    if (!name) {
        return refuse(err, "must be cpu or cuda");
    }
    return strcmp(name, "cpu") == 0 || strcmp(name, "cuda") == 0
               ? ERR_OK
               : unknown(err, "there is no backend", name, backends, 2);
}

static enum err_code check_recipe(json_t *value, struct err *err)
{
    const char *name = json_string_value(value);
    const char *names[32];
    int count;
    const struct recipe_setting *settings = recipe_settings(&count);

    if (json_is_null(value)) {
        return ERR_OK;
    }
    if (!name) {
        return refuse(err, "must be the name of a recipe, or null");
    }
    for (int i = 0; i < count; i++) {
        names[i] = settings[i].recipe;
    }
    return recipe_setting(name) ? ERR_OK
                                : unknown(err, "there is no recipe", name, names, count);
}

static enum err_code check_words(json_t *value, struct err *err)
{
    size_t i;
    json_t *word;

    if (!json_is_array(value) || json_array_size(value) > WORDS_MAX) {
        return err_set(err, ERR_INVALID, "must be an array of at most %d texts",
                       WORDS_MAX);
    }
    json_array_foreach(value, i, word)
    {
        if (!json_is_string(word) ||
            strlen(json_string_value(word)) != json_string_length(word)) {
            return err_set(err, ERR_INVALID, "element %zu must be a text", i);
        }
    }
    return ERR_OK;
}

static enum err_code check_command(json_t *value, struct err *err)
{
    if (check_words(value, err) != ERR_OK) {
        return err->code;
    }
    return is_text(json_array_get(value, 0))
               ? ERR_OK
               : refuse(err, "must be [program, argument, …]");
}

static enum err_code check_variables(json_t *value, struct err *err)
{
    return json_is_object(value) ? external_check_variables(value, err)
                                 : refuse(err, "must be an object");
}

static enum err_code check_names(json_t *value, struct err *err)
{
    size_t count = json_array_size(value);
    size_t i;
    json_t *name;

    if (count < 1 || count > EXTERNAL_CHOICES_MAX) {
        return err_set(err, ERR_INVALID, "must be an array of 1 to %d names",
                       EXTERNAL_CHOICES_MAX);
    }
    json_array_foreach(value, i, name)
    {
        if (check_name(name, err) != ERR_OK) {
            return err_wrap(err, "element %zu", i);
        }
        for (size_t j = 0; j < i; j++) {
            if (json_equal(name, json_array_get(value, j))) {
                return err_set(err, ERR_INVALID, "'%s' is listed twice",
                               json_string_value(name));
            }
        }
    }
    return ERR_OK;
}

static enum err_code check_sizes(json_t *value, struct err *err)
{
    const char *key;
    json_t *words;

    if (!json_is_object(value) || json_object_size(value) < 1 ||
        json_object_size(value) > EXTERNAL_CHOICES_MAX) {
        return err_set(err, ERR_INVALID,
                       "must be an object of 1 to %d sizes, each with its arguments",
                       EXTERNAL_CHOICES_MAX);
    }
    json_object_foreach(value, key, words)
    {
        json_t *name = json_string(key);
        enum err_code code = check_name(name, err);

        json_decref(name);
        if (code != ERR_OK || check_words(words, err) != ERR_OK) {
            return err_wrap(err, "size '%.64s'", key);
        }
    }
    return ERR_OK;
}

static enum err_code check_anything(json_t *value, struct err *err)
{
    (void)value;
    (void)err;
    return ERR_OK;
}

static const struct member workload_members[] = {
    { "name", check_name, NULL },
    { "command", check_command, NULL },
    { "variants", check_anything, NULL }, /* after the others */
    { "version", check_version, "1" },
    { "title", check_text_or_null, "null" },
    { "summary", check_text, "\"a command of the configuration\"" },
    { "backend", check_backend, "\"cpu\"" },
    { "directory", check_text_or_null, "null" },
    { "files", check_words, "[]" },
    { "environment", check_variables, "{}" },
    { "sizes", check_sizes, "{\"small\":[]}" },
    { "dtypes", check_names, "[\"float32\"]" },
    { "threads", check_threads, "null" },
    { "no_control", check_text_or_null, "null" },
    { "weight_sum", check_text, "\"as the command defines it\"" },
    { "loss", check_text_or_null, "null" },
    { "timeout_seconds", check_timeout, "600" },
    { "survey", check_bool, "false" },
};

static const struct member variant_members[] = {
    { "name", check_name, NULL },
    { "summary", check_text_or_null, "null" },
    { "control", check_bool, "false" },
    { "recipe", check_recipe, "null" },
    { "environment", check_variables, "{}" },
    { "arguments", check_words, "[]" },
};

static enum err_code check_keys(const json_t *object, const char *what, const char *where,
                                const struct member *members, int count, struct err *err)
{
    const char *keys[32];
    const char *key;
    json_t *value;

    for (int i = 0; i < count; i++) {
        keys[i] = members[i].key;
    }
    json_object_foreach((json_t *)object, key, value)
    {
        int i = 0;

        while (i < count && strcmp(keys[i], key) != 0) {
            i++;
        }
        if (i == count) {
            unknown(err, what, key, keys, count);
            return err_wrap(err, "%s/%.64s", where, key);
        }
    }
    return ERR_OK;
}

/* Checks every member of OBJECT and adds those that are missing. */
static enum err_code complete(json_t *object, const char *what, const char *where,
                              const struct member *members, int count, struct err *err)
{
    if (!json_is_object(object)) {
        refuse(err, "must be an object");
        return err_wrap(err, "%s", where);
    }
    if (check_keys(object, what, where, members, count, err) != ERR_OK) {
        return err->code;
    }
    for (int i = 0; i < count; i++) {
        const struct member *m = &members[i];
        json_t *value = json_object_get(object, m->key);

        if (!value && m->fallback) {
            json_object_set_new(object, m->key,
                                json_loads(m->fallback, JSON_DECODE_ANY, NULL));
        } else if (!value || m->check(value, err) != ERR_OK) {
            if (!value) {
                refuse(err, "is missing");
            }
            return err_wrap(err, "%s/%s", where, m->key);
        }
    }
    return ERR_OK;
}

enum err_code external_complete_workload(json_t *workload, const char *where,
                                         struct err *err)
{
    return complete(workload, "a workload has no member", where, workload_members,
                    COUNT_OF(workload_members), err);
}

enum err_code external_complete_variant(json_t *variant, const char *where,
                                        struct err *err)
{
    return complete(variant, "a variant has no member", where, variant_members,
                    COUNT_OF(variant_members), err);
}
