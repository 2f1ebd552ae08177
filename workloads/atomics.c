/* The eleven atomic functions of CUDA, each on cells that several threads share: which of
 * them let the order of the threads into the result, and which do not.  An atomic
 * function in a kernel proves nothing by itself: integer sums, extrema and bit operations
 * commute exactly; floating-point sums round; exchange and compare-and-swap keep whoever
 * came last, or first.
 *
 * Value i goes to cell cells[i]; it is integers[i] or floats[i].  The result is what the
 * cells hold in the end: int32 or float32. */
#include "workloads/atomics.h"

#include <stdlib.h>
#include <string.h>

#include "workloads/instruments/bits.h"
#include "workloads/shared/rounding.h"
#include "workloads/workload.h"

enum { TASK = 1024 };

/* One value after VALUE arrived in a cell that held HELD. */
static int32_t integer_result(enum atomics_operation operation, int32_t held,
                              int32_t value)
{
    switch (operation) {
    case ATOMICS_MIN:
        return value < held ? value : held;
    case ATOMICS_MAX:
        return value > held ? value : held;
    case ATOMICS_INC:
        return held >= ATOMICS_WRAP ? 0 : held + 1;
    case ATOMICS_DEC:
        return held == 0 || held > ATOMICS_WRAP ? ATOMICS_WRAP : held - 1;
    case ATOMICS_CAS:
        return held == ATOMICS_EMPTY ? value : held;
    default:
        abort();
    }
}

static float float_result(enum atomics_operation operation, float held, float value)
{
    switch (operation) {
    case ATOMICS_ADD:
        return held + value;
    case ATOMICS_EXCH:
        return value;
    case ATOMICS_MIN:
        return value < held ? value : held;
    case ATOMICS_MAX:
        return value > held ? value : held;
    case ATOMICS_CAS:
        return held == (float)ATOMICS_EMPTY ? value : held;
    default:
        abort();
    }
}

