#include "api/http/cache.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"

struct cached *cache_find(struct cache *cache, const char *key, uint64_t generation,
                          int64_t now_ms)
{
    for (int i = 0; i < CACHE_ENTRIES; i++) {
        struct cached *c = cache->entries[i];

        if (c && c->generation == generation && now_ms < c->valid_until_ms &&
            strcmp(c->key, key) == 0) {
            c->references++;
            return c;
        }
    }
    return NULL;
}

struct cached *cache_find_old(struct cache *cache, const char *key, int64_t age_ms,
                              int64_t now_ms, bool *ret_renew)
{
    *ret_renew = false;
    for (int i = 0; i < CACHE_ENTRIES; i++) {
        struct cached *c = cache->entries[i];

        if (c && now_ms - c->begun_ms < age_ms && strcmp(c->key, key) == 0) {
            *ret_renew = !c->renewing && now_ms - c->begun_ms >= age_ms / 2;
            c->renewing = c->renewing || *ret_renew;
            c->references++;
            return c;
        }
    }
    return NULL;
}

/* The place of KEY's older entry, else the next in turn. */
static struct cached **place_for(struct cache *cache, const char *key)
{
    for (int i = 0; i < CACHE_ENTRIES; i++) {
        if (cache->entries[i] && strcmp(cache->entries[i]->key, key) == 0) {
            return &cache->entries[i];
        }
    }
    cache->next = (cache->next + 1) % CACHE_ENTRIES;
    return &cache->entries[cache->next];
}

struct cached *cached_new(char *body, size_t length, const char *etag)
{
    struct cached *c = xcalloc(1, sizeof *c);

    c->references = 1;
    c->response = MHD_create_response_from_buffer(length, body, MHD_RESPMEM_MUST_FREE);
    if (!c->response) {
        abort();
    }
    copy_text(c->etag, sizeof c->etag, etag);
    return c;
}

struct cached *cache_add(struct cache *cache, const char *key, uint64_t generation,
                         int64_t begun_ms, int64_t valid_until_ms, char *body,
                         size_t length, const char *etag)
{
    struct cached *c = cached_new(body, length, etag);
    struct cached **place = place_for(cache, key);

    c->references++;
    c->key = xstrdup(key);
    c->generation = generation;
    c->begun_ms = begun_ms;
    c->valid_until_ms = valid_until_ms;
    cached_unref(*place);
    *place = c;
    return c;
}

void cached_unref(struct cached *c)
{
    if (c && --c->references == 0) {
        MHD_destroy_response(c->response);
        free(c->key);
        free(c);
    }
}

void cache_release(struct cache *cache)
{
    for (int i = 0; i < CACHE_ENTRIES; i++) {
        cached_unref(cache->entries[i]);
        cache->entries[i] = NULL;
    }
}
