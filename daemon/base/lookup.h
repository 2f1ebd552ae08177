/* A table from texts to pointers, where a list would be walked too often: devices of a
 * fleet, runs in flight.  Zeroed is empty.  Keys are borrowed: each must stay as it is
 * until it is removed. */
#ifndef DAEMON_BASE_LOOKUP_H
#define DAEMON_BASE_LOOKUP_H

struct lookup_slot;

struct lookup {
    struct lookup_slot *slots;
    int count, room; /* room: a power of two, or 0 */
};

/* NULL: KEY is not there. */
void *lookup_get(const struct lookup *lookup, const char *key);

/* VALUE is not NULL.  A key that is there gets the new value, and is the new text. */
void lookup_put(struct lookup *lookup, const char *key, void *value);

/* Nothing if KEY is not there. */
void lookup_remove(struct lookup *lookup, const char *key);

/* Keeps nothing: it is empty again. */
void lookup_release(struct lookup *lookup);

#endif
