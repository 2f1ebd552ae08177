/* Recipes from environment variables: what is in force, and which traps are refused. */
#include "daemon/evidence/recipe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* "NAME=value" pairs, NULL at the end. */
static const char *lookup(void *arg, const char *name)
{
    const char *const *pairs = arg;
    size_t length = strlen(name);

    for (; *pairs; pairs++) {
        if (strncmp(*pairs, name, length) == 0 && (*pairs)[length] == '=') {
            return *pairs + length + 1;
        }
    }
    return NULL;
}

struct row {
    const char *pairs[4];
    bool tcd, tdo, frontend;
    const char *variable, *reason; /* NULL: not refused */
};

#define TCD "TF_CUDNN_DETERMINISTIC"
#define TDO "TF_DETERMINISTIC_OPS"
#define FE  "TF_CUDNN_USE_FRONTEND"

static const struct row rows[] = {
    { { NULL }, false, false, false, NULL, NULL },
    { { TCD "=1" }, true, false, false, NULL, NULL },
    { { TCD "=true" }, true, false, false, NULL, NULL },
    { { TDO "=1" }, false, true, false, NULL, NULL },
    { { TDO "=true", FE "=1" }, false, true, true, NULL, NULL },
    { { TDO "=1", TCD "=1" }, true, true, false, NULL, NULL },
    { { TCD "_OTHER=yes" }, false, false, false, NULL, NULL },
    { { TCD "=True" }, false, false, false, TCD, "'True' is neither 1 nor true" },
    { { TCD "=TRUE" }, false, false, false, TCD, "neither" },
    { { TCD "=0" }, false, false, false, TCD, "leave it unset" },
    { { TCD "=" }, false, false, false, TCD, "'' is neither" },
    { { TCD "=1 " }, false, false, false, TCD, "neither" },
    { { TDO "=yes" }, false, false, false, TDO, "'yes'" },
    { { TDO "=2" }, false, false, false, TDO, "'2'" },
    { { TDO "=11" }, false, false, false, TDO, "'11'" },
    { { TDO "=1", FE "=on" }, false, false, false, FE, "'on'" },
    { { "TF_CUDNN_USE_AUTOTUNE=0" }, false, false, false, NULL, NULL },
    { { "TF_USE_CUDNN_AUTOTUNE=1" }, false, false, false, NULL, NULL },
    { { TCD "=1", "TF_CUDNN_USE_AUTOTUNE=0" },
      false,
      false,
      false,
      "TF_CUDNN_USE_AUTOTUNE",
      "together with " TCD },
    { { TCD "=true", "TF_USE_CUDNN_AUTOTUNE=false" },
      false,
      false,
      false,
      "TF_USE_CUDNN_AUTOTUNE",
      "together with " TCD },
    { { TDO "=1", "TF_CUDNN_USE_AUTOTUNE=1" },
      false,
      false,
      false,
      "TF_CUDNN_USE_AUTOTUNE",
      "together with " TDO },
    { { TDO "=true", "TF_USE_CUDNN_AUTOTUNE=" },
      false,
      false,
      false,
      "TF_USE_CUDNN_AUTOTUNE",
      "together with " TDO },
    { { FE "=1", "TF_USE_CUDNN_AUTOTUNE=" }, false, false, true, NULL, NULL },
};

static void test_every_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        struct recipes recipes = { false, false, false };
        struct recipe_refusal refusal = { .variable = NULL };
        bool accepted = recipe_read(lookup, (void *)row->pairs, &recipes, &refusal);

        if (accepted != (row->variable == NULL)) {
            fail_msg("row %zu: %s", i, accepted ? "accepted" : refusal.reason);
        }
        if (accepted) {
            assert_int_equal(recipes.tcd, row->tcd);
            assert_int_equal(recipes.tdo, row->tdo);
            assert_int_equal(recipes.frontend, row->frontend);
        } else {
            assert_string_equal(refusal.variable, row->variable);
            assert_non_null(strstr(refusal.reason, row->reason));
        }
    }
}

/* What a recipe sets, recipe_read understands and does not refuse. */
static void test_settings_are_what_is_read(void **state)
{
    int count;
    const struct recipe_setting *settings = recipe_settings(&count);

    (void)state;
    for (int i = 0; i < count; i++) {
        const char *recipe = settings[i].recipe;
        char texts[RECIPE_VARIABLES_MAX][64];
        const char *pairs[RECIPE_VARIABLES_MAX + 1] = { NULL };
        struct recipes read;
        struct recipe_refusal refusal;

        for (int k = 0; settings[i].variables[k].name; k++) {
            snprintf(texts[k], sizeof texts[k], "%s=%s", settings[i].variables[k].name,
                     settings[i].variables[k].value);
            pairs[k] = texts[k];
        }
        assert_true(recipe_read(lookup, pairs, &read, &refusal));
        assert_int_equal(read.tcd,
                         strcmp(recipe, "TCD") == 0 || strcmp(recipe, "TDP") == 0);
        assert_int_equal(read.tdo, strncmp(recipe, "TDO", 3) == 0);
        assert_int_equal(read.frontend, strcmp(recipe, "TDO+FE") == 0);
        assert_ptr_equal(recipe_setting(recipe), &settings[i]);
    }
    assert_null(recipe_setting("TD"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_row),
        cmocka_unit_test(test_settings_are_what_is_read),
    };

    return cmocka_run_group_tests_name("recipe", tests, NULL, NULL);
}
