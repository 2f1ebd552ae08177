/* A small training from end to end, as slide 44 shows it: sum of weights and final loss
 * after some steps, without fixes and with.  The network is in train/cnn.h. */
#include "workloads/train/cnn.h"

static const struct workload_size sizes[] = {
    { "small", "8 steps of 32 images 16x16, convolutions of 8 and 16 channels",
      &(const struct cnn_shape){ .side = 16,
                                 .channels1 = 8,
                                 .channels2 = 16,
                                 .batch = 32,
                                 .steps = 8,
                                 .examples = 256 } },
    { "medium", "64 steps of 64 images 16x16, convolutions of 8 and 16 channels",
      &(const struct cnn_shape){ .side = 16,
                                 .channels1 = 8,
                                 .channels2 = 16,
                                 .batch = 64,
                                 .steps = 64,
                                 .examples = 1024 } },
    { "large", "256 steps of 64 images 32x32, convolutions of 16 and 32 channels",
      &(const struct cnn_shape){ .side = 32,
                                 .channels1 = 16,
                                 .channels2 = 32,
                                 .batch = 64,
                                 .steps = 256,
                                 .examples = 4096 } },
};

static const struct workload train_cnn = {
    .name = "train_cnn",
    .version = 2,
    .title = "Training of a small CNN",
    WORKLOAD_SIZES(sizes),
    CNN_TRAINING,
};
WORKLOAD_REGISTER(train_cnn);
