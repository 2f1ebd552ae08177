/* Gradients of layer normalization; workloads/layernorm_bwd.c defines the operation.
 * `ordered` adds in the CPU's order, so it has the CPU's bits. */
#include "cuda/kernels/kernel.h"
#include "cuda/kernels/tree.h"
#include "workloads/layernorm_bwd.h"

#include <stdlib.h>

enum {
    TASK_ROWS = 32, /* summed by a thread before its atomicAdds */
    AHEAD = 8,      /* rows that it reads before it adds them */
    TILE = 32,      /* rows of a block, and columns that it reads at a time */
    TILE_LINES = 8, /* rows that it reads at a time */
    JOIN_SIDE = 32  /* sums of a thread block, and members of a tree */
};

struct layernorm_bwd {
    int64_t rows, channels;
    const float *x, *dy, *gain, *mean, *inv_std;
    float *dx, *doffset, *dgain;
    float *parts;    /* doffset and dgain for each slot */
    float *means[2]; /* [rows]: over a row of g, and of g * xhat */
};

__device__ static float xhat_at(const struct layernorm_bwd *layer, int64_t row, int64_t c)
{
    return (layer->x[row * layer->channels + c] - layer->mean[row]) * layer->inv_std[row];
}

/* Both sums over each row, in order: TILE threads of a block each have a row, of which
 * all threads read the next columns together. */
__global__ static void mean_kernel(struct layernorm_bwd layer)
{
    __shared__ float g[TILE][TILE + 1], product[TILE][TILE + 1];
    int64_t first = (int64_t)blockIdx.x * TILE, own = first + threadIdx.x;
    bool has_row = threadIdx.y == 0 && own < layer.rows;
    float sum = 0, products = 0;

    for (int64_t begin = 0; begin < layer.channels; begin += TILE) {
        int64_t c = begin + threadIdx.x;

        for (int64_t line = threadIdx.y; line < TILE; line += TILE_LINES) {
            if (first + line < layer.rows && c < layer.channels) {
                int64_t row = first + line;

                g[line][threadIdx.x] = layer.dy[row * layer.channels + c] * layer.gain[c];
                product[line][threadIdx.x] =
                    g[line][threadIdx.x] * xhat_at(&layer, row, c);
            }
        }
        __syncthreads();
        for (int64_t i = 0; has_row && i < TILE && begin + i < layer.channels; i++) {
            sum += g[threadIdx.x][i];
            products += product[threadIdx.x][i];
        }
        __syncthreads();
    }
    if (has_row) {
        layer.means[0][own] = sum / (float)layer.channels;
        layer.means[1][own] = products / (float)layer.channels;
    }
}

__global__ static void dx_kernel(struct layernorm_bwd layer)
{
    KERNEL_FOR(i, layer.rows * layer.channels)
    {
        int64_t row = i / layer.channels, c = i % layer.channels;

        layer.dx[i] =
            layer.inv_std[row] * (layer.dy[i] * layer.gain[c] - layer.means[0][row] -
                                  xhat_at(&layer, row, c) * layer.means[1][row]);
    }
}

static void rows_finish(const struct layernorm_bwd *layer)
{
    LAUNCH(mean_kernel, (unsigned)ceil_div(layer->rows, TILE), dim3(TILE, TILE_LINES), 0,
           0, *layer);
    LAUNCH_ITEMS(dx_kernel, layer->rows * layer->channels, *layer);
}

/* Both sums of channel C over rows [BEGIN, END).  Neither is ever -0, so zeros behind the
 * end change nothing. */
__device__ static void channel_sums(const struct layernorm_bwd *layer, int64_t c,
                                    int64_t begin, int64_t end, float *ret_offset,
                                    float *ret_gain)
{
    float offset = 0, gain = 0;

    for (int64_t row = begin; row < end; row += AHEAD) {
        float dy[AHEAD], xhat[AHEAD];

        for (int k = 0; k < AHEAD; k++) {
            dy[k] = row + k < end ? layer->dy[(row + k) * layer->channels + c] : 0;
            xhat[k] = row + k < end ? xhat_at(layer, row + k, c) : 0;
        }
        for (int k = 0; k < AHEAD; k++) {
            offset += dy[k];
            gain += dy[k] * xhat[k];
        }
    }
    *ret_offset = offset;
    *ret_gain = gain;
}

__global__ static void atomic_kernel(struct layernorm_bwd layer, int64_t tasks)
{
    KERNEL_FOR(i, tasks * layer.channels)
    {
        int64_t c = i % layer.channels, begin = i / layer.channels * TASK_ROWS;
        int64_t end = begin + TASK_ROWS < layer.rows ? begin + TASK_ROWS : layer.rows;
        float offset, gain;

        channel_sums(&layer, c, begin, end, &offset, &gain);
        atomicAdd(&layer.doffset[c], offset);
        atomicAdd(&layer.dgain[c], gain);
    }
}

