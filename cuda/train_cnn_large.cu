/* The bigger training from end to end, on the GPU; workloads/train_cnn_large.c defines
 * the operation. `ordered` adds in the CPU's order, so it has the CPU's bits. */
#include "cuda/kernels/kernel.h"
#include "cuda/train/cnn.h"

CUDA_TWIN(train_cnn_large, 2, cnn_cuda_variants, cnn_cuda_setup);
