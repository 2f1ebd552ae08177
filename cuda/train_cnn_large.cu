/* The bigger training from end to end, on the GPU; workloads/train_cnn_large.c defines
 * the operation. `ordered` adds in the CPU's order, so it has the CPU's bits. */
#include "cuda/train/cnn.h"

static const struct workload train_cnn_large_cuda = {
    .name = "train_cnn_large",
    .version = 2,
    .backend = "cuda",
    .variants = cnn_cuda_variants,
    .variant_count = CNN_VARIANTS,
    .setup = cnn_cuda_setup,
};
WORKLOAD_REGISTER(train_cnn_large_cuda);
