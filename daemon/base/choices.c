#include "daemon/base/choices.h"

#include <stdlib.h>

#include "daemon/base/mem.h"

bool choices_hold(const struct choices *choices, const char *name)
{
    return lookup_get(&choices->known, name) != NULL;
}

void choices_add(struct choices *choices, const char *name)
{
    if (choices_hold(choices, name)) {
        return;
    }
    choices->names = xgrow(choices->names, choices->count, sizeof *choices->names);
    choices->names[choices->count] = xstrdup(name);
    lookup_put(&choices->known, choices->names[choices->count],
               choices->names[choices->count]);
    choices->count++;
}

void choices_release(struct choices *choices)
{
    for (int i = 0; i < choices->count; i++) {
        free(choices->names[i]);
    }
    free(choices->names);
    lookup_release(&choices->known);
    *choices = (struct choices){ .count = 0 };
}

const char *choices_hint(const struct choices *choices, const char *name,
                         char ret_hint[NEAREST_HINT_SIZE])
{
    return nearest_hint(name, (const char *const *)choices->names, choices->count,
                        ret_hint);
}
