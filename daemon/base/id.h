/* ULIDs: 26 characters of Crockford base 32, 48 bits of milliseconds then 80 random bits.
 * Ids of one process sort in the order in which they were made, also within one
 * millisecond (the random part is incremented).  Layout: github.com/ulid/spec. */
#ifndef DAEMON_BASE_ID_H
#define DAEMON_BASE_ID_H

#include <stdbool.h>
#include <stdint.h>

enum { ID_SIZE = 27 }; /* 26 characters and the NUL */

/* A new id for NOW_MS (wall clock).  Thread-safe.  Time going backwards does not make ids
 * go backwards. */
void id_new(int64_t now_ms, char ret_id[ID_SIZE]);

/* Sorts before every id of AT_MS or later, and behind every earlier one. */
void id_first(int64_t at_ms, char ret_id[ID_SIZE]);

/* Ids made from here on sort behind ID, a valid one: what was stored before the process
 * started, by a clock that was ahead.  Thread-safe. */
void id_follow(const char *id);

/* Whether TEXT has the form of an id (upper case, 26 characters, fits 128 bits). */
bool id_valid(const char *text);

#endif
