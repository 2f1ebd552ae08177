/* What a step of SGD with momentum records of the variables, section by section: the same
 * for every training.
 *
 * The probe values of a section are MOMENTUM_KINDS many, and of each kind those of all
 * sections stand side by side: kind K of section S is value FIRST + K * SECTIONS + S. */
#ifndef WORKLOADS_TRAIN_MOMENTUM_H
#define WORKLOADS_TRAIN_MOMENTUM_H

#include "workloads/shared/probing.h"

enum momentum_kind {
    MOMENTUM_BEFORE, /* variables before the update */
    MOMENTUM_GRADIENT,
    MOMENTUM_VELOCITY_BEFORE,
    MOMENTUM_VELOCITY,
    MOMENTUM_AFTER,
    MOMENTUM_KINDS
};

/* Where a step has left them, in the device's memory: as long as the variables. */
struct momentum_records {
    const float *before, *variables;
    const float *velocity_before, *velocity;
    const float *gradient; /* as the update used it */
};

/* Sets the values of the section of variables [BEGIN, END), of which ret_values is that
 * before the update. */
static inline void momentum_section(const struct momentum_records *r, const char *name,
                                    int64_t begin, int64_t end, int sections,
                                    struct probe_value *ret_values)
{
    const float *const data[MOMENTUM_KINDS] = { r->before, r->gradient,
                                                r->velocity_before, r->velocity,
                                                r->variables };

    for (int kind = 0; kind < MOMENTUM_KINDS; kind++) {
        ret_values[kind * sections] = probe_floats(name, data[kind] + begin, end - begin);
    }
}

/* The two places of an update: the optimizer's state, and the variables.  VALUE is that
 * of the section before the update. */
#define MOMENTUM_PLACES(name, value, sections)                                           \
    { "optimizer/" name,                                                                 \
      { (value) + MOMENTUM_VELOCITY_BEFORE * (sections),                                 \
        (value) + MOMENTUM_GRADIENT * (sections) },                                      \
      { (value) + MOMENTUM_VELOCITY * (sections) } },                                    \
    {                                                                                    \
        "variable/" name "/after",                                                       \
            { (value), (value) + MOMENTUM_VELOCITY * (sections) },                       \
        {                                                                                \
            (value) + MOMENTUM_AFTER *(sections)                                         \
        }                                                                                \
    }

#endif
