/* Batched matrix product split along its inner dimension; workloads/matmul_batched.c
 * defines the operation.  `ordered` adds in the CPU's order, so it has the CPU's bits.
 * The order of cuBLAS is its own. */
#include "cuda/cublas/multiply.h"
#include "cuda/kernels/kernel.h"
#include "cuda/kernels/tf32.h"
#include "cuda/kernels/tree.h"
#include "workloads/matmul_batched.h"

#include <string.h>

enum {
    TILE = 32, /* rows and columns of c that a block computes, and steps it reads ahead */
    LINES = 8, /* the block is TILE columns by LINES rows of threads */
    OWNED = TILE / LINES /* rows of c that a thread computes */
};

struct matmul_batched {
    struct matmul_shape shape;
    const float *a, *b;
    float *c;
    float *parts; /* [batch][MATMUL_SPLIT][rows][columns] */
    struct cublas_products products;
};

enum { STREAMS = 4, WORKSPACE = 32 << 20 /* bytes: what cuBLAS takes itself at most */ };

/* How a variant of cuBLAS's computes. */
struct way {
    const char *variant;
    bool streams, workspaces, atomics, tf32;
    const char *config;
};

static const struct way ways[] = {
    { "cublas", false, false, false, false, NULL },
    { "cublas_streams", true, false, false, false, NULL },
    { "cublas_workspaces", true, true, false, false, NULL },
    { "cublas_config_4096_8", true, false, false, false, ":4096:8" },
    { "cublas_config_16_8", true, false, false, false, ":16:8" },
    { "cublas_atomics", false, false, true, false, NULL },
    { "cublas_tf32", false, false, false, true, NULL },
};

/* The next TILE steps of the block's rows of a and columns of b, zeros where there is
 * nothing. */
__device__ static void tiles_read(const struct matmul_batched *matmul, int64_t batch,
                                  int64_t row, int64_t column, int64_t k, int64_t end,
                                  float a[TILE][TILE + 1], float b[TILE][TILE])
{
    const struct matmul_shape *s = &matmul->shape;
    int64_t x = threadIdx.x;

    for (int64_t y = threadIdx.y; y < TILE; y += LINES) {
        bool in_a = row + y < s->rows && k + x < end;
        bool in_b = k + y < end && column + x < s->columns;

        a[y][x] = in_a ? matmul->a[(batch * s->rows + row + y) * s->inner + k + x] : 0;
        b[y][x] =
            in_b ? matmul->b[(batch * s->inner + k + y) * s->columns + column + x] : 0;
    }
}

/* blockIdx.z: batch and split; the steps of a split in order. */
__global__ static void split_kernel(struct matmul_batched matmul, bool atomically)
{
    __shared__ float a[TILE][TILE + 1], b[TILE][TILE];
    const struct matmul_shape *s = &matmul.shape;
    int64_t task = blockIdx.z, steps = s->inner / MATMUL_SPLIT;
    int64_t first = task % MATMUL_SPLIT * steps, end = first + steps;
    int64_t row = (int64_t)blockIdx.y * TILE, column = (int64_t)blockIdx.x * TILE;
    float sums[OWNED] = { 0, 0, 0, 0 };

    for (int64_t k = first; k < end; k += TILE) {
        tiles_read(&matmul, task / MATMUL_SPLIT, row, column, k, end, a, b);
        __syncthreads();
        for (int64_t step = 0; step < TILE && k + step < end; step++) {
            for (int i = 0; i < OWNED; i++) {
                sums[i] += a[threadIdx.y + i * LINES][step] * b[step][threadIdx.x];
            }
        }
        __syncthreads();
    }
    row += threadIdx.y;
    column += threadIdx.x;
    for (int i = 0; i < OWNED; i++, row += LINES) {
        int64_t at = row * s->columns + column, elements = s->rows * s->columns;

        if (row >= s->rows || column >= s->columns) {
            continue;
        }
        if (atomically) {
            atomicAdd(&matmul.c[task / MATMUL_SPLIT * elements + at], sums[i]);
        } else {
            matmul.parts[task * elements + at] = sums[i];
        }
    }
}

static void splits_multiply(const struct matmul_batched *matmul, bool atomically)
{
    const struct matmul_shape *s = &matmul->shape;
    dim3 grid((unsigned)ceil_div(s->columns, TILE), (unsigned)ceil_div(s->rows, TILE),
              (unsigned)(s->batch * MATMUL_SPLIT));

    LAUNCH(split_kernel, grid, dim3(TILE, LINES), 0, 0, *matmul, atomically);
}

static void compute_unordered(struct run *run)
{
    const struct matmul_batched *matmul = (const struct matmul_batched *)run->state;
    const struct matmul_shape *s = &matmul->shape;

    CUDA_TRY(cudaMemsetAsync(matmul->c, 0,
                             (size_t)(s->batch * s->rows * s->columns) * sizeof(float)));
    splits_multiply(matmul, true);
}

__global__ static void join_kernel(struct matmul_batched matmul)
{
    int64_t elements = matmul.shape.rows * matmul.shape.columns;

    KERNEL_FOR(i, matmul.shape.batch * elements)
    {
        const float *from =
            matmul.parts + i / elements * MATMUL_SPLIT * elements + i % elements;

        matmul.c[i] = tree_sum_in_thread<MATMUL_SPLIT>(from, elements);
    }
}

static void compute_ordered(struct run *run)
{
    const struct matmul_batched *matmul = (const struct matmul_batched *)run->state;
    const struct matmul_shape *s = &matmul->shape;

    splits_multiply(matmul, false);
    LAUNCH_ITEMS(join_kernel, s->batch * s->rows * s->columns, *matmul);
}

