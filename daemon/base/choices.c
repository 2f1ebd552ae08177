#include "daemon/base/choices.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"

bool choices_hold(const struct choices *choices, const char *name)
{
    for (int i = 0; i < choices->count; i++) {
        if (strcmp(choices->names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

void choices_add(struct choices *choices, const char *name)
{
    if (choices_hold(choices, name)) {
        return;
    }
    choices->names = xgrow(choices->names, choices->count, sizeof *choices->names);
    choices->names[choices->count++] = xstrdup(name);
}

void choices_release(struct choices *choices)
{
    for (int i = 0; i < choices->count; i++) {
        free(choices->names[i]);
    }
    free(choices->names);
    *choices = (struct choices){ .count = 0 };
}

const char *choices_hint(const struct choices *choices, const char *name,
                         char ret_hint[NEAREST_HINT_SIZE])
{
    return nearest_hint(name, (const char *const *)choices->names, choices->count,
                        ret_hint);
}
