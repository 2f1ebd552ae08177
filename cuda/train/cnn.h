/* The training of workloads/train/cnn.h on the GPU, for train_cnn and train_cnn_large. */
#ifndef CUDA_TRAIN_CNN_H
#define CUDA_TRAIN_CNN_H

#include "workloads/train/cnn.h"

extern const struct workload_variant cnn_cuda_variants[CNN_VARIANTS];

/* Makes the inputs of the CPU's. */
void cnn_cuda_setup(struct run *run);

#endif
