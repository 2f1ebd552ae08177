/* Gradients of several ranks, summed with and without fusion; workloads/ring_allreduce.c
 * defines the operation.  The first variants have all ranks on one GPU: their gradients
 * are computed side by side, and an element's values are added in the order in which a
 * ring would.  So the arithmetic is a ring's, with the CPU's bits; nothing is sent. Those
 * of NCCL have a GPU for each rank.
 *
 * The coordinator is the host: a tensor's turn in the buffer is that in which its slowest
 * rank had it ready. */
#include "cuda/kernels/kernel.h"
#include "cuda/kernels/ring.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_SIZE = 240 };

struct turn {
    int32_t arrival; /* at its slowest rank */
    int32_t tensor;
};

struct allreduce {
    struct ring_ranks ranks;
    float *sum;                /* [rows][RING_WIDTH], on this run's device */
    struct ring_tables layers; /* the host's */
    int32_t *arrivals;         /* [tensors]: of a rank; on the host */
    struct turn *turns;        /* [tensors] */
    char algorithm[NAME_SIZE];
};

/* How the variants of NCCL reduce. */
static const struct way {
    const char *variant, *algorithm;
    bool fused;
} ways[] = {
    { "nccl_ring_fused", "Ring", true },     { "nccl_ring", "Ring", false },
    { "nccl_tree_fused", "Tree", true },     { "nccl_tree", "Tree", false },
    { "nccl_ring_two_ranks", "Ring", true },
};

static const struct way *way_of(const struct run *run)
{
    for (int i = 0; i < COUNT_OF(ways); i++) {
        if (strcmp(ways[i].variant, run->variant->name) == 0) {
            return &ways[i];
        }
    }
    return NULL;
}

static void gradients_compute(const struct allreduce *all)
{
    const struct ring *ring = &all->ranks.ring;
    struct ring_device at;

    RING_DEVICE_FOR(&all->ranks, at)
    {
        for (int i = at.first; i < at.first + at.ranks; i++) {
            CUDA_TRY(
                cudaMemsetAsync(ring->rank[i].arrived, 0, sizeof(int32_t), at.stream));
        }
        LAUNCH(ring_gradient_kernel, (unsigned)(ring->tensors * at.ranks), KERNEL_THREADS,
               0, at.stream, *ring, at.first, at.ranks);
    }
}

static int turn_compare(const void *a, const void *b)
{
    const struct turn *x = (const struct turn *)a, *y = (const struct turn *)b;

    return x->arrival != y->arrival ? x->arrival - y->arrival : y->tensor - x->tensor;
}

/* Waits for all gradients, and gives each tensor its place in the buffer. */
static void places_make(const struct allreduce *all)
{
    const struct ring *ring = &all->ranks.ring;
    int64_t tensors = ring->tensors;
    int32_t place = 0;
    struct ring_device at;

    for (int64_t t = 0; t < tensors; t++) {
        all->turns[t] = { 0, (int32_t)t };
    }
    RING_DEVICE_FOR(&all->ranks, at)
    {
        CUDA_TRY(cudaStreamSynchronize(at.stream));
        for (int i = at.first; i < at.first + at.ranks; i++) {
            CUDA_TRY(cudaMemcpy(all->arrivals, ring->rank[i].arrivals,
                                (size_t)tensors * sizeof(int32_t),
                                cudaMemcpyDeviceToHost));
            for (int64_t t = 0; t < tensors; t++) {
                if (all->arrivals[t] > all->turns[t].arrival) {
                    all->turns[t].arrival = all->arrivals[t];
                }
            }
        }
    }
    qsort(all->turns, (size_t)tensors, sizeof *all->turns, turn_compare);
    for (int64_t i = 0; i < tensors; i++) {
        int32_t tensor = all->turns[i].tensor;

        all->layers.places[tensor] = place;
        place += (all->layers.first[tensor + 1] - all->layers.first[tensor]) * RING_WIDTH;
    }
}

static void gradients_pack(const struct allreduce *all)
{
    const struct ring *ring = &all->ranks.ring;
    struct ring_device at;

    places_make(all);
    RING_DEVICE_FOR(&all->ranks, at)
    {
        CUDA_TRY(cudaMemcpyAsync(ring->rank[at.first].tables.places, all->layers.places,
                                 (size_t)ring->tensors * sizeof(int32_t),
                                 cudaMemcpyHostToDevice, at.stream));
        LAUNCH(ring_pack_kernel, kernel_blocks(ring_elements(ring) * at.ranks),
               KERNEL_THREADS, 0, at.stream, *ring, at.first, at.ranks);
    }
}

static void sums_unpack(const struct allreduce *all)
{
    LAUNCH_ITEMS(ring_unpack_kernel, ring_elements(&all->ranks.ring), all->ranks.ring,
                 all->sum);
}

