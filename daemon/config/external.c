#include "daemon/config/external.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"
#include "daemon/base/nearest.h"
#include "daemon/evidence/recipe.h"
#include "daemon/evidence/subject.h"
#include "daemon/evidence/verdict.h"
#include "daemon/jobs/case.h"
#include "daemon/jobs/options.h"

enum {
    CHOICES_MAX = 64,
    WORDS_MAX = 256,
    TIMEOUT_SECONDS_MAX = 86400,
    THREADS_MAX = 256,
    RECIPES_MAX = 32,
    VERSION_MAX = 1000000
};

static const char *const stacks[] = { "external", "external-cuda" };
static const char *const backends[] = { "cpu", "cuda", NULL };
/* Models are reprod's own code. */
static const char *const subjects[] = { "library", "framework", NULL };

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
    json_t *all = recipe_object(in_text(variant, "recipe"));

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

/* What the agent tells a run: the request, or the conditions. */
static bool is_of_the_agent(const char *name)
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

/* ":SIZE:COUNT", once or more; cuBLAS silently ignores anything else. */
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

static void check_variable(struct in_reader *r, const char *name, const char *text)
{
    if (!is_variable(name)) {
        in_refuse(r, name, "is not the name of a variable");
    } else if (is_of_the_agent(name)) {
        in_refuse(r, name, "cannot be configured: the agent sets it or leaves it unset");
    } else if (text && strcmp(name, "PYTHONHASHSEED") == 0 && !is_hash_seed(text)) {
        in_refuse(r, name,
                  "must be random or a number up to 4294967295: Python does not start "
                  "otherwise");
    } else if (text && strcmp(name, "CUBLAS_WORKSPACE_CONFIG") == 0 &&
               !is_cublas_workspace(text)) {
        in_refuse(r, name, "must be like :4096:8: cuBLAS ignores anything else");
    }
}

static const char *look_up(void *arg, const char *name)
{
    return in_text(arg, name);
}

/* Refuses names that are no variables, variables that the agent sets itself, and recipes
 * that would not do what they seem to (daemon/evidence/recipe.h). */
static void check_environment(struct in_reader *r, const json_t *variables)
{
    struct recipes recipes;
    struct recipe_refusal refusal;
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)variables, name, value)
    {
        check_variable(r, name, json_string_value(value));
    }
    if (!recipe_read(look_up, (void *)variables, &recipes, &refusal)) {
        in_refuse(r, refusal.variable, "%s", refusal.reason);
    }
}

static bool is_name(const char *name)
{
    return *name >= 'a' && *name <= 'z' && strlen(name) < CASE_NAME_SIZE &&
           !name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")];
}

#define NAME_WANTED "must be a name, [a-z][a-z0-9_]* of at most 63 characters"
_Static_assert(CASE_NAME_SIZE == 64, "NAME_WANTED has that number");

static void check_name(struct in_reader *r, const json_t *value)
{
    if (!is_name(json_string_value(value))) {
        in_refuse(r, NULL, NAME_WANTED);
    }
}

static void check_recipe(struct in_reader *r, const json_t *value)
{
    const char *name = json_string_value(value);
    const char *names[RECIPES_MAX];
    char hint[NEAREST_HINT_SIZE];
    int count;
    const struct recipe_setting *settings = recipe_settings(&count);

    for (int i = 0; i < count; i++) {
        names[i] = settings[i].recipe;
    }
    if (!recipe_setting(name)) {
        in_refuse(r, NULL, "there is no recipe '%.64s'%s", name,
                  nearest_hint(name, names, count, hint));
    }
}

static void check_command(struct in_reader *r, const json_t *words)
{
    if (json_string_length(json_array_get(words, 0)) == 0) {
        in_refuse(r, "0", "must be the name of a program");
    }
}

static const char *name_of(const json_t *item)
{
    return json_is_object(item) ? in_text(item, "name") : json_string_value(item);
}

/* LIST: of names, or of objects that have one. */
static void check_unique(struct in_reader *r, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = name_of(json_array_get(list, i));

        for (size_t j = 0; name && j < i; j++) {
            const char *other = name_of(json_array_get(list, j));

            if (other && strcmp(name, other) == 0) {
                char index[24];

                snprintf(index, sizeof index, "%zu", i);
                in_refuse(r, index, "'%s' is listed twice", name);
                break;
            }
        }
    }
}

static void check_size_names(struct in_reader *r, const json_t *sizes)
{
    const char *name;
    json_t *words;

    json_object_foreach((json_t *)sizes, name, words)
    {
        if (!is_name(name)) {
            in_refuse(r, name, NAME_WANTED);
        }
    }
}

