/* Variants that may compute with TF32: float32 data whose products Tensor Cores take of
 * operands with 11 bits.  Their names end in "_tf32".
 *
 * Sources: NVIDIA's cuDNN and cuBLAS documentation; Fasi, Higham, Mikaitis, Pranesh,
 * Numerical behavior of NVIDIA tensor cores (PeerJ CS 7:e330, 2021): what is added is
 * aligned and truncated. */
#ifndef WORKLOADS_SHARED_TF32_H
#define WORKLOADS_SHARED_TF32_H

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "workloads/workload.h"

/* Unit roundoffs: of an operand that is truncated (one that is rounded has half of it),
 * and of a sum on Tensor Cores. */
#define TF32_UNIT_OPERAND 0x1p-10
#define TF32_UNIT_SUM     0x1p-22

static inline bool tf32_is_permitted(const struct run *run)
{
    static const char ending[] = "_tf32";
    size_t length = strlen(run->variant->name), wanted = sizeof ending - 1;

    return length > wanted && strcmp(run->variant->name + length - wanted, ending) == 0;
}

/* As rounding_gamma (rounding.h), of N products with TF32. */
static inline double tf32_gamma(int64_t n)
{
    double nu = (double)(n + 1) * TF32_UNIT_SUM;
    double factors = (1 + TF32_UNIT_OPERAND) * (1 + TF32_UNIT_OPERAND);

    return nu < 1 ? factors * (1 + nu / (1 - nu)) - 1 : INFINITY;
}

#endif
