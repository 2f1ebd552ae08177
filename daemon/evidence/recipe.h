/* Recipes that environment variables ask for, and the traps in them, as the documents of
 * TensorFlow give them.  Pure. */
#ifndef DAEMON_EVIDENCE_RECIPE_H
#define DAEMON_EVIDENCE_RECIPE_H

#include <stdbool.h>

/* What the variables ask for. */
struct recipes {
    bool tcd;      /* TF_CUDNN_DETERMINISTIC */
    bool tdo;      /* TF_DETERMINISTIC_OPS */
    bool frontend; /* TF_CUDNN_USE_FRONTEND; with TDO it is recipe TDO+FE */
};

/* The value of variable NAME, NULL if it is not set. */
typedef const char *recipe_lookup_cb(void *arg, const char *name);

struct recipe_refusal {
    const char *variable; /* static: the one that is at fault */
    char reason[200];
};

/* Refuses, and returns false, if the variables would not do what they seem to request:
 *   a value other than 1 or true of a variable of struct recipes, which frameworks read
 *   as off or not at all;
 *   TCD or TDO together with TF_CUDNN_USE_AUTOTUNE, or the name the documents also give
 *   it, TF_USE_CUDNN_AUTOTUNE, whatever its value.
 * Else fills ret_recipes.  PR 24747 and the README of the framework determinism project.
 */
bool recipe_read(recipe_lookup_cb *lookup, void *arg, struct recipes *ret_recipes,
                 struct recipe_refusal *ret_refusal);

enum { RECIPE_VARIABLES_MAX = 2 };

/* A recipe of the tables in workloads/profiles, and the environment variables that bring
 * it about before a process starts.  Most recipes need a call in the program as well;
 * some set no variable (EOD, UDA: they are calls). */
struct recipe_setting {
    const char *recipe;
    struct {
        const char *name, *value; /* NULL at the end */
    } variables[RECIPE_VARIABLES_MAX + 1];
};

/* The settings of every recipe; RET_COUNT of them. */
const struct recipe_setting *recipe_settings(int *ret_count);

/* NULL if there is no recipe of that name. */
const struct recipe_setting *recipe_setting(const char *recipe);

#endif
