/* Gradients of the examples of a batch, or of groups of them, joined by the fixed tree of
 * workloads/shared/tree.h. */
#ifndef CUDA_TRAIN_PARTS_H
#define CUDA_TRAIN_PARTS_H

#include <stdint.h>

/* Sums COUNT parts, STRIDE elements from each other, and writes the first ELEMENTS of the
 * sum to GRADIENT.  The parts may not survive it. */
void parts_join(float *parts, int64_t count, int64_t stride, int64_t elements,
                float *gradient);

#endif
