/* Hashes for tables in memory, file names and entity tags: fast, and no more than that.
 * What proves that two outputs are equal is workloads/instruments/digest.h. */
#ifndef DAEMON_BASE_HASH_H
#define DAEMON_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* FNV-1a.  Source: draft-eastlake-fnv, section 2. */
static inline uint64_t hash_bytes(const void *data, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)data;
    uint64_t hash = 0xcbf29ce484222325;

    for (size_t i = 0; i < length; i++) {
        hash = (hash ^ bytes[i]) * 0x100000001b3;
    }
    return hash;
}

/* Of long texts, eight bytes at a time.  Each step is a bijection of the hash for a given
 * word, and of the word for a given hash: texts of one length that differ in one word
 * never have the same. */
static inline uint64_t hash_long(const void *data, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)data;
    uint64_t hash = 0x9e3779b97f4a7c15 ^ length;

    for (size_t i = 0; i < length; i += sizeof(uint64_t)) {
        size_t left = length - i;
        uint64_t word = 0;

        memcpy(&word, bytes + i, left < sizeof word ? left : sizeof word);
        word = (word ^ word >> 32) * 0xd6e8feb86659fd93;
        hash = (hash ^ word ^ word >> 32) * 0xbf58476d1ce4e5b9;
        hash ^= hash >> 29;
    }
    return hash;
}

#endif
