/* Gradients of softmax attention; workloads/attention_bwd.c defines the operation.
 *
 * A thread block owns KEYS keys of a head and goes through the queries, QUERIES at a
 * time; what it finds for dq meets that of other blocks in atomicAdd, or has a place of
 * its own. expf of the GPU is not that of the CPU's library, so no variant promises the
 * CPU's bits; blocks of keys are larger here, and sums over keys a warp's own. */
#include "cuda/kernels/kernel.h"
#include "workloads/attention_bwd.h"

#include <math.h>

enum {
    KEYS = WARP_LANES,            /* of a block: one a lane */
    QUERIES = 32,                 /* that a block works on at a time */
    LINES = KERNEL_THREADS / KEYS /* queries that its threads see at once */
};

struct attention_bwd {
    struct attention_shape shape;
    int64_t blocks; /* of keys, in a head */
    float scale;    /* 1 / sqrt(depth) */
    const float *q, *k, *v, *upstream;
    float *dq, *dk, *dv;
    float *most, *sum; /* of each query's scores: the largest, and the sum of exp */
    float *delta;
    float *parts; /* dq of each block of keys, for the ordered variant */
};

__device__ static float dot(const float *a, const float *b, int64_t depth)
{
    float sum = 0;

    for (int64_t d = 0; d < depth; d++) {
        sum += a[d] * b[d];
    }
    return sum;
}

__device__ static float score_of(const struct attention_bwd *attention, int64_t i,
                                 int64_t j)
{
    int64_t depth = attention->shape.depth;

    return dot(attention->q + i * depth, attention->k + j * depth, depth) *
           attention->scale;
}

/* The gradient of p of query I and key J. */
__device__ static float weight_gradient(const struct attention_bwd *attention, int64_t i,
                                        int64_t j)
{
    int64_t depth = attention->shape.depth;

    return dot(attention->upstream + i * depth, attention->v + j * depth, depth);
}

/* What the forward pass saves: most, sum and delta.  A warp a query. */
__global__ static void prepare_kernel(struct attention_bwd attention)
{
    const struct attention_shape *s = &attention.shape;
    int64_t lane = threadIdx.x % WARP_LANES;

    for (int64_t i = kernel_thread() / WARP_LANES; i < s->heads * s->length;
         i += kernel_threads() / WARP_LANES) {
        int64_t first = i / s->length * s->length, end = first + s->length;
        float most = -INFINITY, sum = 0, delta = 0;

        for (int64_t j = first + lane; j < end; j += WARP_LANES) {
            most = fmaxf(most, score_of(&attention, i, j));
        }
        for (int step = WARP_LANES / 2; step > 0; step /= 2) {
            most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, step));
        }
        for (int64_t j = first + lane; j < end; j += WARP_LANES) {
            float weight = expf(score_of(&attention, i, j) - most);

            sum += weight;
            delta += weight * weight_gradient(&attention, i, j);
        }
        sum = warp_sum(sum);
        delta = warp_sum(delta);
        if (lane == 0) {
            attention.most[i] = most;
            attention.sum[i] = sum;
            attention.delta[i] = delta / sum;
        }
    }
}

/* Pairs of queries and keys: p, and what k is multiplied with in dq, and q in dk. */
struct pairs {
    float p[QUERIES][KEYS], ds[QUERIES][KEYS];
};

/* The pairs of QUERIES queries from I on with the block's keys from J on, zeros where
 * there is nothing. */
__device__ static void pairs_compute(const struct attention_bwd *attention, int64_t i,
                                     int64_t end_query, int64_t j, int64_t end_key,
                                     struct pairs *ret_pairs)
{
    int64_t key = j + threadIdx.x;

    for (int line = (int)threadIdx.y; line < QUERIES; line += LINES) {
        int64_t query = i + line;
        float p = 0, ds = 0;

        if (query < end_query && key < end_key) {
            p = expf(score_of(attention, query, key) - attention->most[query]) /
                attention->sum[query];
            ds = p * (weight_gradient(attention, query, key) - attention->delta[query]) *
                 attention->scale;
        }
        ret_pairs->p[line][threadIdx.x] = p;
        ret_pairs->ds[line][threadIdx.x] = ds;
    }
}

