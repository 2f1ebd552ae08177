/* Rendered replies that many clients share, each valid while the store has not changed
 * and until a given time.  Loop thread only. */
#ifndef API_HTTP_CACHE_H
#define API_HTTP_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ETAG_SIZE = 20, CACHE_ENTRIES = 16 };

struct MHD_Response;

/* One reply; counted, so that an entry that is replaced lives until it was sent. */
struct cached {
    int references;
    char *key;
    uint64_t generation;    /* of the store */
    int64_t valid_until_ms; /* wall clock */
    int64_t begun_ms;       /* likewise: what it shows is of then, or newer */
    bool renewing;          /* one that replaces it is on its way */
    struct MHD_Response *response;
    char etag[ETAG_SIZE];
};

struct cache {
    struct cached *entries[CACHE_ENTRIES];
    int next; /* to be replaced */
};

/* The entry if it is still right; a new reference, or NULL. */
struct cached *cache_find(struct cache *cache, const char *key, uint64_t generation,
                          int64_t now_ms);

/* The entry if it is not older than AGE_MS, whatever changed since; a new reference, or
 * NULL.  RET_RENEW: the caller is to see to the one that replaces it, beside. */
struct cached *cache_find_old(struct cache *cache, const char *key, int64_t age_ms,
                              int64_t now_ms, bool *ret_renew);

/* Makes an entry of BODY (takes ownership), which was begun at BEGUN_MS, and keeps it in
 * the cache; returns a new reference. */
struct cached *cache_add(struct cache *cache, const char *key, uint64_t generation,
                         int64_t begun_ms, int64_t valid_until_ms, char *body,
                         size_t length, const char *etag);

/* One that is in no cache, with one reference. */
struct cached *cached_new(char *body, size_t length, const char *etag);
void cached_unref(struct cached *cached); /* NULL is fine */
void cache_release(struct cache *cache);

#endif
