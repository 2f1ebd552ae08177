/* Names to choose from: whether a name is one of them, and what to suggest where it is
 * not. */
#ifndef DAEMON_BASE_CHOICES_H
#define DAEMON_BASE_CHOICES_H

#include <stdbool.h>

/* Zero-initialised is empty. */
struct choices {
    char **names;
    int count;
};

/* Adds a copy of NAME, unless it is there. */
void choices_add(struct choices *choices, const char *name);
bool choices_hold(const struct choices *choices, const char *name);
void choices_release(struct choices *choices);

/* "; did you mean 'conv_wgrad'?": what is most like NAME, or "" if nothing is near.
 * Caller frees. */
char *choices_suggestion(const struct choices *choices, const char *name);

#endif
