/* The objects of some arrays in a JSON text that comes in pieces, one by one: of a
 * cluster with thousands of jobs, nothing is kept but the object that is being read.
 * Pure.
 *
 *   {"meta":{…}, "errors":[], "jobs":[{…},{…}]}
 *
 * Only as much of the syntax is looked at as finds them; whoever takes an object parses
 * it. */
#ifndef DAEMON_ENGINE_ELEMENTS_H
#define DAEMON_ENGINE_ELEMENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/base/buf.h"

enum { ELEMENTS_ARRAYS = 3, ELEMENT_MAX = 1 << 20, ELEMENTS_KEY_SIZE = 16 };

struct elements {
    struct elements_array {
        const char *key; /* in the outermost object; NULL: none */
        bool counts;     /* one of those that do has to be there */
        /* TEXT is borrowed for the call, and ends with a NUL. */
        void (*take)(void *arg, const char *text, size_t length);
    } arrays[ELEMENTS_ARRAYS];
    void *arg;

    int skipped; /* how many were longer than ELEMENT_MAX, and were not taken */

    int depth;                          /* the rest is private */
    const struct elements_array *array; /* it is within; NULL: within none */
    bool in_text, escaped, keeps, found, whole;
    char last[ELEMENTS_KEY_SIZE]; /* text of the outermost object */
    size_t last_length;
    struct buf element;
};

/* arrays and arg are set before, all else is 0. */
void elements_feed(struct elements *elements, const char *data, size_t length);

/* An array that counts was there, and the outermost object has ended. */
bool elements_whole(const struct elements *elements);

void elements_release(struct elements *elements);

#endif
