/* What both backends of data_loader share: the shape of an item, and the numbers that are
 * drawn for it. */
#ifndef WORKLOADS_DATA_LOADER_H
#define WORKLOADS_DATA_LOADER_H

#include <stdbool.h>
#include <stdint.h>

#include "workloads/instruments/bits.h"
#include "workloads/instruments/hd.h"

enum {
    LOADER_BLOCK = 8,  /* rows and columns of coefficients that are decoded together */
    LOADER_BLOCKS = 3, /* down and across */
    LOADER_SIDE = LOADER_BLOCK * LOADER_BLOCKS,
    LOADER_CHANNELS = 3,
    LOADER_CROP = 16,
    LOADER_SHARDS = 4,
    LOADER_PIPELINES = 2,  /* of training and of validation, where they are apart */
    LOADER_VALIDATION = 4, /* one item of so many is for validation: the last ones */
    LOADER_PIXELS = LOADER_SIDE * LOADER_SIDE,
    LOADER_COEFFICIENTS = LOADER_CHANNELS * LOADER_PIXELS,
    LOADER_IMAGE = LOADER_CROP * LOADER_CROP * LOADER_CHANNELS
};

/* What is drawn for an item, each from 1 to its limit. */
enum loader_parameter {
    LOADER_ROW,
    LOADER_COLUMN,
    LOADER_MIRROR,
    LOADER_BRIGHTNESS,
    LOADER_PARAMETERS
};

REPROD_HD int32_t loader_limit(int parameter)
{
    if (parameter == LOADER_BRIGHTNESS) {
        return 256;
    }
    return parameter == LOADER_MIRROR ? 2 : LOADER_SIDE - LOADER_CROP + 1;
}

/* The increment of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
 * generators", OOPSLA 2014), whose state is all there is to share. */
#define LOADER_INCREMENT UINT64_C(0x9e3779b97f4a7c15)

REPROD_HD int32_t loader_number(uint64_t state, int parameter)
{
    return (int32_t)(mix64(state) % (uint64_t)loader_limit(parameter)) + 1;
}

/* Number POSITION, from 0, of the generator that begins with SEED. */
REPROD_HD uint64_t loader_state_at(uint64_t seed, int64_t position)
{
    return seed + LOADER_INCREMENT * (uint64_t)(position + 1);
}

REPROD_HD uint64_t loader_state_of_item(uint64_t seed, int64_t item, int parameter)
{
    return loader_state_at(mix64(seed + (uint64_t)item), parameter);
}

REPROD_HD uint64_t loader_state_of_shard(uint64_t seed, int64_t item, int parameter)
{
    return loader_state_at(mix64(seed + (uint64_t)(item % LOADER_SHARDS)),
                           item / LOADER_SHARDS * LOADER_PARAMETERS + parameter);
}

/* The first item for validation. */
REPROD_HD int64_t loader_validation_begin(int64_t items)
{
    return items - items / LOADER_VALIDATION;
}

/* Training and validation each take numbers in order of their items, from a generator of
 * their own. */
REPROD_HD uint64_t loader_seed_of_pipeline(uint64_t seed, int64_t pipeline)
{
    return mix64(seed ^ (uint64_t)(pipeline + 1));
}

/* Where element I of a cropped image comes from in [channels][side][side]. */
REPROD_HD int64_t loader_crop_from(int64_t i, int64_t row, int64_t column, bool mirror)
{
    int64_t c = i % LOADER_CHANNELS, x = i / LOADER_CHANNELS % LOADER_CROP;
    int64_t y = i / LOADER_CHANNELS / LOADER_CROP;

    return c * LOADER_PIXELS + (row + y) * LOADER_SIDE + column +
           (mirror ? LOADER_CROP - 1 - x : x);
}

#endif
