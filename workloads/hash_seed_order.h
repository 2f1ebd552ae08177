/* What both backends of hash_seed_order share. */
#ifndef WORKLOADS_HASH_SEED_ORDER_H
#define WORKLOADS_HASH_SEED_ORDER_H

#include <stdint.h>

#include "workloads/instruments/bits.h"
#include "workloads/instruments/hd.h"

enum { HASH_FIXED_SEED = 0 };

struct table_shape {
    int64_t keys;  /* a power of two */
    int64_t width; /* values of a key */
};

/* Where KEY is looked for first: that many slots from the first, going round. */
REPROD_HD uint64_t hash_slot(int64_t key, uint64_t seed)
{
    return mix64((uint64_t)key ^ seed);
}

#endif
