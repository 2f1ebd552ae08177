/* What both backends of atomics share. */
#ifndef WORKLOADS_ATOMICS_H
#define WORKLOADS_ATOMICS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    ATOMICS_INTEGERS = 1 << 20, /* values are less than this */
    ATOMICS_WRAP = 4,           /* atomicInc and atomicDec count 0 … this, and around */
    ATOMICS_EMPTY = -1          /* what atomicCAS expects to find */
};

enum atomics_operation {
    ATOMICS_ADD,
    ATOMICS_SUB,
    ATOMICS_EXCH,
    ATOMICS_MIN,
    ATOMICS_MAX,
    ATOMICS_INC,
    ATOMICS_DEC,
    ATOMICS_CAS,
    ATOMICS_AND,
    ATOMICS_OR,
    ATOMICS_XOR
};

struct atomics_shape {
    int64_t values; /* a multiple of 1024 */
    int64_t cells;
};

/* What a variant does. */
struct atomics_function {
    const char *variant;
    enum atomics_operation operation;
    bool is_float;
    float initial; /* what a cell holds at first; exact in int32 too */
};

/* What the variant of that name does; it is one of these. */
static inline const struct atomics_function *atomics_find(const char *variant)
{
    static const struct atomics_function functions[] = {
        { "add_float", ATOMICS_ADD, true, 0 },
        { "add_int", ATOMICS_ADD, false, 0 },
        { "sub_int", ATOMICS_SUB, false, 0 },
        { "exch_int", ATOMICS_EXCH, false, ATOMICS_EMPTY },
        { "exch_float", ATOMICS_EXCH, true, ATOMICS_EMPTY },
        { "min_int", ATOMICS_MIN, false, ATOMICS_INTEGERS },
        { "min_float", ATOMICS_MIN, true, ATOMICS_INTEGERS },
        { "max_int", ATOMICS_MAX, false, ATOMICS_EMPTY },
        { "max_float", ATOMICS_MAX, true, -ATOMICS_INTEGERS },
        { "inc", ATOMICS_INC, false, 0 },
        { "dec", ATOMICS_DEC, false, 0 },
        { "cas_int", ATOMICS_CAS, false, ATOMICS_EMPTY },
        { "cas_float", ATOMICS_CAS, true, ATOMICS_EMPTY },
        { "and", ATOMICS_AND, false, ATOMICS_EMPTY /* all bits */ },
        { "or", ATOMICS_OR, false, 0 },
        { "xor", ATOMICS_XOR, false, 0 },
    };

    for (unsigned i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        if (strcmp(functions[i].variant, variant) == 0) {
            return &functions[i];
        }
    }
    abort();
}

/* The state of a run, on every backend. */
struct atomics {
    int64_t values, cells;
    const int32_t *cell, *integers;
    const float *floats;
    void *result;
};

#endif
