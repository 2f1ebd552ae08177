/* What both backends of gradient_gating share. */
#ifndef WORKLOADS_GRADIENT_GATING_H
#define WORKLOADS_GRADIENT_GATING_H

#include <stdint.h>

/* Numbers in a variable, matrices, and steps of an iteration. */
enum { GATING_WIDTH = 96, GATING_MATRICES = 32, GATING_STEPS = 2 };

/* What a gradient is multiplied with. */
#define GATING_RATE 0x1p-11F

/* The state of a run, on every backend. */
struct gating {
    int64_t operations;
    const float *matrices; /* [GATING_MATRICES][GATING_WIDTH][GATING_WIDTH] */
    const float *initial;  /* [operations][GATING_WIDTH] */
    float *variables;      /* [operations][GATING_WIDTH] */
    float *gradients;      /* [operations][2][GATING_WIDTH] */
    float *before;         /* the variables before the step, where it is recorded */
};

#endif
