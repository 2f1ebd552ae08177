#include "daemon/base/lookup.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/hash.h"
#include "daemon/base/mem.h"

/* Open addressing: a key is at its place, or in one of the slots behind it, none of which
 * is empty in between. */
struct lookup_slot {
    const char *key; /* NULL: empty */
    uint64_t hash;
    void *value;
};

enum { ROOM_FIRST = 16 };

/* FNV leaves its low bits to the last bytes. */
static uint64_t hash_of(const char *key)
{
    uint64_t hash = hash_bytes(key, strlen(key));

    return hash ^ hash >> 32;
}

/* The slot of KEY, or the empty one that it would have.  There is room. */
static int find(const struct lookup *l, const char *key, uint64_t hash)
{
    int mask = l->room - 1;
    int i = (int)(hash & (uint64_t)mask);

    while (l->slots[i].key &&
           (l->slots[i].hash != hash || strcmp(l->slots[i].key, key) != 0)) {
        i = (i + 1) & mask;
    }
    return i;
}

void *lookup_get(const struct lookup *l, const char *key)
{
    return l->room ? l->slots[find(l, key, hash_of(key))].value : NULL;
}

static void grow(struct lookup *l)
{
    struct lookup old = *l;

    l->room = old.room ? 2 * old.room : ROOM_FIRST;
    l->slots = xcalloc((size_t)l->room, sizeof *l->slots);
    for (int i = 0; i < old.room; i++) {
        if (old.slots[i].key) {
            l->slots[find(l, old.slots[i].key, old.slots[i].hash)] = old.slots[i];
        }
    }
    free(old.slots);
}

void lookup_put(struct lookup *l, const char *key, void *value)
{
    uint64_t hash = hash_of(key);
    struct lookup_slot *slot;

    if (2 * (l->count + 1) > l->room) {
        grow(l);
    }
    slot = &l->slots[find(l, key, hash)];
    l->count += !slot->key;
    *slot = (struct lookup_slot){ key, hash, value };
}

/* What follows moves up, unless it is at its place or would come before it. */
void lookup_remove(struct lookup *l, const char *key)
{
    int mask = l->room - 1;
    int hole = l->room ? find(l, key, hash_of(key)) : -1;

    if (hole < 0 || !l->slots[hole].key) {
        return;
    }
    for (int i = (hole + 1) & mask; l->slots[i].key; i = (i + 1) & mask) {
        int place = (int)(l->slots[i].hash & (uint64_t)mask);

        if (((i - place) & mask) >= ((i - hole) & mask)) {
            l->slots[hole] = l->slots[i];
            hole = i;
        }
    }
    l->slots[hole] = (struct lookup_slot){ .key = NULL };
    l->count--;
}

void lookup_release(struct lookup *l)
{
    free(l->slots);
    *l = (struct lookup){ .slots = NULL };
}
