/* A fact that may not be known.  Unknown has no value: nothing stands for it, and it is
 * left out wherever facts are written. */
#ifndef CUDA_NVML_FACT_H
#define CUDA_NVML_FACT_H

#include <stdbool.h>
#include <stdint.h>

#include "workloads/worker/emit.h"

enum { FACT_TEXT_SIZE = 96 }; /* NVML's longest text, a name or a UUID */

struct fact {
    bool known;
    int64_t value;
};

struct fact_text {
    bool known;
    char value[FACT_TEXT_SIZE];
};

struct nvml_ecc { /* errors in all memories of a GPU */
    struct fact corrected, uncorrected;
};

/* Adds what is known to the open object. */
static inline void fact_emit(struct emit *emit, const char *key, struct fact fact)
{
    if (fact.known) {
        emit_int(emit, key, fact.value);
    }
}

static inline void fact_emit_bool(struct emit *emit, const char *key, struct fact fact)
{
    if (fact.known) {
        emit_bool(emit, key, fact.value != 0);
    }
}

static inline void fact_emit_text(struct emit *emit, const char *key,
                                  const struct fact_text *fact)
{
    if (fact->known) {
        emit_string(emit, key, fact->value);
    }
}

#endif
