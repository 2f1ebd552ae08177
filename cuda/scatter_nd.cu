/* Rows scattered to indices with duplicates; workloads/scatter_nd.c defines the
 * operation. `ordered` and `serial` add and assign in the CPU's order, so they have the
 * CPU's bits. */
#include "cuda/kernels/kernel.h"
#include "cuda/kernels/scatter.h"
#include "workloads/scatter_nd.h"

#include <string.h>

/* What `serial` has in the host's memory. */
struct host_side {
    int32_t *index;
    float *values, *updated, *sums;
};

struct scatter_nd {
    struct scatter_gpu scatter; /* its sums are `added` */
    const float *params;
    float *updated;
    struct host_side host;
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

/* Page-locked, as a framework's is, and kept: an iteration copies and adds, and takes no
 * memory. */
static void *host_memory(int64_t elements)
{
    void *memory;

    CUDA_TRY(cudaMallocHost(&memory, (size_t)elements * sizeof(float)));
    return memory;
}

static struct host_side host_side_of(const struct scatter_nd *nd)
{
    struct host_side host;

    host.index = (int32_t *)host_memory(nd->scatter.rows);
    host.values = (float *)host_memory(nd->scatter.rows * nd->scatter.width);
    host.updated = (float *)host_memory(elements_of(nd));
    host.sums = (float *)host_memory(elements_of(nd));
    return host;
}

static void row_add(float *__restrict to, const float *__restrict from, int64_t width)
{
    for (int64_t c = 0; c < width; c++) {
        to[c] += from[c];
    }
}

/* One thread of the host, row after row. */
static void host_scatter(const struct scatter_nd *nd)
{
    int64_t width = nd->scatter.width;

    memset(nd->host.sums, 0, (size_t)elements_of(nd) * sizeof(float));
    for (int64_t row = 0; row < nd->scatter.rows; row++) {
        const float *from = nd->host.values + row * width;
        int64_t to = nd->host.index[row] * width;

        row_add(nd->host.sums + to, from, width);
        memcpy(nd->host.updated + to, from, (size_t)width * sizeof(float));
    }
}

static void copy(void *to, const void *from, int64_t elements, enum cudaMemcpyKind kind)
{
    CUDA_TRY(cudaMemcpy(to, from, (size_t)elements * sizeof(float), kind));
}

/* Copies to the host, one thread there, and back. */
static void compute_serial(struct run *run)
{
    const struct scatter_nd *nd = (const struct scatter_nd *)run->state;
    const struct scatter *scatter = &nd->scatter;

    copy(nd->host.index, scatter->index, scatter->rows, cudaMemcpyDeviceToHost);
    copy(nd->host.values, scatter->values, scatter->rows * scatter->width,
         cudaMemcpyDeviceToHost);
    copy(nd->host.updated, nd->params, elements_of(nd), cudaMemcpyDeviceToHost);
    host_scatter(nd);
    copy(scatter->sums, nd->host.sums, elements_of(nd), cudaMemcpyHostToDevice);
    copy(nd->updated, nd->host.updated, elements_of(nd), cudaMemcpyHostToDevice);
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
    nd->host = {};
    if (run->variant->compute == compute_serial) {
        nd->host = host_side_of(nd);
    }
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