static const struct in_member a_word = { .kind = IN_TEXT };
static const struct in_member a_name = { .kind = IN_TEXT,
                                         .wanted = NAME_WANTED,
                                         .check = check_name };
static const struct in_member a_value = {
    .kind = IN_TEXT,
    .flags = IN_NULLABLE,
    .wanted = "must be a text, or null for not set",
};
/* A command imports nothing for others. */
static const char *const circumstances_of_commands[] = { "allocation_jitter",
                                                         "contention", "memory_poison",
                                                         NULL };
static const struct in_member a_circumstance = { .kind = IN_TEXT,
                                                 .names = circumstances_of_commands };
static const struct in_member a_size = { .kind = IN_ARRAY,
                                         .most = WORDS_MAX,
                                         .item = &a_word };

/* What concerns several members is checked in external_complete. */
static const struct in_member variant_members[] = {
    { "name", IN_TEXT, .wanted = NAME_WANTED, .check = check_name },
    { "summary", IN_TEXT, .flags = IN_NULLABLE, .least = 1, .fallback = "null" },
    { "control", IN_BOOL, .fallback = "false" },
    { "kind", IN_TEXT, .flags = IN_NULLABLE, .names = control_kinds, .fallback = "null" },
    { "recipe", IN_TEXT, .flags = IN_NULLABLE, .check = check_recipe,
      .wanted = "must be the name of a recipe, or null", .fallback = "null" },
    { "environment", IN_OBJECT, .item = &a_value, .check = check_environment,
      .fallback = "{}" },
    { "arguments", IN_ARRAY, .most = WORDS_MAX, .item = &a_word, .fallback = "[]" },
};
static const struct in_shape variant_shape =
    IN_SHAPE(variant_members, "a variant has no member");
static const struct in_member a_variant = { .kind = IN_OBJECT, .shape = &variant_shape };

static const struct in_member workload_members[] = {
    { "name", IN_TEXT, .wanted = NAME_WANTED, .check = check_name },
    { "command", IN_ARRAY, .least = 1, .most = WORDS_MAX, .item = &a_word,
      .wanted = "must be an array, [program, argument, …], of at most 256",
      .check = check_command },
    { "variants", IN_ARRAY, .least = 1, .most = CHOICES_MAX, .item = &a_variant,
      .check = check_unique },
    { "subject", IN_TEXT, .names = subjects,
      .wanted = "must be library or framework: whose computation the command runs" },
    { "subject_name", IN_TEXT, .least = 1, .most = SUBJECT_NAME_SIZE - 1 },
    { "version", IN_INT, .least = 1, .most = VERSION_MAX, .fallback = "1" },
    { "title", IN_TEXT, .flags = IN_NULLABLE, .least = 1, .fallback = "null" },
    { "summary", IN_TEXT, .least = 1, .fallback = "\"a command of the configuration\"" },
    { "backend", IN_TEXT, .names = backends, .fallback = "\"cpu\"" },
    { "directory", IN_TEXT, .flags = IN_NULLABLE, .least = 1, .fallback = "null" },
    { "files", IN_ARRAY, .most = WORDS_MAX, .item = &a_word, .fallback = "[]" },
    { "environment", IN_OBJECT, .item = &a_value, .check = check_environment,
      .fallback = "{}" },
    { "sizes", IN_OBJECT, .least = 1, .most = CHOICES_MAX, .item = &a_size,
      .wanted = "must be an object of 1 to 64 sizes, each with its arguments",
      .check = check_size_names, .fallback = "{\"small\":[]}" },
    { "dtypes", IN_ARRAY, .least = 1, .most = CHOICES_MAX, .item = &a_name,
      .check = check_unique, .fallback = "[\"float32\"]" },
    { "threads", IN_INT, .flags = IN_NULLABLE, .least = 1, .most = THREADS_MAX,
      .fallback = "null" },
    { "no_control", IN_TEXT, .flags = IN_NULLABLE, .least = 1, .fallback = "null" },
    { "weight_sum", IN_TEXT, .least = 1, .fallback = "\"as the command defines it\"" },
    { "loss", IN_TEXT, .flags = IN_NULLABLE, .least = 1, .fallback = "null" },
    { "timeout_seconds", IN_INT, .least = 1, .most = TIMEOUT_SECONDS_MAX,
      .fallback = "600" },
    { "survey", IN_BOOL, .fallback = "false" },
    { "seeded", IN_BOOL, .fallback = "true" },
    { "circumstances", IN_ARRAY, .item = &a_circumstance, .check = check_unique,
      .fallback = "[]" },
};
static const struct in_shape workload_shape =
    IN_SHAPE(workload_members, "a workload has no member");