static void fused_reduce(struct run *run, bool from_root)
{
    const struct allreduce *all = (const struct allreduce *)run->state;

    gradients_compute(all);
    gradients_pack(all);
    LAUNCH_ITEMS(ring_fused_kernel, ring_elements(&all->ranks.ring), all->ranks.ring,
                 from_root);
    sums_unpack(all);
}

static void compute_fused(struct run *run)
{
    fused_reduce(run, false);
}

static void compute_fixed_root(struct run *run)
{
    fused_reduce(run, true);
}

static void groups_reduce(struct run *run, int64_t group)
{
    const struct allreduce *all = (const struct allreduce *)run->state;

    gradients_compute(all);
    LAUNCH_ITEMS(ring_groups_kernel, ring_elements(&all->ranks.ring), all->ranks.ring,
                 group, all->sum);
}

static void compute_ordered(struct run *run)
{
    groups_reduce(run, 1);
}

static void compute_fixed_groups(struct run *run)
{
    groups_reduce(run, RING_GROUP);
}

/* All-reduces COUNT elements from BEGIN on, of all ranks. */
static void part_reduce(struct run *run, const struct allreduce *all, bool packed,
                        int64_t begin, int64_t count)
{
    float *buffers[RING_RANKS];

    for (int i = 0; i < all->ranks.ring.ranks; i++) {
        buffers[i] = (packed ? all->ranks.ring.rank[i].packed
                             : all->ranks.ring.rank[i].gradients) +
                     begin;
    }
    nccl_ranks_reduce(run, &all->ranks.nccl, buffers, (size_t)count);
}

static void devices_wait(const struct allreduce *all)
{
    struct ring_device at;

    RING_DEVICE_FOR(&all->ranks, at)
    {
        CUDA_TRY(cudaStreamSynchronize(at.stream));
    }
}

static void compute_nccl(struct run *run)
{
    const struct allreduce *all = (const struct allreduce *)run->state;
    const struct ring *ring = &all->ranks.ring;

    gradients_compute(all);
    if (way_of(run)->fused) {
        gradients_pack(all);
        part_reduce(run, all, true, 0, ring_elements(ring));
        devices_wait(all);
        sums_unpack(all);
        return;
    }
    for (int64_t t = ring->tensors - 1; t >= 0; t--) {
        part_reduce(run, all, false, (int64_t)all->layers.first[t] * RING_WIDTH,
                    (int64_t)(all->layers.first[t + 1] - all->layers.first[t]) *
                        RING_WIDTH);
    }
    devices_wait(all);
    CUDA_TRY(cudaMemcpyAsync(all->sum, ring->rank[0].gradients,
                             (size_t)ring_elements(ring) * sizeof(float),
                             cudaMemcpyDeviceToDevice));
}

/* NCCL refuses two ranks on one GPU. */
static const char *ring_nccl_unsupported(const struct run *run)
{
    static char text[NAME_SIZE];
    const char *reason = nccl_unsupported(run);
    int devices = 0, ranks = ring_ranks_of(run->variant->name);

    if (reason) {
        return reason;
    }
    CUDA_TRY(cudaGetDeviceCount(&devices));
    if (devices >= ranks) {
        return NULL;
    }
    snprintf(text, sizeof text,
             "NCCL takes one GPU for each rank: %d ranks, and this process sees %d GPU%s",
             ranks, devices, devices == 1 ? "" : "s");
    return text;
}

static void layers_make(struct allreduce *all)
{
    struct ring *ring = &all->ranks.ring;
    struct ring_tables *layers = &all->layers;
    size_t bytes = (size_t)(ring->tensors + 1) * sizeof(int32_t);

    layers->first = (int32_t *)run_host_alloc(bytes);
    layers->places = (int32_t *)run_host_alloc(bytes);
    all->arrivals = (int32_t *)run_host_alloc(bytes);
    all->turns =
        (struct turn *)run_host_alloc((size_t)ring->tensors * sizeof(struct turn));
    memset(layers->places, 0, bytes);
    layers->first[0] = 0;
    for (int64_t t = 0; t < ring->tensors; t++) {
        layers->first[t + 1] = layers->first[t] + (int32_t)ring_rows(t);
    }
    ring->rows = layers->first[ring->tensors];
    layers->tensor_of = (int32_t *)run_host_alloc((size_t)ring->rows * sizeof(int32_t));
    for (int32_t t = 0; t < ring->tensors; t++) {
        for (int32_t row = layers->first[t]; row < layers->first[t + 1]; row++) {
            layers->tensor_of[row] = t;
        }
    }
}

static void nccl_prepare(struct run *run, struct allreduce *all)
{
    const struct way *way = way_of(run);

    ring_devices_take(&all->ranks);
    all->ranks.nccl.algorithm = way->algorithm;
    nccl_ranks_init(run, &all->ranks.nccl);
    snprintf(all->algorithm, sizeof all->algorithm, "%s, %s", all->ranks.nccl.description,
             way->fused ? "a buffer packed in order of arrival"
                        : "each tensor by itself");
    run->algorithm = all->algorithm;
}

