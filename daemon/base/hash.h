/* FNV-1a, for tables in memory, file names and entity tags: fast, and no more than that.
 * What proves that two outputs are equal is workloads/instruments/digest.h.
 * Source: draft-eastlake-fnv, section 2. */
#ifndef DAEMON_BASE_HASH_H
#define DAEMON_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t hash_bytes(const void *data, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)data;
    uint64_t hash = 0xcbf29ce484222325;

    for (size_t i = 0; i < length; i++) {
        hash = (hash ^ bytes[i]) * 0x100000001b3;
    }
    return hash;
}

#endif
