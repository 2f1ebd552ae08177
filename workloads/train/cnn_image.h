/* What every backend's layers share: where elements lie, and the loss of an example. */
#ifndef WORKLOADS_TRAIN_CNN_IMAGE_H
#define WORKLOADS_TRAIN_CNN_IMAGE_H

#include <stdint.h>

#include "workloads/instruments/hd.h"
#include "workloads/shared/exp_log.h"

/* The element of a padded image, [side + 2][side + 2][channels], that is element I of the
 * image. */
REPROD_HD int64_t padded(int64_t side, int64_t channels, int64_t i)
{
    int64_t row = i / (side * channels), rest = i % (side * channels);

    return ((row + 1) * (side + 2) + 1) * channels + rest;
}

/* The element of x (or of its gradient, padded) that the window of element I of the
 * pooled image took: tap TAP of its 3x3. */
REPROD_HD int64_t pool_winner(int64_t side, int64_t channels, int64_t i, uint8_t tap)
{
    int64_t pixel = i / channels, row = pixel / (side / 2), column = pixel % (side / 2);

    return ((2 * row + tap / 3) * (side + 2) + 2 * column + tap % 3) * channels +
           i % channels;
}

/* Softmax cross-entropy of one example: writes the gradient with respect to the logits,
 * divided by BATCH, in their place, and returns the loss. */
REPROD_HD float cross_entropy(float *logits, int64_t classes, int64_t label,
                              int64_t batch)
{
    float most = logits[0], sum = 0, chosen;

    for (int64_t c = 1; c < classes; c++) {
        most = logits[c] > most ? logits[c] : most;
    }
    chosen = logits[label] - most;
    for (int64_t c = 0; c < classes; c++) {
        logits[c] = exp_f32(logits[c] - most);
        sum += logits[c];
    }
    for (int64_t c = 0; c < classes; c++) {
        logits[c] = (logits[c] / sum - (c == label ? 1.0F : 0.0F)) / (float)batch;
    }
    return log_f32(sum) - chosen;
}

#endif