static void integer_update(enum atomics_operation operation, int32_t *cell, int32_t value)
{
    int32_t held = __atomic_load_n(cell, __ATOMIC_RELAXED);

    switch (operation) {
    case ATOMICS_ADD:
        __atomic_fetch_add(cell, value, __ATOMIC_RELAXED);
        return;
    case ATOMICS_SUB:
        __atomic_fetch_sub(cell, value, __ATOMIC_RELAXED);
        return;
    case ATOMICS_EXCH:
        __atomic_exchange_n(cell, value, __ATOMIC_RELAXED);
        return;
    case ATOMICS_AND:
        __atomic_fetch_and(cell, value, __ATOMIC_RELAXED);
        return;
    case ATOMICS_OR:
        __atomic_fetch_or(cell, value, __ATOMIC_RELAXED);
        return;
    case ATOMICS_XOR:
        __atomic_fetch_xor(cell, value, __ATOMIC_RELAXED);
        return;
    default:
        while (!__atomic_compare_exchange_n(cell, &held,
                                            integer_result(operation, held, value), true,
                                            __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            continue;
        }
    }
}

static void float_update(enum atomics_operation operation, uint32_t *cell, float value)
{
    uint32_t held = __atomic_load_n(cell, __ATOMIC_RELAXED), next;

    do {
        next = f32_bits(float_result(operation, f32_from_bits(held), value));
    } while (!__atomic_compare_exchange_n(cell, &held, next, true, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
}

static void cells_begin(const struct atomics *atomics,
                        const struct atomics_function *function)
{
    for (int64_t c = 0; c < atomics->cells; c++) {
        if (function->is_float) {
            ((float *)atomics->result)[c] = function->initial;
        } else {
            ((int32_t *)atomics->result)[c] = (int32_t)function->initial;
        }
    }
}

static void compute(struct run *run)
{
    const struct atomics *atomics = run->state;
    const struct atomics_function *function = atomics_find(run->variant->name);

    cells_begin(atomics, function);
#pragma omp parallel for num_threads(run->threads) schedule(dynamic, 1)
    for (int64_t task = 0; task < atomics->values / TASK; task++) {
        for (int64_t i = task * TASK; i < (task + 1) * TASK; i++) {
            int32_t to = atomics->cell[i];

            if (function->is_float) {
                float_update(function->operation, (uint32_t *)atomics->result + to,
                             atomics->floats[i]);
            } else {
                integer_update(function->operation, (int32_t *)atomics->result + to,
                               atomics->integers[i]);
            }
        }
    }
}

static void setup(struct run *run)
{
    const struct atomics_shape *shape = run->size->params;
    struct atomics *atomics = run_host_alloc(sizeof *atomics);
    enum dtype dtype =
        atomics_find(run->variant->name)->is_float ? DTYPE_FLOAT32 : DTYPE_INT32;
    const int64_t *values = &shape->values;

    atomics->values = shape->values;
    atomics->cells = shape->cells;
    atomics->cell = run_input_i32(run, "cells", 1, values, shape->cells);
    atomics->integers = run_input_i32(run, "integers", 1, values, ATOMICS_INTEGERS);
    atomics->floats = run_input_f32(run, "floats", 1, values, FILL_WIDE);
    atomics->result = run_output(run, "result", dtype, 1, &shape->cells)->data;
    run->state = atomics;
}

/* The values of a cell one after another, in order of their index. */
static double exact_result(const struct atomics_function *function, double held,
                           double value)
{
    int64_t bits = (int64_t)held, mask = (int64_t)value;

    switch (function->operation) {
    case ATOMICS_ADD:
        return held + value;
    case ATOMICS_SUB:
        return held - value;
    case ATOMICS_EXCH:
        return value;
    case ATOMICS_MIN:
        return fmin(held, value);
    case ATOMICS_MAX:
        return fmax(held, value);
    case ATOMICS_INC:
        return held >= ATOMICS_WRAP ? 0 : held + 1;
    case ATOMICS_DEC:
        return held == 0 || held > ATOMICS_WRAP ? ATOMICS_WRAP : held - 1;
    case ATOMICS_CAS:
        return held == ATOMICS_EMPTY ? value : held;
    case ATOMICS_AND:
        return (double)(bits & mask);
    case ATOMICS_OR:
        return (double)(bits | mask);
    default:
        return (double)(bits ^ mask);
    }
}

/* Sums of floats have the bound of any sum.  After an exchange or a compare-and-swap any
 * value of the cell is as right as another: the bound is the distance to the farthest.
 * The rest is exact. */
static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    const struct atomics_function *function = atomics_find(run->variant->name);
    bool sums = function->is_float && function->operation == ATOMICS_ADD;
    bool keeps_one =
        function->operation == ATOMICS_EXCH || function->operation == ATOMICS_CAS;
    const int32_t *cells = inputs[0].data, *integers = inputs[1].data;
    const float *floats = inputs[2].data;
    int64_t values = tensor_elements(&inputs[0]), elements = tensor_elements(output);
    int64_t *counts = run_host_alloc((size_t)elements * sizeof *counts);

    memset(counts, 0, (size_t)elements * sizeof *counts);
    for (int64_t c = 0; c < elements; c++) {
        ret_expected[c] = function->initial;
        ret_bound[c] = 0;
    }
    for (int64_t i = 0; i < values; i++) {
        double value = function->is_float ? floats[i] : integers[i];

        ret_expected[cells[i]] = exact_result(function, ret_expected[cells[i]], value);
        ret_bound[cells[i]] += sums ? fabs(value) : 0;
        counts[cells[i]]++;
    }
    for (int64_t c = 0; c < elements && sums; c++) {
        ret_bound[c] *= rounding_gamma(DTYPE_FLOAT32, counts[c]);
    }
    for (int64_t i = 0; i < values && keeps_one; i++) {
        double value = function->is_float ? floats[i] : integers[i];

        ret_bound[cells[i]] =
            fmax(ret_bound[cells[i]], fabs(value - ret_expected[cells[i]]));
    }
    free(counts);
}

#define COMMUTES "the order cannot show: the operation commutes exactly"

static const struct workload_variant variants[] = {
    { "add_float", "atomicAdd of floats: every order rounds differently",
      "CUDA atomicAdd(float)", "compare-and-swap loop", NULL, true, compute, NULL, NULL },
    { "add_int", "atomicAdd of integers: " COMMUTES, "CUDA atomicAdd(int)", "atomic add",
      NULL, false, compute, NULL, NULL },
    { "sub_int", "atomicSub: " COMMUTES, "CUDA atomicSub", "atomic subtract", NULL, false,
      compute, NULL, NULL },
    { "exch_int", "atomicExch of integers: who comes last stays", "CUDA atomicExch(int)",
      "atomic exchange", NULL, true, compute, NULL, NULL },
    { "exch_float", "atomicExch of floats: who comes last stays",
      "CUDA atomicExch(float)", "compare-and-swap loop", NULL, true, compute, NULL,
      NULL },
    { "min_int", "atomicMin: " COMMUTES, "CUDA atomicMin", "compare-and-swap loop", NULL,
      false, compute, NULL, NULL },
    { "min_float", "minimum of floats: " COMMUTES,
      "CUDA atomicMin on floats, by their bits", "compare-and-swap loop", NULL, false,
      compute, NULL, NULL },
    { "max_int", "atomicMax: " COMMUTES, "CUDA atomicMax", "compare-and-swap loop", NULL,
      false, compute, NULL, NULL },
    { "max_float", "maximum of floats: " COMMUTES,
      "CUDA atomicMax on floats, by their bits", "compare-and-swap loop", NULL, false,
      compute, NULL, NULL },
    { "inc", "atomicInc: counts arrivals, whoever arrives", "CUDA atomicInc",
      "compare-and-swap loop", NULL, false, compute, NULL, NULL },
    { "dec", "atomicDec: counts arrivals, whoever arrives", "CUDA atomicDec",
      "compare-and-swap loop", NULL, false, compute, NULL, NULL },
    { "cas_int", "atomicCAS of integers, from empty: who comes first stays",
      "CUDA atomicCAS(int)", "compare-and-swap loop", NULL, true, compute, NULL, NULL },
    { "cas_float", "atomicCAS of the bits of floats, from empty: who comes first stays",
      "CUDA atomicCAS on the bits of floats", "compare-and-swap loop", NULL, true,
      compute, NULL, NULL },
    { "and", "atomicAnd: " COMMUTES, "CUDA atomicAnd", "atomic and", NULL, false, compute,
      NULL, NULL },
    { "or", "atomicOr: " COMMUTES, "CUDA atomicOr", "atomic or", NULL, false, compute,
      NULL, NULL },
    { "xor", "atomicXor: " COMMUTES, "CUDA atomicXor", "atomic xor", NULL, false, compute,
      NULL, NULL },
};

static const struct workload_size sizes[] = {
    { "small", "1048576 values to 262144 cells",
      &(const struct atomics_shape){ 1048576, 262144 } },
    { "medium", "4194304 values to 1048576 cells",
      &(const struct atomics_shape){ 4194304, 1048576 } },
    { "large", "67108864 values to 16777216 cells",
      &(const struct atomics_shape){ 67108864, 16777216 } },
};

static const struct workload_reference references[] = {
    { "GTC S9911 slide 46",
      "ten atomic functions beside atomicAdd; not always non-deterministic", NULL },
    { "framework determinism README, Other Possible GPU-Specific Sources",
      "an atomic function in the code of an op does not prove that it varies", NULL },
};

static const struct workload atomics = {
    .name = "atomics",
    .version = 1,
    .title = "CUDA atomic functions",
    .summary = "values that meet in shared cells through one atomic function",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of the cells",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(atomics);
