#include "daemon/config/external.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/config/external_members.h"
#include "daemon/evidence/recipe.h"

static const char *const stacks[] = { "external", "external-cuda" };

static enum err_code check_recipe_kept(const json_t *variant, const json_t *variables,
                                       struct err *err)
{
    const char *recipe = json_string_value(json_object_get(variant, "recipe"));
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

    json_object_update(all, added);
    if (code == ERR_OK) {
        code = external_check_variables(all, err);
    }
    json_decref(all);
    json_decref(added);
    return code;
}

static void default_summary(json_t *variant)
{
    const char *recipe = json_string_value(json_object_get(variant, "recipe"));
    char text[64];

    if (json_is_null(json_object_get(variant, "summary"))) {
        snprintf(text, sizeof text, "the command with recipe %s", recipe ? recipe : "");
        json_object_set_new(
            variant, "summary",
            json_string(recipe ? text : "the command as it is configured"));
    }
}

static enum err_code complete_variant(json_t *workload, size_t index, const char *where,
                                      struct err *err)
{
    json_t *variants = json_object_get(workload, "variants");
    json_t *variant = json_array_get(variants, index);
    char *place = xasprintf("%s/variants/%zu", where, index);
    enum err_code code = external_complete_variant(variant, place, err);

    for (size_t i = 0; code == ERR_OK && i < index; i++) {
        if (json_equal(json_object_get(json_array_get(variants, i), "name"),
                       json_object_get(variant, "name"))) {
            code = err_set(err, ERR_INVALID, "%s/name: '%s' is listed twice", place,
                           json_string_value(json_object_get(variant, "name")));
        }
    }
    if (code == ERR_OK && check_together(workload, variant, err) != ERR_OK) {
        code = err_wrap(err, "%s/environment", place);
    }
    if (code == ERR_OK) {
        default_summary(variant);
    }
    free(place);
    return code;
}

static enum err_code complete_variants(json_t *workload, const char *where,
                                       struct err *err)
{
    json_t *variants = json_object_get(workload, "variants");
    bool has_control = false;
    size_t i;
    json_t *variant;

    if (!json_is_array(variants) || json_array_size(variants) < 1 ||
        json_array_size(variants) > EXTERNAL_CHOICES_MAX) {
        return err_set(err, ERR_INVALID, "%s/variants: must be an array of 1 to %d",
                       where, EXTERNAL_CHOICES_MAX);
    }
    json_array_foreach(variants, i, variant)
    {
        if (complete_variant(workload, i, where, err) != ERR_OK) {
            return err->code;
        }
        has_control |= json_is_true(json_object_get(variant, "control"));
    }
    if (has_control == json_is_string(json_object_get(workload, "no_control"))) {
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
    const char *directory = json_string_value(json_object_get(workload, "directory"));
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
    if (external_complete_workload(workload, where, err) != ERR_OK ||
        complete_variants(workload, where, err) != ERR_OK ||
        complete_directory(workload, where, folder, err) != ERR_OK) {
        return err->code;
    }
    if (json_is_null(json_object_get(workload, "title"))) {
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
        if (strcmp(json_string_value(json_object_get(workload, "name")), name) == 0 &&
            strcmp(json_string_value(json_object_get(workload, "backend")), backend) ==
                0) {
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
        if (strcmp(json_string_value(json_object_get(variant, "name")), name) == 0) {
            return variant;
        }
    }
    return NULL;
}