static void setup(struct run *run)
{
    const struct ring_shape *shape = (const struct ring_shape *)run->size->params;
    struct allreduce *all = (struct allreduce *)run_host_alloc(sizeof *all);
    struct ring *ring = &all->ranks.ring;
    const float *x, *dy;

    *all = {};
    ring->tensors = shape->tensors;
    ring->batch = shape->batch;
    ring->ranks = ring_ranks_of(run->variant->name);
    layers_make(all);

    int64_t x_shape[] = { RING_RANKS, shape->batch, ring->rows };
    int64_t dy_shape[] = { RING_RANKS, shape->batch, RING_WIDTH };
    int64_t sum_shape[] = { ring->rows, RING_WIDTH };

    x = run_input_f32(run, "x", 3, x_shape, FILL_UNIFORM);
    dy = run_input_f32(run, "dy", 3, dy_shape, FILL_WIDE);
    all->sum = run_output_f32(run, "sum", 2, sum_shape);
    if (way_of(run)) {
        nccl_prepare(run, all);
    }
    ring_ranks_make(run, &all->ranks, &all->layers, x, dy);
    run->state = all;
}

static void teardown(struct run *run)
{
    struct allreduce *all = (struct allreduce *)run->state;

    nccl_ranks_release(run, &all->ranks.nccl);
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "four ranks on one GPU, tensors fused into one buffer as they become "
                 "ready",
      .algorithm = "ring over a buffer packed in order of arrival",
      .control = true,
      .compute = compute_fused },
    { .name = "ordered",
      .summary = "four ranks on one GPU, each tensor reduced by itself",
      .algorithm = "one ring a tensor, side by side",
      .compute = compute_ordered },
    { .name = "two_ranks",
      .summary = "two ranks on one GPU, fused: a + b = b + a",
      .algorithm = "ring of two over a buffer packed in order of arrival",
      .compute = compute_fused },
    { .name = "fixed_groups",
      .summary = "four ranks on one GPU, tensors fused in fixed groups of eight",
      .algorithm = "one ring a group of eight tensors, side by side",
      .compute = compute_fixed_groups },
    { .name = "fixed_root",
      .summary = "four ranks on one GPU, fused, reduced in the order of ranks",
      .algorithm = "reduce to rank 0, broadcast",
      .compute = compute_fixed_root },
    { .name = "nccl_ring_fused",
      .summary = "four GPUs, NCCL's ring, tensors fused as they become ready",
      .models = "Horovod's tensor fusion with NCCL's ring, on four GPUs",
      .algorithm = "ncclAllReduce, NCCL_ALGO=Ring, fused",
      .compute = compute_nccl,
      .library = "NCCL",
      .unsupported = ring_nccl_unsupported },
    { .name = "nccl_ring",
      .summary = "four GPUs, NCCL's ring, each tensor reduced by itself",
      .models = "HOROVOD_FUSION_THRESHOLD=0 and NCCL_ALGO=Ring",
      .algorithm = "ncclAllReduce, NCCL_ALGO=Ring, each tensor by itself",
      .compute = compute_nccl,
      .library = "NCCL",
      .unsupported = ring_nccl_unsupported },
    { .name = "nccl_tree_fused",
      .summary = "four GPUs, NCCL's tree, tensors fused as they become ready",
      .models = "tensor fusion with NCCL_ALGO=Tree",
      .algorithm = "ncclAllReduce, NCCL_ALGO=Tree, fused",
      .compute = compute_nccl,
      .library = "NCCL",
      .unsupported = ring_nccl_unsupported },
    { .name = "nccl_tree",
      .summary = "four GPUs, NCCL's tree, each tensor reduced by itself",
      .models = "HOROVOD_FUSION_THRESHOLD=0 and NCCL_ALGO=Tree",
      .algorithm = "ncclAllReduce, NCCL_ALGO=Tree, each tensor by itself",
      .compute = compute_nccl,
      .library = "NCCL",
      .unsupported = ring_nccl_unsupported },
    { .name = "nccl_ring_two_ranks",
      .summary = "two GPUs, NCCL's ring, tensors fused as they become ready",
      .models = "two GPUs: deterministic out of the box (slide 36)",
      .algorithm = "ncclAllReduce, NCCL_ALGO=Ring, two GPUs, fused",
      .compute = compute_nccl,
      .library = "NCCL",
      .unsupported = ring_nccl_unsupported },
};

static const struct workload ring_allreduce_cuda = {
    .name = "ring_allreduce",
    .version = 1,
    .backend = "cuda",
    WORKLOAD_VARIANTS(variants),
    .setup = setup,
    .teardown = teardown,
};
WORKLOAD_REGISTER(ring_allreduce_cuda);
