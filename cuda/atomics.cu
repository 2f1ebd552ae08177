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

#define COMMUTES "the order cannot show: the operation commutes exactly"

static const struct workload_variant variants[] = {
    { "add_float", "atomicAdd of floats: every order rounds differently",
      "CUDA atomicAdd(float)", "atomicAdd", NULL, true, compute, NULL, NULL },
    { "add_int", "atomicAdd of integers: " COMMUTES, "CUDA atomicAdd(int)", "atomicAdd",
      NULL, false, compute, NULL, NULL },
    { "sub_int", "atomicSub: " COMMUTES, "CUDA atomicSub", "atomicSub", NULL, false,
      compute, NULL, NULL },
    { "exch_int", "atomicExch of integers: who comes last stays", "CUDA atomicExch(int)",
      "atomicExch", NULL, true, compute, NULL, NULL },
    { "exch_float", "atomicExch of floats: who comes last stays",
      "CUDA atomicExch(float)", "atomicExch", NULL, true, compute, NULL, NULL },
    { "min_int", "atomicMin: " COMMUTES, "CUDA atomicMin", "atomicMin", NULL, false,
      compute, NULL, NULL },
    { "min_float", "minimum of floats: " COMMUTES,
      "CUDA atomicMin on floats, by their bits", "atomicMin and atomicMax of the bits",
      NULL, false, compute, NULL, NULL },
    { "max_int", "atomicMax: " COMMUTES, "CUDA atomicMax", "atomicMax", NULL, false,
      compute, NULL, NULL },
    { "max_float", "maximum of floats: " COMMUTES,
      "CUDA atomicMax on floats, by their bits", "atomicMax and atomicMin of the bits",
      NULL, false, compute, NULL, NULL },
    { "inc", "atomicInc: counts arrivals, whoever arrives", "CUDA atomicInc", "atomicInc",
      NULL, false, compute, NULL, NULL },
    { "dec", "atomicDec: counts arrivals, whoever arrives", "CUDA atomicDec", "atomicDec",
      NULL, false, compute, NULL, NULL },
    { "cas_int", "atomicCAS of integers, from empty: who comes first stays",
      "CUDA atomicCAS(int)", "atomicCAS", NULL, true, compute, NULL, NULL },
    { "cas_float", "atomicCAS of the bits of floats, from empty: who comes first stays",
      "CUDA atomicCAS on the bits of floats", "atomicCAS of the bits", NULL, true,
      compute, NULL, NULL },
    { "and", "atomicAnd: " COMMUTES, "CUDA atomicAnd", "atomicAnd", NULL, false, compute,
      NULL, NULL },
    { "or", "atomicOr: " COMMUTES, "CUDA atomicOr", "atomicOr", NULL, false, compute,
      NULL, NULL },
    { "xor", "atomicXor: " COMMUTES, "CUDA atomicXor", "atomicXor", NULL, false, compute,
      NULL, NULL },
};

CUDA_TWIN(atomics, 1, variants, NULL);
