/* Stateful random ops; workloads/stateful_random.c defines the operation.  A block is an
 * op that runs beside others; with `last_thread` a grid is an op, and ops follow each
 * other in one stream.  All but the control have the bits of the CPU's.
 *
 * TensorFlow's kernels share one counter of arrivals in the device's memory.  Two of them
 * at once would mix their counts; in one stream they never are. */
#include "cuda/kernels/kernel.h"
#include "workloads/stateful_random.h"

/* How the blocks know where their op's numbers begin. */
enum placing {
    AS_THEY_COME, /* from the state that all share */
    SKIPPED,      /* from the ops before */
    OWN           /* at the beginning of their own generator */
};

__global__ static void start_kernel(struct stateful_random random)
{
    random.state[0] = STATEFUL_FIRST;
    random.state[1] = 0;
}

__device__ static int64_t position_take(const struct stateful_random *random,
                                        enum placing placing, int64_t op)
{
    int64_t taken =
        stateful_before(&random->shape, op + 1) - stateful_before(&random->shape, op);

    if (placing == AS_THEY_COME) {
        return (int64_t)atomicAdd((unsigned long long *)random->state,
                                  (unsigned long long)taken);
    }
    return stateful_skip_to(&random->shape, placing == SKIPPED ? op : 0);
}

__global__ static void op_kernel(struct stateful_random random, enum placing placing)
{
    int64_t op = blockIdx.x, begin = stateful_before(&random.shape, op);
    int64_t end = stateful_before(&random.shape, op + 1);
    uint64_t stream =
        placing == OWN ? stateful_own_stream(random.stream, op) : random.stream;

    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
        random.y[i] = stateful_activation(random.x[i]);
    }
    if (threadIdx.x == 0) {
        random.positions[op] = position_take(&random, placing, op);
    }
    __syncthreads();
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
        random.y[i] += philox_uniform_f32(random.seed, stream,
                                          (uint64_t)(random.positions[op] + i - begin));
    }
}

static void ops_run(struct run *run, enum placing placing)
{
    const struct stateful_random *random = (const struct stateful_random *)run->state;

    LAUNCH(start_kernel, 1, 1, 0, 0, *random);
    LAUNCH(op_kernel, (unsigned)random->shape.ops, KERNEL_THREADS, 0, 0, *random,
           placing);
}

static void compute_unordered(struct run *run)
{
    ops_run(run, AS_THEY_COME);
}

static void compute_skipped(struct run *run)
{
    ops_run(run, SKIPPED);
}

static void compute_stateless(struct run *run)
{
    ops_run(run, OWN);
}

/* All threads read the state; the last one to arrive behind its work advances it. */
__global__ static void last_thread_kernel(struct stateful_random random, int64_t op)
{
    int64_t begin = stateful_before(&random.shape, op);
    int64_t count = stateful_before(&random.shape, op + 1) - begin;
    __shared__ int64_t position;

    if (threadIdx.x == 0) {
        position = random.state[0];
    }
    __syncthreads();
    KERNEL_FOR(i, count)
    {
        random.y[begin + i] =
            stateful_activation(random.x[begin + i]) +
            philox_uniform_f32(random.seed, random.stream, (uint64_t)(position + i));
    }
    if ((int64_t)atomicAdd((unsigned long long *)&random.state[1], 1ULL) ==
        kernel_threads() - 1) {
        random.positions[op] = position;
        random.state[0] = position + count;
        random.state[1] = 0;
    }
}

static void compute_last_thread(struct run *run)
{
    const struct stateful_random *random = (const struct stateful_random *)run->state;
    const struct stateful_shape *shape = &random->shape;

    LAUNCH(start_kernel, 1, 1, 0, 0, *random);
    for (int64_t op = 0; op < shape->ops; op++) {
        LAUNCH_ITEMS(last_thread_kernel,
                     stateful_before(shape, op + 1) - stateful_before(shape, op), *random,
                     op);
    }
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "a block is an op: who comes first takes the next numbers",
      .algorithm = "one state, ops as they come",
      .control = true,
      .compute = compute_unordered },
    { .name = "last_thread",
      .algorithm = "one state, ops in order",
      .compute = compute_last_thread },
    { .name = "skipped",
      .algorithm = "one state, positions in order of ops",
      .compute = compute_skipped },
    { .name = "stateless", .algorithm = "generator an op", .compute = compute_stateless },
};

CUDA_TWIN(stateful_random, 1, variants, NULL);
