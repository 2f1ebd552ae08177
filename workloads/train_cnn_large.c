/* The bigger configuration of slide 44: as train_cnn, with more of everything.  The
 * network is in train/cnn.h. */
#include "workloads/train/cnn.h"

static const struct workload_size sizes[] = {
    { "small", "8 steps of 32 images 16x16, convolutions of 16 and 32 channels",
      &(const struct cnn_shape){ .side = 16,
                                 .channels1 = 16,
                                 .channels2 = 32,
                                 .batch = 32,
                                 .steps = 8,
                                 .examples = 256 } },
    { "medium", "64 steps of 64 images 32x32, convolutions of 16 and 32 channels",
      &(const struct cnn_shape){ .side = 32,
                                 .channels1 = 16,
                                 .channels2 = 32,
                                 .batch = 64,
                                 .steps = 64,
                                 .examples = 2048 } },
    { "large", "256 steps of 128 images 64x64, convolutions of 32 and 64 channels",
      &(const struct cnn_shape){ .side = 64,
                                 .channels1 = 32,
                                 .channels2 = 64,
                                 .batch = 128,
                                 .steps = 256,
                                 .examples = 8192 } },
};

static const struct workload train_cnn_large = {
    .name = "train_cnn_large",
    .version = 2,
    .title = "Training of a bigger CNN",
    WORKLOAD_SIZES(sizes),
    CNN_TRAINING,
};
WORKLOAD_REGISTER(train_cnn_large);
