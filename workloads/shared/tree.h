/* A sum whose order is fixed by the number of parts alone, never by threads: what the
 * `ordered` variants put in the place of atomic adds.  C and CUDA; cuda/kernels/tree.h
 * has it for the threads of a block. */
#ifndef WORKLOADS_SHARED_TREE_H
#define WORKLOADS_SHARED_TREE_H

#include <stdint.h>
#include <string.h>

#include "workloads/instruments/hd.h"

enum { TREE_CHUNK = 64 /* elements that a thread of a CPU joins at a time */ };

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

/* Joins COUNT parts, STRIDE elements apart, and stores their sum, of ELEMENTS, in TO. For
 * all threads of a CPU's team: complete when it returns. */
static inline void tree_join(float *to, int64_t elements, float *parts, int64_t count,
                             int64_t stride)
{
#pragma omp for
    for (int64_t begin = 0; begin < elements; begin += TREE_CHUNK) {
        int64_t end = begin + TREE_CHUNK < elements ? begin + TREE_CHUNK : elements;

        tree_sum(parts, count, stride, begin, end);
        memcpy(to + begin, parts + begin, (size_t)(end - begin) * sizeof *to);
    }
}

#endif
