/* What a filling puts into the elements of a tensor (workloads/workload.h: enum fill), a
 * block of random words at a time: the definition that every backend calls, so that
 * inputs have the same bits everywhere.  C and CUDA. */
#ifndef WORKLOADS_WORKER_FILL_BLOCK_H
#define WORKLOADS_WORKER_FILL_BLOCK_H

#include "workloads/instruments/half.h"
#include "workloads/instruments/hd.h"
#include "workloads/instruments/philox.h"
#include "workloads/worker/backend.h"

/* float16 and bfloat16 are the float32 value rounded.  FILL_WIDE reaches 2^13 at most and
 * 2^-12 at least, so that it is finite and normal in float16 too. */
REPROD_HD void fill_store_float(const struct tensor *t, int64_t i, float value)
{
    switch (t->dtype) {
    case DTYPE_FLOAT16:
        ((uint16_t *)t->data)[i] = f16_from_f32(value);
        break;
    case DTYPE_BFLOAT16:
        ((uint16_t *)t->data)[i] = bf16_from_f32(value);
        break;
    default:
        ((float *)t->data)[i] = value;
        break;
    }
}

REPROD_HD void fill_store_index(const struct tensor *t, int64_t i, uint64_t value)
{
    switch (t->dtype) {
    case DTYPE_INT32:
        ((int32_t *)t->data)[i] = (int32_t)value;
        break;
    case DTYPE_INT64:
        ((int64_t *)t->data)[i] = (int64_t)value;
        break;
    case DTYPE_UINT8:
        ((uint8_t *)t->data)[i] = (uint8_t)value;
        break;
    case DTYPE_FLOAT64:
        ((double *)t->data)[i] = (double)value;
        break;
    default:
        fill_store_float(t, i, (float)value);
        break;
    }
}

/* How many elements have their values from one block of random words: 4, 2 or 1. */
REPROD_HD int64_t fill_block_elements(const struct tensor *t, const struct filling *f)
{
    if (f->fill == FILL_INDEX) {
        return 2;
    }
    if (t->dtype == DTYPE_FLOAT64) {
        return f->fill == FILL_WIDE ? 1 : 2;
    }
    return f->fill == FILL_WIDE ? 2 : 4;
}

/* How many blocks fill a tensor of ELEMENTS. */
REPROD_HD int64_t fill_blocks(const struct tensor *t, const struct filling *f,
                              int64_t elements)
{
    int64_t each = fill_block_elements(t, f);
    return elements / each + (elements % each != 0);
}

/* Element I, which is number K of the block WORDS. */
REPROD_HD void fill_element(const struct tensor *t, const struct filling *f, int64_t i,
                            int64_t k, struct philox words)
{
    if (f->fill == FILL_INDEX) {
        fill_store_index(t, i, philox_index_of(philox_half(words, k != 0), f->limit));
    } else if (t->dtype == DTYPE_FLOAT64) {
        ((double *)t->data)[i] = f->fill == FILL_WIDE
                                     ? philox_wide_f64_of(words)
                                     : philox_uniform_f64_of(philox_half(words, k != 0));
    } else {
        fill_store_float(t, i,
                         f->fill == FILL_WIDE
                             ? philox_wide_f32_of(philox_half(words, k != 0))
                             : philox_uniform_f32_of(words.v[k]));
    }
}

/* The elements of block number BLOCK of a tensor of ELEMENTS. */
REPROD_HD void fill_block(const struct tensor *t, const struct filling *f, int64_t block,
                          int64_t elements)
{
    struct philox words = philox4x32(f->seed, f->stream, (uint64_t)block);
    int64_t each = fill_block_elements(t, f);
    int64_t first = block * each;
    for (int64_t k = 0; k < each && first + k < elements; k++) {
        fill_element(t, f, first + k, k, words);
    }
}

#endif
