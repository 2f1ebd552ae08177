/* Rows scattered to indices with duplicates; workloads/scatter_nd.c defines the
 * operation. `ordered` and `serial` add and assign in the CPU's order, so they have the
 * CPU's bits. */
#include "cuda/kernels/kernel.h"
#include "cuda/kernels/scatter.h"
#include "workloads/scatter_nd.h"

#include <stdlib.h>
#include <string.h>

struct scatter_nd {
    struct scatter_gpu scatter; /* its sums are `added` */
    const float *params;
    float *updated;
};

static int64_t elements_of(const struct scatter_nd *nd)
{
    return nd->scatter.destinations * nd->scatter.width;
}

/* Plain stores: the last writer wins. */
__global__ static void assign_kernel(struct scatter_nd nd)
{
    KERNEL_FOR(i, nd.scatter.rows * nd.scatter.width)
    {
        int64_t row = i / nd.scatter.width, column = i % nd.scatter.width;

        nd.updated[nd.scatter.index[row] * nd.scatter.width + column] =
            scatter_value(&nd.scatter, row, column);
    }
}

static void compute_unordered(struct run *run)
{
    const struct scatter_nd *nd = (const struct scatter_nd *)run->state;

    scatter_add_atomically(&nd->scatter);
    CUDA_TRY(cudaMemcpyAsync(nd->updated, nd->params,
                             (size_t)elements_of(nd) * sizeof(float),
                             cudaMemcpyDeviceToDevice));
    LAUNCH_ITEMS(assign_kernel, nd->scatter.rows * nd->scatter.width, *nd);
}

/* Behind the sort: the last row of an entry, or what the entry was. */
__global__ static void assign_last_kernel(struct scatter_nd nd)
{
    KERNEL_FOR(i, nd.scatter.destinations * nd.scatter.width)
    {
        int64_t entry = i / nd.scatter.width, column = i % nd.scatter.width;
        int64_t end = nd.scatter.sort.starts[entry + 1];

        nd.updated[i] =
            end > nd.scatter.sort.starts[entry]
                ? scatter_value(&nd.scatter, nd.scatter.sort.sorted[end - 1], column)
                : nd.params[i];
    }
}

static void compute_ordered(struct run *run)
{
    struct scatter_nd *nd = (struct scatter_nd *)run->state;

    scatter_add_in_order(&nd->scatter);
    LAUNCH_ITEMS(assign_last_kernel, elements_of(nd), *nd);
}

/* A copy of COUNT elements of the device's memory; the caller frees. */
static void *copied_to_host(const void *device, int64_t count)
{
    size_t bytes = (size_t)count * sizeof(float);
    void *host = run_host_alloc(bytes);

    CUDA_TRY(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost));
    return host;
}

/* Copies to the host, one thread there, and back. */
static void compute_serial(struct run *run)
{
    const struct scatter_nd *nd = (const struct scatter_nd *)run->state;
    const struct scatter *scatter = &nd->scatter;
    int64_t width = scatter->width;
    size_t bytes = (size_t)elements_of(nd) * sizeof(float);
    int32_t *index = (int32_t *)copied_to_host(scatter->index, scatter->rows);
    float *values = (float *)copied_to_host(scatter->values, scatter->rows * width);
    float *updated = (float *)copied_to_host(nd->params, elements_of(nd));
    float *sums = (float *)run_host_alloc(bytes);

    memset(sums, 0, bytes);
    for (int64_t row = 0; row < scatter->rows; row++) {
        for (int64_t c = 0; c < width; c++) {
            sums[index[row] * width + c] += values[row * width + c];
        }
        memcpy(updated + index[row] * width, values + row * width,
               (size_t)width * sizeof(float));
    }
    CUDA_TRY(cudaMemcpy(scatter->sums, sums, bytes, cudaMemcpyHostToDevice));
    CUDA_TRY(cudaMemcpy(nd->updated, updated, bytes, cudaMemcpyHostToDevice));
    free(sums);
    free(updated);
    free(values);
    free(index);
}

static void setup(struct run *run)
{
    struct scatter_nd *nd = (struct scatter_nd *)run_host_alloc(sizeof *nd);
    const int64_t *params;

    scatter_nd_tensors(run, &nd->scatter);
    scatter_init(run, &nd->scatter);
    params = run->outputs[0].shape;
    nd->params = run_input_f32(run, "params", 2, params, FILL_UNIFORM);
    nd->updated = run_output_f32(run, "updated", 2, params);
    run->state = nd;
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "atomicAdd and plain stores: the last writer wins",
      .algorithm = "atomicAdd, last writer",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary = "rows sorted by entry, stably; each element has one owner",
      .algorithm = "counting sort, entries in order of rows, last row",
      .compute = compute_ordered },
    { .name = "serial",
      .summary = "copied to the host, one thread there, row after row, and copied back",
      .algorithm = "one thread, rows in order",
      .compute = compute_serial },
};

CUDA_TWIN(scatter_nd, 1, variants, setup);
