/* The objects of one array in a JSON text that comes in pieces, one by one: of a cluster
 * with thousands of jobs, nothing is kept but the object that is being read.  Pure.
 *
 *   {"meta":{…}, "jobs":[{…},{…}]}     KEY is "jobs"
 *
 * Only as much of the syntax is looked at as finds them; whoever takes an object parses
 * it. */
#ifndef DAEMON_ENGINE_ELEMENTS_H
#define DAEMON_ENGINE_ELEMENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/base/buf.h"

enum { ELEMENT_MAX = 1 << 20, ELEMENTS_KEY_SIZE = 16 };

struct elements {
    const char *key; /* of the array, in the outermost object */
    /* TEXT is borrowed for the call, and ends with a NUL. */
    void (*take)(void *arg, const char *text, size_t length);
    void *arg;

    int skipped; /* how many were longer than ELEMENT_MAX, and were not taken */

    int depth; /* the rest is private */
    bool in_text, escaped, in_array, keeps, found, whole;
    char last[ELEMENTS_KEY_SIZE]; /* text of the outermost object */
    size_t last_length;
    struct buf element;
};

/* key, take and arg are set before, all else is 0. */
void elements_feed(struct elements *elements, const char *data, size_t length);

/* The array was there, and the outermost object has ended. */
bool elements_whole(const struct elements *elements);

void elements_release(struct elements *elements);

#endif
