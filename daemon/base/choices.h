/* Names to choose from: whether a name is one of them, and what to suggest where it is
 * not. */
#ifndef DAEMON_BASE_CHOICES_H
#define DAEMON_BASE_CHOICES_H

#include <stdbool.h>

#include "daemon/base/lookup.h"
#include "daemon/base/nearest.h"

/* Zero-initialised is empty. */
struct choices {
    char **names;
    int count;
    struct lookup known; /* the same */
};

/* Adds a copy of NAME, unless it is there. */
void choices_add(struct choices *choices, const char *name);
bool choices_hold(const struct choices *choices, const char *name);
void choices_release(struct choices *choices);

/* As nearest_hint. */
const char *choices_hint(const struct choices *choices, const char *name,
                         char ret_hint[NEAREST_HINT_SIZE]);

#endif
