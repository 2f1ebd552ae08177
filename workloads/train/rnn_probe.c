#include "workloads/train/rnn_probe.h"

#include "workloads/train/rnn.h"

/* Variables, in the order in which they lie. */
enum section { INPUT, RECURRENT, BIAS, OUTPUT, SECTIONS };

static const struct {
    const char *name;
    int first, end;
} sections[SECTIONS] = {
    [INPUT] = { "input", RNN_INPUT, RNN_RECURRENT },
    [RECURRENT] = { "recurrent", RNN_RECURRENT, RNN_BIAS },
    [BIAS] = { "bias", RNN_BIAS, RNN_OUTPUT },
    [OUTPUT] = { "output", RNN_OUTPUT, RNN_VARIABLES },
};

enum value {
    LABELS = 1,
    X,
    HIDDEN,
    LOG_PROBS,
    D_LOGITS,
    LOSSES,
    BEFORE,
    GRADIENT = BEFORE + MOMENTUM_GRADIENT * SECTIONS,
    VALUES = BEFORE + MOMENTUM_KINDS * SECTIONS
};

enum {
    W_INPUT = BEFORE + INPUT,
    W_RECURRENT = BEFORE + RECURRENT,
    W_BIAS = BEFORE + BIAS,
    W_OUTPUT = BEFORE + OUTPUT
};

static const struct place places[] = {
    { "data/batch", { 0 }, { LABELS, X } },
    { "variable/input/before", { 0 }, { W_INPUT } },
    { "variable/recurrent/before", { 0 }, { W_RECURRENT } },
    { "variable/bias/before", { 0 }, { W_BIAS } },
    { "variable/output/before", { 0 }, { W_OUTPUT } },
    { "hidden/forward", { X, W_INPUT, W_RECURRENT, W_BIAS }, { HIDDEN } },
    { "softmax/forward", { HIDDEN, W_OUTPUT }, { LOG_PROBS } },
    { "loss", { LOG_PROBS, LABELS }, { LOSSES } },
    { "loss/backward", { LOG_PROBS, LABELS }, { D_LOGITS } },
    { "gradient/output", { D_LOGITS, HIDDEN }, { GRADIENT + OUTPUT } },
    { "gradient/bias", { D_LOGITS, HIDDEN, W_RECURRENT, W_OUTPUT }, { GRADIENT + BIAS } },
    { "gradient/recurrent",
      { D_LOGITS, HIDDEN, W_RECURRENT, W_OUTPUT },
      { GRADIENT + RECURRENT } },
    { "gradient/input",
      { D_LOGITS, HIDDEN, W_RECURRENT, W_OUTPUT, X },
      { GRADIENT + INPUT } },
    MOMENTUM_PLACES("input", BEFORE + INPUT, SECTIONS),
    MOMENTUM_PLACES("recurrent", BEFORE + RECURRENT, SECTIONS),
    MOMENTUM_PLACES("bias", BEFORE + BIAS, SECTIONS),
    MOMENTUM_PLACES("output", BEFORE + OUTPUT, SECTIONS),
};

void rnn_probe(struct run *run, int64_t step, const struct rnn_records *r)
{
    int64_t frames = r->batch * RNN_TIME;
    struct probe_value values[VALUES] = {
        [LABELS] = probe_ints("labels", r->labels, r->batch * RNN_LABELS),
        [X] = probe_floats("x", r->x, frames * RNN_FEATURES),
        [HIDDEN] =
            probe_floats("hidden", r->hidden, r->batch * (RNN_TIME + 1) * RNN_HIDDEN),
        [LOG_PROBS] = probe_floats("log_probs", r->log_probs, frames * RNN_SYMBOLS),
        [D_LOGITS] = probe_floats("d_logits", r->d_logits, frames * RNN_SYMBOLS),
        [LOSSES] = probe_floats("losses", r->losses, r->batch),
    };

    for (int i = 0; i < SECTIONS; i++) {
        momentum_section(&r->momentum, sections[i].name, sections[i].first,
                         sections[i].end, SECTIONS, &values[BEFORE + i]);
    }
    places_probe(run, step, values, places, COUNT_OF(places));
}
