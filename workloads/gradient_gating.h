/* What both backends of gradient_gating share. */
#ifndef WORKLOADS_GRADIENT_GATING_H
#define WORKLOADS_GRADIENT_GATING_H

/* Numbers in a variable, matrices, and steps of an iteration. */
enum { GATING_WIDTH = 96, GATING_MATRICES = 32, GATING_STEPS = 2 };

/* What a gradient is multiplied with. */
#define GATING_RATE 0x1p-11F

#endif
