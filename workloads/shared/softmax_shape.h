/* What both backends of softmax_xent and softmax_xent_sparse share. */
#ifndef WORKLOADS_SHARED_SOFTMAX_SHAPE_H
#define WORKLOADS_SHARED_SOFTMAX_SHAPE_H

#include "workloads/instruments/philox.h"
#include "workloads/workload.h"

enum { SOFTMAX_PANEL = 64 /* classes; divides the number of classes */ };

struct xent_shape {
    int64_t examples;
    int64_t classes; /* a multiple of SOFTMAX_PANEL */
};

/* Dense labels of one example: positive numbers, divided by their sum. */
static inline void xent_labels_fill(const struct run *run, int64_t example,
                                    int64_t classes, float *labels)
{
    uint64_t stream = philox_stream(run->seed, run->workload->name, "labels");
    double sum = 0;

    for (int64_t c = 0; c < classes; c++) {
        labels[c] =
            1 + philox_uniform_f32(run->seed, stream, (uint64_t)(example * classes + c));
        sum += labels[c];
    }
    for (int64_t c = 0; c < classes; c++) {
        labels[c] = (float)(labels[c] / sum);
    }
}

/* The mean of LOSSES in float32, as frameworks keep it. */
static inline float softmax_mean(const float *losses, int64_t examples)
{
    float sum = 0;

    for (int64_t b = 0; b < examples; b++) {
        sum += losses[b];
    }
    return sum / (float)examples;
}

#endif
