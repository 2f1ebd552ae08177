/* The nearest known name to a misspelt one, for error messages. */
#ifndef WORKLOADS_WORKER_SPELLING_H
#define WORKLOADS_WORKER_SPELLING_H

#ifdef __cplusplus
extern "C" {
#endif

#include <stddef.h>

/* The name that takes the fewest single-character insertions, deletions and
 * substitutions (Levenshtein's distance) to become WANTED; the first of equals.
 * NULL when there are no names.  Names are looked at up to 64 characters. */
const char *spelling_nearest(const char *wanted, const char *const *names, int count);

#ifdef __cplusplus
}
#endif

#endif
