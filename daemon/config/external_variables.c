#include <ctype.h>
#include <string.h>

#include "daemon/base/array.h"
#include "daemon/config/external.h"
#include "daemon/evidence/recipe.h"

/* Caller frees with json_decref. */
static json_t *recipe_object(const char *recipe)
{
    const struct recipe_setting *setting = recipe ? recipe_setting(recipe) : NULL;
    json_t *object = json_object();

    for (int i = 0; setting && setting->variables[i].name; i++) {
        json_object_set_new(object, setting->variables[i].name,
                            json_string(setting->variables[i].value));
    }
    return object;
}

json_t *external_variant_variables(const json_t *variant)
{
    json_t *all = recipe_object(json_string_value(json_object_get(variant, "recipe")));

    json_object_update(all, json_object_get(variant, "environment"));
    return all;
}

bool external_varies_variable(const json_t *workload, const char *name)
{
    size_t i;
    json_t *variant;

    json_array_foreach(json_object_get(workload, "variants"), i, variant)
    {
        json_t *variables = external_variant_variables(variant);
        bool there = json_object_get(variables, name) != NULL;

        json_decref(variables);
        if (there) {
            return true;
        }
    }
    return strcmp(name, "PYTHONHASHSEED") == 0;
}

static bool is_variable(const char *name)
{
    if (!isalpha((unsigned char)*name) && *name != '_') {
        return false;
    }
    while (isalnum((unsigned char)*name) || *name == '_') {
        name++;
    }
    return *name == '\0';
}

/* What a run is asked for with, or is told. */
static bool is_request(const char *name)
{
    static const char prefix[] = "REPROD_";
    static const char *const names[] = {
        "RESULT_FD",    "WORKLOAD",      "VERSION",
        "VARIANT",      "SIZE",          "DTYPE",
        "SEED",         "ITERATIONS",    "DEVICE",
        "BACKEND",      "MODEL",         "THREADS",
        "RECIPE",       "PROBES",        "PROBE_NAMES",
        "PROBE_STEPS",  "CAPTURE",       "CONTENTION",
        "WORKER_BUILD", "MEMORY_POISON", "ALLOCATION_JITTER",
    };

    if (strncmp(name, prefix, strlen(prefix)) != 0) {
        return false;
    }
    for (int i = 0; i < COUNT_OF(names); i++) {
        if (strcmp(name + strlen(prefix), names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Python does not start with anything else. */
static bool is_hash_seed(const char *text)
{
    size_t digits = strspn(text, "0123456789");

    return strcmp(text, "random") == 0 ||
           (text[digits] == '\0' && digits > 0 &&
            (digits < 10 || (digits == 10 && strcmp(text, "4294967295") <= 0)));
}

/* ":SIZE:COUNT", once or more; cuBLAS ignores anything else without a word. */
static bool is_cublas_workspace(const char *text)
{
    int numbers = 0;

    while (*text == ':') {
        size_t digits = strspn(++text, "0123456789");

        numbers += digits > 0;
        text += digits;
    }
    return *text == '\0' && numbers > 0 && numbers % 2 == 0;
}

static enum err_code check_variable(const char *name, const json_t *value,
                                    struct err *err)
{
    const char *text = json_string_value(value);

    if (!is_variable(name)) {
        return err_set(err, ERR_INVALID, "'%.64s' is no name of a variable", name);
    }
    if (!text && !json_is_null(value)) {
        return err_set(err, ERR_INVALID, "%.64s must be a text, or null for not set",
                       name);
    }
    if (is_request(name)) {
        return err_set(err, ERR_INVALID,
                       "%s is not for the configuration: the agent sets it, or leaves it",
                       name);
    }
    if (text && strcmp(name, "PYTHONHASHSEED") == 0 && !is_hash_seed(text)) {
        return err_set(err, ERR_INVALID,
                       "%s must be random or a number up to 4294967295: Python does not "
                       "start otherwise",
                       name);
    }
    if (text && strcmp(name, "CUBLAS_WORKSPACE_CONFIG") == 0 &&
        !is_cublas_workspace(text)) {
        return err_set(err, ERR_INVALID,
                       "%s must be like :4096:8: cuBLAS ignores anything else", name);
    }
    return ERR_OK;
}

static const char *look_up(void *arg, const char *name)
{
    return json_string_value(json_object_get(arg, name));
}

enum err_code external_check_variables(const json_t *variables, struct err *err)
{
    struct recipes recipes;
    struct recipe_refusal refusal;
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)variables, name, value)
    {
        if (check_variable(name, value, err) != ERR_OK) {
            return err->code;
        }
    }
    if (!recipe_read(look_up, (void *)variables, &recipes, &refusal)) {
        return err_set(err, ERR_INVALID, "%s: %s", refusal.variable, refusal.reason);
    }
    return ERR_OK;
}