static void compute_unordered(struct run *run)
{
    const struct layernorm_bwd *layer = (const struct layernorm_bwd *)run->state;
    size_t bytes = (size_t)layer->channels * sizeof(float);
    int64_t tasks = ceil_div(layer->rows, TASK_ROWS);

    CUDA_TRY(cudaMemsetAsync(layer->doffset, 0, bytes));
    CUDA_TRY(cudaMemsetAsync(layer->dgain, 0, bytes));
    LAUNCH_ITEMS(atomic_kernel, tasks * layer->channels, *layer, tasks);
    rows_finish(layer);
}

__global__ static void slot_kernel(struct layernorm_bwd layer)
{
    KERNEL_FOR(i, LAYER_SLOTS * layer.channels)
    {
        int64_t c = i % layer.channels, slot = i / layer.channels;
        float *part = layer.parts + slot * 2 * layer.channels + c;

        channel_sums(&layer, c, slot * layer.rows / LAYER_SLOTS,
                     (slot + 1) * layer.rows / LAYER_SLOTS, part, part + layer.channels);
    }
}

__global__ static void join_kernel(struct layernorm_bwd layer)
{
    int64_t i = (int64_t)blockIdx.x * JOIN_SIDE + threadIdx.x,
            stride = 2 * layer.channels;
    bool has_tree = i < stride;

    tree_sum_in_block(layer.parts + i, LAYER_SLOTS, stride,
                      has_tree ? threadIdx.y : (int64_t)LAYER_SLOTS, JOIN_SIDE);
    if (!has_tree || threadIdx.y != 0) {
        return;
    }
    if (i < layer.channels) {
        layer.doffset[i] = layer.parts[i];
    } else {
        layer.dgain[i - layer.channels] = layer.parts[i];
    }
}

static void compute_ordered(struct run *run)
{
    const struct layernorm_bwd *layer = (const struct layernorm_bwd *)run->state;

    LAUNCH_ITEMS(slot_kernel, LAYER_SLOTS * layer->channels, *layer);
    LAUNCH(join_kernel, (unsigned)ceil_div(2 * layer->channels, JOIN_SIDE),
           dim3(JOIN_SIDE, JOIN_SIDE), 0, 0, *layer);
    rows_finish(layer);
}

__global__ static void statistics_kernel(struct layernorm_bwd layer, float *mean,
                                         float *inv_std)
{
    KERNEL_FOR(row, layer.rows)
    {
        layer_statistics(layer.x + row * layer.channels, layer.channels, &mean[row],
                         &inv_std[row]);
    }
}

/* Statistics of x, which is in the memory of the device: means[] is free to hold them. */
static void make_statistics(struct run *run, struct layernorm_bwd *layer)
{
    size_t bytes = (size_t)layer->rows * sizeof(float);
    float *host = (float *)run_host_alloc(bytes);

    LAUNCH_ITEMS(statistics_kernel, layer->rows, *layer, layer->means[0],
                 layer->means[1]);
    CUDA_TRY(cudaMemcpy(host, layer->means[0], bytes, cudaMemcpyDeviceToHost));
    layer->mean = run_values_f32(run, "mean", 1, &layer->rows, host);
    CUDA_TRY(cudaMemcpy(host, layer->means[1], bytes, cudaMemcpyDeviceToHost));
    layer->inv_std = run_values_f32(run, "inv_std", 1, &layer->rows, host);
    free(host);
}

static void setup(struct run *run)
{
    const struct layer_shape *s = (const struct layer_shape *)run->size->params;
    struct layernorm_bwd *layer = (struct layernorm_bwd *)run_host_alloc(sizeof *layer);
    int64_t shape[] = { s->rows, s->channels };

    layer->rows = s->rows;
    layer->channels = s->channels;
    layer->x = run_input_f32(run, "x", 2, shape, FILL_UNIFORM);
    layer->dy = run_input_f32(run, "dy", 2, shape, FILL_WIDE);
    layer->gain = run_input_f32(run, "gain", 1, &shape[1], FILL_UNIFORM);
    for (int i = 0; i < 2; i++) {
        layer->means[i] = run_alloc_f32(run, s->rows);
    }
    make_statistics(run, layer);
    layer->dgain = run_output_f32(run, "dgain", 1, &shape[1]);
    layer->doffset = run_output_f32(run, "doffset", 1, &shape[1]);
    layer->dx = run_output_f32(run, "dx", 2, shape);
    layer->parts = run_alloc_f32(run, LAYER_SLOTS * 2 * s->channels);
    run->state = layer;
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "each thread sums 32 rows of a channel, the sums meet in atomicAdd",
      .algorithm = "row tasks, atomicAdd",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .algorithm = "64 row slots, fixed tree",
      .compute = compute_ordered },
};

CUDA_TWIN(layernorm_bwd, 1, variants, setup);
