/* What a filling puts into one element of a tensor (workloads/workload.h: enum fill): the
 * definition that every backend calls, so that inputs have the same bits everywhere.
 * C and CUDA. */
#ifndef WORKLOADS_WORKER_FILL_ELEMENT_H
#define WORKLOADS_WORKER_FILL_ELEMENT_H

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

REPROD_HD void fill_element(const struct tensor *t, const struct filling *f, int64_t i)
{
    uint64_t index = (uint64_t)i;
    if (f->fill == FILL_INDEX) {
        fill_store_index(t, i, philox_index(f->seed, f->stream, index, f->limit));
    } else if (t->dtype == DTYPE_FLOAT64) {
        ((double *)t->data)[i] = f->fill == FILL_WIDE
                                     ? philox_wide_f64(f->seed, f->stream, index)
                                     : philox_uniform_f64(f->seed, f->stream, index);
    } else {
        fill_store_float(t, i,
                         f->fill == FILL_WIDE
                             ? philox_wide_f32(f->seed, f->stream, index)
                             : philox_uniform_f32(f->seed, f->stream, index));
    }
}

#endif
