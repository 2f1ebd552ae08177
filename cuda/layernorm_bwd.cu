/* Gradients of layer normalization; workloads/layernorm_bwd.c defines the operation.
 * `ordered` adds in the CPU's order, so it has the CPU's bits. */
#include "cuda/kernels/channel_sums.h"
#include "workloads/layernorm_bwd.h"

#include <stdlib.h>

enum {
    TILE = 32,     /* rows of a block, and columns that it reads at a time */
    TILE_LINES = 8 /* rows that it reads at a time */
};

static_assert((int)LAYER_SLOTS == (int)CHANNEL_SLOTS, "the CPU's order");

struct layernorm_bwd : channel_sums {
    const float *gain;
    float *dx;
    float *means[2]; /* [rows]: over a row of g, and of g * xhat */
};

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
                    g[line][threadIdx.x] * channel_xhat<NORM_OF_ROW>(&layer, row, c);
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

        layer.dx[i] = layer.inv_std[row] *
                      (layer.dy[i] * layer.gain[c] - layer.means[0][row] -
                       channel_xhat<NORM_OF_ROW>(&layer, row, c) * layer.means[1][row]);
    }
}

static void rows_finish(const struct layernorm_bwd *layer)
{
    LAUNCH(mean_kernel, (unsigned)ceil_div(layer->rows, TILE), dim3(TILE, TILE_LINES), 0,
           0, *layer);
    LAUNCH_ITEMS(dx_kernel, layer->rows * layer->channels, *layer);
}

static void compute_unordered(struct run *run)
{
    const struct layernorm_bwd *layer = (const struct layernorm_bwd *)run->state;

    channel_sums_unordered<NORM_OF_ROW>(layer);
    rows_finish(layer);
}

static void compute_ordered(struct run *run)
{
    const struct layernorm_bwd *layer = (const struct layernorm_bwd *)run->state;

    channel_sums_ordered<NORM_OF_ROW>(layer);
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
    layer->dscale = run_output_f32(run, "dgain", 1, &shape[1]);
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
