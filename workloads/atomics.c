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
#include "workloads/shared/references.h"
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
    { .name = "add_float",
      .summary = "atomicAdd of floats: every order rounds differently",
      .models = "CUDA atomicAdd(float)",
      .algorithm = "compare-and-swap loop",
      .control = true,
      .compute = compute },
    { .name = "add_int",
      .summary = "atomicAdd of integers: " COMMUTES,
      .models = "CUDA atomicAdd(int)",
      .algorithm = "atomic add",
      .compute = compute },
    { .name = "sub_int",
      .summary = "atomicSub: " COMMUTES,
      .models = "CUDA atomicSub",
      .algorithm = "atomic subtract",
      .compute = compute },
    { .name = "exch_int",
      .summary = "atomicExch of integers: who comes last stays",
      .models = "CUDA atomicExch(int)",
      .algorithm = "atomic exchange",
      .control = true,
      .compute = compute },
    { .name = "exch_float",
      .summary = "atomicExch of floats: who comes last stays",
      .models = "CUDA atomicExch(float)",
      .algorithm = "compare-and-swap loop",
      .control = true,
      .compute = compute },
    { .name = "min_int",
      .summary = "atomicMin: " COMMUTES,
      .models = "CUDA atomicMin",
      .algorithm = "compare-and-swap loop",
      .compute = compute },
    { .name = "min_float",
      .summary = "minimum of floats: " COMMUTES,
      .models = "CUDA atomicMin on floats, by their bits",
      .algorithm = "compare-and-swap loop",
      .compute = compute },
    { .name = "max_int",
      .summary = "atomicMax: " COMMUTES,
      .models = "CUDA atomicMax",
      .algorithm = "compare-and-swap loop",
      .compute = compute },
    { .name = "max_float",
      .summary = "maximum of floats: " COMMUTES,
      .models = "CUDA atomicMax on floats, by their bits",
      .algorithm = "compare-and-swap loop",
      .compute = compute },
    { .name = "inc",
      .summary = "atomicInc: counts arrivals, whoever arrives",
      .models = "CUDA atomicInc",
      .algorithm = "compare-and-swap loop",
      .compute = compute },
    { .name = "dec",
      .summary = "atomicDec: counts arrivals, whoever arrives",
      .models = "CUDA atomicDec",
      .algorithm = "compare-and-swap loop",
      .compute = compute },
    { .name = "cas_int",
      .summary = "atomicCAS of integers, from empty: who comes first stays",
      .models = "CUDA atomicCAS(int)",
      .algorithm = "compare-and-swap loop",
      .control = true,
      .compute = compute },
    { .name = "cas_float",
      .summary = "atomicCAS of the bits of floats, from empty: who comes first stays",
      .models = "CUDA atomicCAS on the bits of floats",
      .algorithm = "compare-and-swap loop",
      .control = true,
      .compute = compute },
    { .name = "and",
      .summary = "atomicAnd: " COMMUTES,
      .models = "CUDA atomicAnd",
      .algorithm = "atomic and",
      .compute = compute },
    { .name = "or",
      .summary = "atomicOr: " COMMUTES,
      .models = "CUDA atomicOr",
      .algorithm = "atomic or",
      .compute = compute },
    { .name = "xor",
      .summary = "atomicXor: " COMMUTES,
      .models = "CUDA atomicXor",
      .algorithm = "atomic xor",
      .compute = compute },
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
    GTC_SLIDES("slide 46",
               "ten atomic functions beside atomicAdd; not always non-deterministic",
               NULL),
    README_2020("Other Possible GPU-Specific Sources",
                "other-possible-gpu-specific-sources-of-non-determinism",
                "an atomic function in the code of an op does not prove that it varies",
                NULL),
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