/* The variables of VARIANT must not take back what its recipe sets. */
static enum err_code check_recipe_kept(const json_t *variant, const json_t *variables,
                                       struct err *err)
{
    const char *recipe = in_text(variant, "recipe");
    const struct recipe_setting *setting = recipe ? recipe_setting(recipe) : NULL;

    for (int i = 0; setting && setting->variables[i].name; i++) {
        const char *name = setting->variables[i].name;

        if (json_is_null(json_object_get(variables, name))) {
            return err_set(err, ERR_INVALID, "%s is null, but recipe %s sets it", name,
                           recipe);
        }
    }
    return ERR_OK;
}

/* Its variables together with those of its workload. */
static enum err_code check_together(const json_t *workload, const json_t *variant,
                                    struct err *err)
{
    json_t *all = json_copy(json_object_get(workload, "environment"));
    json_t *added = external_variant_variables(variant);
    enum err_code code = check_recipe_kept(variant, added, err);
    struct recipes recipes;
    struct recipe_refusal refusal;

    json_object_update(all, added);
    if (code == ERR_OK && !recipe_read(look_up, all, &recipes, &refusal)) {
        code = err_set(err, ERR_INVALID, "%s: %s", refusal.variable, refusal.reason);
    }
    json_decref(all);
    json_decref(added);
    return code;
}

static void default_summary(json_t *variant)
{
    const char *recipe = in_text(variant, "recipe");
    char text[64];

    if (!in_text(variant, "summary")) {
        snprintf(text, sizeof text, "the command with recipe %s", recipe ? recipe : "");
        json_object_set_new(
            variant, "summary",
            json_string(recipe ? text : "the command as it is configured"));
    }
}

static enum err_code complete_variants(json_t *workload, const char *where,
                                       struct err *err)
{
    bool has_control = false;
    size_t i;
    json_t *variant;

    json_array_foreach(json_object_get(workload, "variants"), i, variant)
    {
        if (check_together(workload, variant, err) != ERR_OK) {
            return err_wrap(err, "%s/variants/%zu/environment", where, i);
        }
        default_summary(variant);
        has_control |= json_is_true(json_object_get(variant, "control"));
    }
    if (has_control == (in_text(workload, "no_control") != NULL)) {
        return err_set(err, ERR_INVALID, "%s/no_control: %s", where,
                       has_control ? "says that there is no control, but a variant is one"
                                   : "must say why no variant is a control: without one "
                                     "that was seen to vary, equal results prove little");
    }
    return ERR_OK;
}

static enum err_code complete_directory(json_t *workload, const char *where,
                                        const char *folder, struct err *err)
{
    const char *directory = in_text(workload, "directory");
    char *absolute;

    if (directory && directory[0] == '/') {
        return ERR_OK;
    }
    if (!folder) {
        return err_set(err, ERR_INVALID, "%s/directory: must be an absolute path", where);
    }
    absolute = directory ? xasprintf("%s/%s", folder, directory) : xstrdup(folder);
    json_object_set_new(workload, "directory", json_string(absolute));
    free(absolute);
    return ERR_OK;
}

enum err_code external_complete(json_t *workload, const char *where, const char *folder,
                                struct err *err)
{
    if (in_complete(&workload_shape, workload, where, err) != ERR_OK ||
        complete_variants(workload, where, err) != ERR_OK ||
        complete_directory(workload, where, folder, err) != ERR_OK) {
        return err->code;
    }
    if (!in_text(workload, "title")) {
        json_object_set(workload, "title", json_object_get(workload, "name"));
    }
    return ERR_OK;
}

const char *external_stack(const char *backend)
{
    return stacks[strcmp(backend, "cuda") == 0];
}

bool external_stack_is(const char *name)
{
    return strcmp(name, stacks[0]) == 0 || strcmp(name, stacks[1]) == 0;
}

bool external_find(const json_t *list, const char *name, const char *backend)
{
    size_t i;
    json_t *workload;

    json_array_foreach((json_t *)list, i, workload)
    {
        if (strcmp(in_text(workload, "name"), name) == 0 &&
            strcmp(in_text(workload, "backend"), backend) == 0) {
            return true;
        }
    }
    return false;
}

json_t *external_variant(const json_t *workload, const char *name)
{
    size_t i;
    json_t *variant;

    json_array_foreach(json_object_get(workload, "variants"), i, variant)
    {
        if (strcmp(in_text(variant, "name"), name) == 0) {
            return variant;
        }
    }
    return NULL;
}
