/* A sum whose order is fixed by the number of parts alone, never by threads: what the
 * `ordered` variants put in the place of atomic adds.  C and CUDA; cuda/kernels/tree.h
 * has it for the threads of a block. */
#ifndef WORKLOADS_SHARED_TREE_H
#define WORKLOADS_SHARED_TREE_H

#include <stdint.h>

#include "workloads/instruments/hd.h"

/* Adds COUNT parts of STRIDE elements each, pairwise and in place: part i takes part
 * i + 2^k, for the largest power of two below COUNT first.  The sum is left in part 0.
 * Only elements [BEGIN, END) of the parts are touched, so that threads can share the
 * elements out. */
REPROD_HD void tree_sum(float *parts, int64_t count, int64_t stride, int64_t begin,
                        int64_t end)
{
    int64_t half = 1;

    while (half * 2 < count) {
        half *= 2;
    }
    for (; half >= 1; half /= 2) {
        for (int64_t part = 0; part < half && part + half < count; part++) {
            float *to = parts + part * stride;
            const float *from = parts + (part + half) * stride;

            for (int64_t i = begin; i < end; i++) {
                to[i] += from[i];
            }
        }
        count = half < count ? half : count;
    }
}

#endif
