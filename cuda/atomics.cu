/* The eleven atomic functions of CUDA themselves; workloads/atomics.c defines what each
 * is to leave behind.  Those that commute exactly have one result, the CPU's too. */
#include "cuda/kernels/kernel.h"
#include "workloads/atomics.h"

#include "workloads/instruments/bits.h"

__global__ static void begin_kernel(struct atomics atomics, bool is_float, float initial)
{
    KERNEL_FOR(c, atomics.cells)
    {
        if (is_float) {
            ((float *)atomics.result)[c] = initial;
        } else {
            ((int32_t *)atomics.result)[c] = (int32_t)initial;
        }
    }
}

__device__ static void integer_update(enum atomics_operation operation, int *cell,
                                      int value)
{
    switch (operation) {
    case ATOMICS_ADD:
        atomicAdd(cell, value);
        break;
    case ATOMICS_SUB:
        atomicSub(cell, value);
        break;
    case ATOMICS_EXCH:
        atomicExch(cell, value);
        break;
    case ATOMICS_MIN:
        atomicMin(cell, value);
        break;
    case ATOMICS_MAX:
        atomicMax(cell, value);
        break;
    case ATOMICS_INC:
        atomicInc((unsigned *)cell, ATOMICS_WRAP);
        break;
    case ATOMICS_DEC:
        atomicDec((unsigned *)cell, ATOMICS_WRAP);
        break;
    case ATOMICS_CAS:
        atomicCAS(cell, ATOMICS_EMPTY, value);
        break;
    case ATOMICS_AND:
        atomicAnd(cell, value);
        break;
    case ATOMICS_OR:
        atomicOr(cell, value);
        break;
    case ATOMICS_XOR:
        atomicXor(cell, value);
        break;
    }
}

/* There is no function for floats; their bits do.  As signed numbers, the bits of what is
 * not negative are in order, and above those of all that is negative; as unsigned ones,
 * the bits of what is negative are in reverse order, and above all others. */
__device__ static void float_minimum(float *cell, float value)
{
    if (value < 0) {
        atomicMax((unsigned *)cell, f32_bits(value));
    } else {
        atomicMin((int *)cell, (int)f32_bits(value));
    }
}

__device__ static void float_maximum(float *cell, float value)
{
    if (value < 0) {
        atomicMin((unsigned *)cell, f32_bits(value));
    } else {
        atomicMax((int *)cell, (int)f32_bits(value));
    }
}

__device__ static void float_update(enum atomics_operation operation, float *cell,
                                    float value)
{
    switch (operation) {
    case ATOMICS_ADD:
        atomicAdd(cell, value);
        break;
    case ATOMICS_EXCH:
        atomicExch(cell, value);
        break;
    case ATOMICS_MIN:
        float_minimum(cell, value);
        break;
    case ATOMICS_MAX:
        float_maximum(cell, value);
        break;
    default: /* ATOMICS_CAS */
        atomicCAS((unsigned *)cell, f32_bits(ATOMICS_EMPTY), f32_bits(value));
        break;
    }
}

__global__ static void update_kernel(struct atomics atomics,
                                     enum atomics_operation operation, bool is_float)
{
    KERNEL_FOR(i, atomics.values)
    {
        int64_t to = atomics.cell[i];

        if (is_float) {
            float_update(operation, (float *)atomics.result + to, atomics.floats[i]);
        } else {
            integer_update(operation, (int *)atomics.result + to, atomics.integers[i]);
        }
    }
}

static void compute(struct run *run)
{
    const struct atomics *atomics = (const struct atomics *)run->state;
    const struct atomics_function *function = atomics_find(run->variant->name);

    LAUNCH_ITEMS(begin_kernel, atomics->cells, *atomics, function->is_float,
                 function->initial);
    LAUNCH_ITEMS(update_kernel, atomics->values, *atomics, function->operation,
                 function->is_float);
}

static const struct workload_variant variants[] = {
    { .name = "add_float",
      .algorithm = "atomicAdd",
      .control = true,
      .compute = compute },
    { .name = "add_int", .algorithm = "atomicAdd", .compute = compute },
    { .name = "sub_int", .algorithm = "atomicSub", .compute = compute },
    { .name = "exch_int",
      .algorithm = "atomicExch",
      .control = true,
      .compute = compute },
    { .name = "exch_float",
      .algorithm = "atomicExch",
      .control = true,
      .compute = compute },
    { .name = "min_int", .algorithm = "atomicMin", .compute = compute },
    { .name = "min_float",
      .algorithm = "atomicMin and atomicMax of the bits",
      .compute = compute },
    { .name = "max_int", .algorithm = "atomicMax", .compute = compute },
    { .name = "max_float",
      .algorithm = "atomicMax and atomicMin of the bits",
      .compute = compute },
    { .name = "inc", .algorithm = "atomicInc", .compute = compute },
    { .name = "dec", .algorithm = "atomicDec", .compute = compute },
    { .name = "cas_int", .algorithm = "atomicCAS", .control = true, .compute = compute },
    { .name = "cas_float",
      .algorithm = "atomicCAS of the bits",
      .control = true,
      .compute = compute },
    { .name = "and", .algorithm = "atomicAnd", .compute = compute },
    { .name = "or", .algorithm = "atomicOr", .compute = compute },
    { .name = "xor", .algorithm = "atomicXor", .compute = compute },
};

CUDA_TWIN(atomics, 1, variants, NULL);