/* One block a block of keys. */
__global__ static void block_kernel(struct attention_bwd attention, bool atomically)
{
    __shared__ struct pairs pairs;
    DYNAMIC_SHARED(float, sums); /* dk, then dv: [KEYS][depth] each */
    const struct attention_shape *s = &attention.shape;
    int64_t head = blockIdx.x / attention.blocks * s->length, end = head + s->length;
    int64_t first_key = head + blockIdx.x % attention.blocks * KEYS, depth = s->depth;
    int64_t keys = end - first_key < KEYS ? end - first_key : (int64_t)KEYS;
    int64_t thread = threadIdx.y * KEYS + threadIdx.x, elements = KEYS * depth;

    /* From first to last, an element of the sums belongs to one thread. */
    for (int64_t e = thread; e < 2 * elements; e += KERNEL_THREADS) {
        sums[e] = 0;
    }
    for (int64_t i = head; i < end; i += QUERIES) {
        int64_t queries = end - i < QUERIES ? end - i : (int64_t)QUERIES;

        pairs_compute(&attention, i, end, first_key, end, &pairs);
        __syncthreads();
        for (int64_t e = thread; e < elements; e += KERNEL_THREADS) {
            for (int64_t query = 0; query < queries; query++) {
                int64_t at = (i + query) * depth + e % depth;

                sums[e] += pairs.ds[query][e / depth] * attention.q[at];
                sums[elements + e] += pairs.p[query][e / depth] * attention.upstream[at];
            }
        }
        for (int64_t e = thread; e < queries * depth; e += KERNEL_THREADS) {
            const float *k = attention.k + first_key * depth + e % depth;
            float sum = 0;

            for (int64_t key = 0; key < keys; key++) {
                sum += pairs.ds[e / depth][key] * k[key * depth];
            }
            if (atomically) {
                atomicAdd(&attention.dq[i * depth + e], sum);
            } else {
                attention.parts[(blockIdx.x * s->length + i - head) * depth + e] = sum;
            }
        }
        __syncthreads();
    }
    for (int64_t e = thread; e < keys * depth; e += KERNEL_THREADS) {
        attention.dk[first_key * depth + e] = sums[e];
        attention.dv[first_key * depth + e] = sums[elements + e];
    }
}

static void blocks_add(const struct attention_bwd *attention, bool atomically)
{
    const struct attention_shape *s = &attention->shape;

    LAUNCH_ITEMS(prepare_kernel, s->heads * s->length * WARP_LANES, *attention);
    LAUNCH(block_kernel, (unsigned)(s->heads * attention->blocks), dim3(KEYS, LINES),
           (size_t)(2 * KEYS * s->depth) * sizeof(float), 0, *attention, atomically);
}

static void compute_unordered(struct run *run)
{
    const struct attention_bwd *attention = (const struct attention_bwd *)run->state;
    const struct attention_shape *s = &attention->shape;

    CUDA_TRY(cudaMemsetAsync(attention->dq, 0,
                             (size_t)(s->heads * s->length * s->depth) * sizeof(float)));
    blocks_add(attention, true);
}

/* The parts of an element of dq, in the order of the blocks. */
__global__ static void join_kernel(struct attention_bwd attention)
{
    const struct attention_shape *s = &attention.shape;
    int64_t part = s->length * s->depth;

    KERNEL_FOR(e, s->heads * part)
    {
        const float *parts = attention.parts + e / part * attention.blocks * part;
        float sum = 0;

        for (int64_t block = 0; block < attention.blocks; block++) {
            sum += parts[block * part + e % part];
        }
        attention.dq[e] = sum;
    }
}

static void compute_ordered(struct run *run)
{
    const struct attention_bwd *attention = (const struct attention_bwd *)run->state;
    const struct attention_shape *s = &attention->shape;

    blocks_add(attention, false);
    LAUNCH_ITEMS(join_kernel, s->heads * s->length * s->depth, *attention);
}

static const float *make_input(struct run *run, const char *name, const int64_t shape[3],
                               enum fill fill)
{
    return run_input_f32(run, name, 3, shape, fill);
}

static void setup(struct run *run)
{
    const struct attention_shape *s = (const struct attention_shape *)run->size->params;
    struct attention_bwd *attention =
        (struct attention_bwd *)run_host_alloc(sizeof *attention);
    int64_t shape[] = { s->heads, s->length, s->depth };
    size_t queries = (size_t)(s->heads * s->length) * sizeof(float);

    attention->shape = *s;
    attention->blocks = ceil_div(s->length, KEYS);
    attention->scale = 1 / sqrtf((float)s->depth);
    attention->q = make_input(run, "q", shape, FILL_UNIFORM);
    attention->k = make_input(run, "k", shape, FILL_UNIFORM);
    attention->v = make_input(run, "v", shape, FILL_UNIFORM);
    attention->upstream = make_input(run, "upstream", shape, FILL_WIDE);
    attention->dq = run_output_f32(run, "dq", 3, shape);
    attention->dk = run_output_f32(run, "dk", 3, shape);
    attention->dv = run_output_f32(run, "dv", 3, shape);
    attention->most = (float *)run_alloc(run, queries);
    attention->sum = (float *)run_alloc(run, queries);
    attention->delta = (float *)run_alloc(run, queries);
    attention->parts =
        (float *)run_alloc(run, queries * (size_t)(attention->blocks * s->depth));
    run->state = attention;
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "blocks of keys add to the gradient of the queries with atomicAdd",
      .algorithm = "blocks of 32 keys, atomicAdd",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .algorithm = "blocks of 32 keys, in order",
      .compute = compute_ordered },
};

CUDA_TWIN(attention_bwd, 1, variants, setup);