static void compute_cublas(struct run *run)
{
    const struct matmul_batched *matmul = (const struct matmul_batched *)run->state;

    cublas_products_compute(run, &matmul->products);
}

/* Streams that wait for the default stream, and that for them. */
static void streams_make(struct run *run, struct cublas_products *products,
                         const struct way *way)
{
    products->stream_count = STREAMS;
    products->workspace_bytes = way->workspaces ? WORKSPACE : 0;
    for (int i = 0; i < STREAMS; i++) {
        CUDA_TRY(cudaStreamCreate(&products->streams[i]));
        if (way->workspaces) {
            products->workspaces[i] = run_alloc(run, WORKSPACE);
        }
    }
}

static void cublas_prepare(struct run *run, struct matmul_batched *matmul)
{
    struct cublas_products *products = &matmul->products;

    for (int i = 0; i < COUNT_OF(ways); i++) {
        if (strcmp(ways[i].variant, run->variant->name) != 0) {
            continue;
        }
        products->count = (int)matmul->shape.batch;
        products->rows = (int)matmul->shape.rows;
        products->inner = (int)matmul->shape.inner;
        products->columns = (int)matmul->shape.columns;
        products->a = matmul->a;
        products->b = matmul->b;
        products->c = matmul->c;
        products->config = ways[i].config;
        products->atomics = ways[i].atomics;
        products->tf32 = ways[i].tf32;
        if (products->tf32) {
            tf32_need_device(run);
        }
        if (ways[i].streams) {
            streams_make(run, products, &ways[i]);
        }
        cublas_products_prepare(run, products);
    }
}

static void setup(struct run *run)
{
    const struct matmul_shape *s = (const struct matmul_shape *)run->size->params;
    struct matmul_batched *matmul =
        (struct matmul_batched *)run_host_alloc(sizeof *matmul);
    int64_t a_shape[] = { s->batch, s->rows, s->inner };
    int64_t b_shape[] = { s->batch, s->inner, s->columns };
    int64_t c_shape[] = { s->batch, s->rows, s->columns };

    *matmul = {};
    matmul->shape = *s;
    matmul->a = run_input_f32(run, "a", 3, a_shape, FILL_UNIFORM);
    matmul->b = run_input_f32(run, "b", 3, b_shape, FILL_WIDE);
    matmul->c = run_output_f32(run, "c", 3, c_shape);
    if (run->variant->compute == compute_ordered) {
        matmul->parts =
            run_alloc_f32(run, s->batch * MATMUL_SPLIT * s->rows * s->columns);
    }
    cublas_prepare(run, matmul);
    run->state = matmul;
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "16 parts of the inner dimension meet in atomicAdd",
      .algorithm = "inner dimension in 16 parts, atomicAdd",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .algorithm = "inner dimension in 16 parts, fixed tree",
      .compute = compute_ordered },
    { .name = "cublas",
      .summary = "cuBLAS, all products in one call on one stream",
      .models = "cuBLAS: the same bits in every run while one stream is active",
      .algorithm = "cublasSgemmStridedBatched, one stream",
      .claim = "deterministic",
      .compute = compute_cublas,
      .library = "cuBLAS",
      .unsupported = cublas_unsupported },
    { .name = "cublas_streams",
      .summary = "cuBLAS, products on four streams that share a handle",
      .models = "cuBLAS on several streams, which it promises nothing for",
      .algorithm = "cublasSgemm, four streams",
      .compute = compute_cublas,
      .library = "cuBLAS",
      .unsupported = cublas_unsupported },
    { .name = "cublas_workspaces",
      .summary = "cuBLAS, products on four streams, each with a workspace of its own",
      .models = "cublasSetWorkspace for each stream",
      .algorithm = "cublasSgemm, four streams with workspaces",
      .claim = "deterministic",
      .compute = compute_cublas,
      .library = "cuBLAS",
      .unsupported = cublas_unsupported },
    { .name = "cublas_config_4096_8",
      .summary = "cuBLAS, products on four streams, CUBLAS_WORKSPACE_CONFIG=:4096:8",
      .models = "what torch.use_deterministic_algorithms asks for",
      .algorithm = "cublasSgemm, four streams, :4096:8",
      .claim = "deterministic",
      .compute = compute_cublas,
      .library = "cuBLAS",
      .unsupported = cublas_unsupported },
    { .name = "cublas_config_16_8",
      .summary = "cuBLAS, products on four streams, CUBLAS_WORKSPACE_CONFIG=:16:8",
      .models = "the other that torch.use_deterministic_algorithms takes",
      .algorithm = "cublasSgemm, four streams, :16:8",
      .claim = "deterministic",
      .compute = compute_cublas,
      .library = "cuBLAS",
      .unsupported = cublas_unsupported },
    { .name = "cublas_atomics",
      .summary = "cuBLAS, all products in one call, which may use atomics",
      .models = "cublasSetAtomicsMode(CUBLAS_ATOMICS_ALLOWED)",
      .algorithm = "cublasSgemmStridedBatched, one stream, atomics allowed",
      .compute = compute_cublas,
      .library = "cuBLAS",
      .unsupported = cublas_unsupported },
    { .name = "cublas_tf32",
      .summary = "cuBLAS, all products in one call, which may round to TF32",
      .models = "torch.backends.cuda.matmul.allow_tf32, and TensorFlow's default",
      .algorithm = "cublasSgemmStridedBatched, one stream, TF32 permitted",
      .claim = "deterministic",
      .compute = compute_cublas,
      .library = "cuBLAS",
      .unsupported = cublas_unsupported },
};

CUDA_TWIN(matmul_batched, 1, variants, setup);
