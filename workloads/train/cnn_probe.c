#include "workloads/train/cnn_probe.h"

#include <string.h>

/* What the places of a step read and write: the data, the buffers of enum cnn_buffer, and
 * what momentum.h has of the variables. */
enum value {
    ORDER = 1,
    LABELS,
    DROPS,
    WINNERS1,
    WINNERS2,
    LOSSES,
    BUFFER,
    BEFORE = BUFFER + CNN_BUFFERS,
    GRADIENT = BEFORE + MOMENTUM_GRADIENT * CNN_SECTIONS,
    VALUES = BEFORE + MOMENTUM_KINDS * CNN_SECTIONS
};

enum { W1, B1, W2, B2, W3, B3 };
enum {
    X = BUFFER + CNN_X,
    A1 = BUFFER + CNN_ACTIVE1,
    P1 = BUFFER + CNN_POOLED1,
    A2 = BUFFER + CNN_ACTIVE2,
    P2 = BUFFER + CNN_POOLED2,
    F = BUFFER + CNN_FEATURES,
    DL = BUFFER + CNN_D_LOGITS,
    DF = BUFFER + CNN_D_FEATURES,
    DS2 = BUFFER + CNN_D_SUM2,
    DP1 = BUFFER + CNN_D_POOLED1,
    DS1 = BUFFER + CNN_D_SUM1
};

static const char *const buffer_names[CNN_BUFFERS] = {
    [CNN_X] = "x",
    [CNN_ACTIVE1] = "active1",
    [CNN_POOLED1] = "pooled1",
    [CNN_ACTIVE2] = "active2",
    [CNN_POOLED2] = "pooled2",
    [CNN_FEATURES] = "features",
    [CNN_D_LOGITS] = "d_logits",
    [CNN_D_FEATURES] = "d_features",
    [CNN_D_SUM2] = "d_sum2",
    [CNN_D_POOLED1] = "d_pooled1",
    [CNN_D_SUM1] = "d_sum1",
};

static const char *const section_names[CNN_SECTIONS] = { "weights1", "bias1",
                                                         "weights2", "bias2",
                                                         "weights3", "bias3" };

#define VARIABLE(name, i)                                                                \
    {                                                                                    \
        "variable/" name "/before", { 0 },                                               \
        {                                                                                \
            BEFORE + (i)                                                                 \
        }                                                                                \
    }

static const struct place places[] = {
    { "data/batch", { 0 }, { ORDER, X } },
    { "rng/dropout", { 0 }, { DROPS } },
    VARIABLE("weights1", W1),
    VARIABLE("bias1", B1),
    VARIABLE("weights2", W2),
    VARIABLE("bias2", B2),
    VARIABLE("weights3", W3),
    VARIABLE("bias3", B3),
    { "conv1/forward", { X, BEFORE + W1, BEFORE + B1 }, { A1 } },
    { "pool1/forward", { A1 }, { P1, WINNERS1 } },
    { "conv2/forward", { P1, BEFORE + W2, BEFORE + B2 }, { A2 } },
    { "pool2/forward", { A2 }, { P2, WINNERS2 } },
    { "dropout/forward", { P2, DROPS }, { F } },
    { "loss", { F, BEFORE + W3, BEFORE + B3, LABELS, ORDER }, { LOSSES } },
    { "loss/backward", { F, BEFORE + W3, BEFORE + B3, LABELS, ORDER }, { DL } },
    { "dense/backward", { DL, BEFORE + W3, DROPS }, { DF } },
    { "gradient/weights3", { F, DL }, { GRADIENT + W3 } },
    { "gradient/bias3", { DL }, { GRADIENT + B3 } },
    { "pool2/backward", { DF, WINNERS2, A2 }, { DS2 } },
    { "gradient/weights2", { P1, DS2 }, { GRADIENT + W2 } },
    { "gradient/bias2", { DS2 }, { GRADIENT + B2 } },
    { "conv2/backward", { DS2, BEFORE + W2 }, { DP1 } },
    { "pool1/backward", { DP1, WINNERS1, A1 }, { DS1 } },
    { "gradient/weights1", { X, DS1 }, { GRADIENT + W1 } },
    { "gradient/bias1", { DS1 }, { GRADIENT + B1 } },
    MOMENTUM_PLACES("weights1", BEFORE + W1, CNN_SECTIONS),
    MOMENTUM_PLACES("bias1", BEFORE + B1, CNN_SECTIONS),
    MOMENTUM_PLACES("weights2", BEFORE + W2, CNN_SECTIONS),
    MOMENTUM_PLACES("bias2", BEFORE + B2, CNN_SECTIONS),
    MOMENTUM_PLACES("weights3", BEFORE + W3, CNN_SECTIONS),
    MOMENTUM_PLACES("bias3", BEFORE + B3, CNN_SECTIONS),
};

