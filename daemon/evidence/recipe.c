#include "daemon/evidence/recipe.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/array.h"

static bool read_switch(recipe_lookup_cb *lookup, void *arg, const char *name,
                        bool *ret_on, struct recipe_refusal *ret_refusal)
{
    const char *value = lookup(arg, name);

    *ret_on = value && (strcmp(value, "1") == 0 || strcmp(value, "true") == 0);
    if (!value || *ret_on) {
        return true;
    }
    ret_refusal->variable = name;
    snprintf(ret_refusal->reason, sizeof ret_refusal->reason,
             "'%.32s' is neither 1 nor true; to turn %s off, leave it unset", value,
             name);
    return false;
}

bool recipe_read(recipe_lookup_cb *lookup, void *arg, struct recipes *ret_recipes,
                 struct recipe_refusal *ret_refusal)
{
    static const char *const autotune[] = { "TF_CUDNN_USE_AUTOTUNE",
                                            "TF_USE_CUDNN_AUTOTUNE" };
    struct recipes *r = ret_recipes;

    if (!read_switch(lookup, arg, "TF_CUDNN_DETERMINISTIC", &r->tcd, ret_refusal) ||
        !read_switch(lookup, arg, "TF_DETERMINISTIC_OPS", &r->tdo, ret_refusal) ||
        !read_switch(lookup, arg, "TF_CUDNN_USE_FRONTEND", &r->frontend, ret_refusal)) {
        return false;
    }
    for (int i = 0; i < 2 && (r->tcd || r->tdo); i++) {
        if (lookup(arg, autotune[i])) {
            ret_refusal->variable = autotune[i];
            snprintf(ret_refusal->reason, sizeof ret_refusal->reason,
                     "must not be set, to any value, together with %s: it thwarts the "
                     "choice of deterministic algorithms",
                     r->tdo ? "TF_DETERMINISTIC_OPS" : "TF_CUDNN_DETERMINISTIC");
            return false;
        }
    }
    return true;
}

/* TCD, TDO: README of the framework determinism project; TDO+FE: tensorflow issue 53771;
 * SD+CWC, UDA+CWC: documentation of torch.use_deterministic_algorithms, which compares
 * the value with :4096:8 and :16:8 as text. */
static const struct recipe_setting settings[] = {
    { "none", { { 0 } } },
    { "TCD", { { "TF_CUDNN_DETERMINISTIC", "1" } } },
    { "TDP", { { "TF_CUDNN_DETERMINISTIC", "1" } } },
    { "TDO", { { "TF_DETERMINISTIC_OPS", "1" } } },
    { "TDO+FE", { { "TF_DETERMINISTIC_OPS", "1" }, { "TF_CUDNN_USE_FRONTEND", "1" } } },
    { "EOD", { { 0 } } },
    { "CD", { { 0 } } },
    { "SD", { { 0 } } },
    { "SD+CWC", { { "CUBLAS_WORKSPACE_CONFIG", ":4096:8" } } },
    { "UDA", { { 0 } } },
    { "UDA+CD", { { 0 } } },
    { "UDA+CWC", { { "CUBLAS_WORKSPACE_CONFIG", ":4096:8" } } },
};

const struct recipe_setting *recipe_settings(int *ret_count)
{
    *ret_count = COUNT_OF(settings);
    return settings;
}

const struct recipe_setting *recipe_setting(const char *recipe)
{
    for (int i = 0; i < COUNT_OF(settings); i++) {
        if (strcmp(settings[i].recipe, recipe) == 0) {
            return &settings[i];
        }
    }
    return NULL;
}