void cnn_buffer_sizes(const struct cnn_shape *s, int64_t ret_floats[CNN_BUFFERS])
{
    int64_t whole = s->side * s->side, whole_padded = (s->side + 2) * (s->side + 2);
    int64_t half = whole / 4, half_padded = (s->side / 2 + 2) * (s->side / 2 + 2);
    int64_t quarter = half / 4, quarter_padded = (s->side / 4 + 2) * (s->side / 4 + 2);
    const int64_t floats[CNN_BUFFERS] = {
        [CNN_X] = whole_padded,
        [CNN_ACTIVE1] = whole * s->channels1,
        [CNN_POOLED1] = half_padded * s->channels1,
        [CNN_ACTIVE2] = half * s->channels2,
        [CNN_POOLED2] = quarter_padded * s->channels2,
        [CNN_FEATURES] = quarter * s->channels2,
        [CNN_D_LOGITS] = CNN_CLASSES,
        [CNN_D_FEATURES] = quarter * s->channels2,
        [CNN_D_SUM2] = half_padded * s->channels2,
        [CNN_D_POOLED1] = half * s->channels1,
        [CNN_D_SUM1] = whole_padded * s->channels1,
    };

    memcpy(ret_floats, floats, sizeof floats);
}

static void sections_set(const struct cnn_records *r, struct probe_value *values)
{
    struct cnn_layout layout = cnn_layout_of(r->shape);
    int64_t bounds[CNN_SECTIONS + 1];

    cnn_sections(&layout, bounds);
    for (int i = 0; i < CNN_SECTIONS; i++) {
        momentum_section(&r->momentum, section_names[i], bounds[i], bounds[i + 1],
                         CNN_SECTIONS, &values[BEFORE + i]);
    }
}

void cnn_probe(struct run *run, int64_t step, const struct cnn_records *r)
{
    const struct cnn_shape *s = r->shape;
    int64_t batch = s->batch, at = step * batch, floats[CNN_BUFFERS];
    int64_t features, pooled1 = s->side / 2 * (s->side / 2) * s->channels1;
    struct probe_value values[VALUES] = {
        [ORDER] = probe_ints("order", r->inputs->order + at, batch),
        [LABELS] = probe_ints("labels", r->inputs->labels, s->examples),
        [WINNERS1] = probe_bytes("winners1", r->winners1, batch * pooled1),
        [LOSSES] = probe_floats("losses", r->losses, batch),
    };

    cnn_buffer_sizes(s, floats);
    features = floats[CNN_FEATURES];
    values[DROPS] =
        probe_ints("drops", r->inputs->drops + at * features, batch * features);
    values[WINNERS2] = probe_bytes("winners2", r->winners2, batch * features);

    for (int i = 0; i < CNN_BUFFERS; i++) {
        values[BUFFER + i] =
            probe_floats(buffer_names[i], r->buffers[i], batch * floats[i]);
    }
    sections_set(r, values);
    places_probe(run, step, values, places, COUNT_OF(places));
}
