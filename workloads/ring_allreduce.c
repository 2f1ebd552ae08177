/* Gradients of several ranks, summed by a ring all-reduce, with and without fusion.
 *
 * A ring all-reduce cuts its buffer into as many chunks as there are ranks, and chunk c
 * goes round from rank c + 1 to rank c: the order in which the ranks' values of an
 * element are added depends on where in the buffer it lies.  Fusion packs tensors into
 * one buffer as they become ready, so that place depends on which were ready first.
 * (Patarasuk, Yuan, "Bandwidth efficient all-reduce operation on tree topologies", IPDPS
 * 2007; Sergeev, Del Balso, "Horovod", arXiv 1802.05799.)
 *
 * Each rank is a process (ranks/ranks.h).  It computes the gradients of dense layers
 * (dw = transposed x times dy) from its own examples, layer by layer from the last to the
 * first, and tells the coordinator of each that is ready; `threads` is the number of its
 * threads, as TensorFlow's inter-op threads.  The coordinator, this process, notes in
 * which order tensors became ready on all ranks, and that order is the plan by which all
 * ranks then pack, reduce and unpack.  With one thread a rank there is one such order;
 * with more only the machine decides.  The cycle in which Horovod collects tensors is
 * taken to be as long as the backward pass: what is fused becomes one buffer.  A fixed
 * group is fused in the order of its tensors, so its buffer is where they lie anyway. */
#include "workloads/ring_allreduce.h"

#include <pthread.h>
#include <string.h>

#include "workloads/ranks/ranks.h"
#include "workloads/shared/probing.h"
#include "workloads/shared/references.h"
#include "workloads/shared/rounding.h"
#include "workloads/workload.h"

enum { RANKS = RING_RANKS, WIDTH = RING_WIDTH };

/* What the coordinator tells: compute gradients, then one of the ways to reduce them. */
enum order { COMPUTE, REDUCE_FUSED, REDUCE_EACH, REDUCE_GROUPS, REDUCE_TO_ROOT };

/* What a rank tells after reducing; before, the tensors that are ready. */
enum { REDUCED = -1 };

struct ring {
    int64_t tensors, batch, total_rows;
    int ranks, threads;
    int64_t group_count;
    const struct span *layers; /* where the weights of each lie: [rows][WIDTH] */
    const struct span *groups; /* of RING_GROUP layers side by side */
    pthread_t *team;           /* each rank's copy: its threads but the first */
    /* Shared by all processes; a rank writes to its own part only. */
    float *x;         /* [ranks][batch][total rows] */
    float *dy;        /* [ranks][batch][WIDTH] */
    float *gradients; /* [ranks][total rows][WIDTH], own before and sums after reducing */
    float *buffers;   /* [ranks][total rows][WIDTH], fused */
    int64_t *plan;    /* tensors in the order in which they became ready */
    /* The coordinator's. */
    struct ranks group;
    int *ranks_ready; /* of each tensor */
    float *sum;       /* [total rows][WIDTH] */
};

static int64_t elements(const struct ring *ring)
{
    return ring->total_rows * WIDTH;
}

static void gradient_compute(const struct ring *ring, int rank, const struct span *layer)
{
    float *dw = ring->gradients + rank * elements(ring) + layer->first;

    memset(dw, 0, (size_t)layer->count * sizeof(float));
    for (int64_t b = rank * ring->batch; b < (rank + 1) * ring->batch; b++) {
        const float *x = ring->x + b * ring->total_rows + layer->first / WIDTH;
        const float *dy = ring->dy + b * WIDTH;

        for (int64_t row = 0; row < layer->count / WIDTH; row++) {
#pragma omp simd
            for (int64_t i = 0; i < WIDTH; i++) {
                dw[row * WIDTH + i] += x[row] * dy[i];
            }
        }
    }
}

/* Back-propagation on one rank, shared out among its threads. */
struct backward {
    const struct ring *ring;
    const struct rank *rank;
    int64_t left; /* tensors that no thread has taken */
};

static void *backward_thread(void *arg)
{
    struct backward *backward = arg;
    const struct ring *ring = backward->ring;

    for (;;) {
        int64_t tensor = __atomic_sub_fetch(&backward->left, 1, __ATOMIC_RELAXED);

        if (tensor < 0) {
            return NULL;
        }
        gradient_compute(ring, backward->rank->number, &ring->layers[tensor]);
        rank_tell(backward->rank, (int32_t)tensor);
    }
}

static void backward_run(const struct ring *ring, const struct rank *rank)
{
    struct backward backward = { ring, rank, ring->tensors };

    for (int i = 0; i < ring->threads - 1; i++) {
        int error = pthread_create(&ring->team[i], NULL, backward_thread, &backward);

        if (error) {
            rank_fail(rank, "cannot start a thread", error);
        }
    }
    backward_thread(&backward);
    for (int i = 0; i < ring->threads - 1; i++) {
        pthread_join(ring->team[i], NULL);
    }
}

/* Copies the gradients of RANK to its fused buffer, or back. */
static void plan_copy(const struct ring *ring, const struct rank *rank, bool pack)
{
    float *packed = ring->buffers + rank->number * elements(ring);

    for (int64_t i = 0; i < ring->tensors; i++) {
        const struct span *layer = &ring->layers[ring->plan[i]];
        float *gradient = ring->gradients + rank->number * elements(ring) + layer->first;

        memcpy(pack ? packed : gradient, pack ? gradient : packed,
               (size_t)layer->count * sizeof(float));
        packed += layer->count;
    }
}

static void rank_reduce(const struct ring *ring, const struct rank *rank,
                        enum order order)
{
    int64_t stride = elements(ring);
    struct span all = { 0, stride };

    if (order == REDUCE_EACH) {
        ring_reduce(rank, ring->gradients, stride, ring->layers, ring->tensors);
        return;
    }
    if (order == REDUCE_GROUPS) {
        ring_reduce(rank, ring->gradients, stride, ring->groups, ring->group_count);
        return;
    }
    plan_copy(ring, rank, true);
    if (order == REDUCE_FUSED) {
        ring_reduce(rank, ring->buffers, stride, &all, 1);
    } else {
        root_reduce(rank, ring->buffers, stride, stride);
    }
    plan_copy(ring, rank, false);
}

static void rank_main(const struct rank *rank, void *context)
{
    const struct ring *ring = context;

    for (;;) {
        enum order order = (enum order)rank_hear(rank);

        if (order == COMPUTE) {
            backward_run(ring, rank);
        } else {
            rank_reduce(ring, rank, order);
            rank_tell(rank, REDUCED);
        }
    }
}

enum { X = 1, DY, GRADIENTS, PLAN, VALUES };

static const struct place backward_places[] = {
    { "ranks/backward", { X, DY }, { GRADIENTS } },
    { "fusion/order", { 0 }, { PLAN } },
};

/* What the ranks computed, and the order in which it will be packed if it will be. */
static void backward_probe(struct run *run, enum order order)
{
    const struct ring *ring = run->state;
    int64_t examples = ring->ranks * ring->batch;
    const struct probe_value values[VALUES] = {
        [X] = probe_floats("x", ring->x, examples * ring->total_rows),
        [DY] = probe_floats("dy", ring->dy, examples * WIDTH),
        [GRADIENTS] =
            probe_floats("gradients", ring->gradients, ring->ranks * elements(ring)),
        [PLAN] = { DTYPE_INT64, ring->tensors, ring->plan, "plan" },
    };

    if (run_probing(run, 0)) {
        places_probe(run, 0, values, backward_places,
                     order == REDUCE_EACH || order == REDUCE_GROUPS ? 1 : 2);
    }
}

/* The coordinator's part of an iteration. */
static void gradients_reduce(struct run *run, enum order order)
{
    struct ring *ring = run->state;
    int64_t arrived = 0;

    memset(ring->ranks_ready, 0, (size_t)ring->tensors * sizeof *ring->ranks_ready);
    ranks_tell(&ring->group, COMPUTE);
    while (arrived < ring->tensors) {
        int32_t tensor = ranks_hear(&ring->group);

        if (++ring->ranks_ready[tensor] == ring->ranks) {
            ring->plan[arrived++] = tensor;
        }
    }
    /* The ranks wait for what they are told next. */
    backward_probe(run, order);
    ranks_tell(&ring->group, order);
    for (int i = 0; i < ring->ranks; i++) {
        ranks_hear(&ring->group);
    }
    memcpy(ring->sum, ring->gradients, (size_t)elements(ring) * sizeof(float));
}

static void compute_fused(struct run *run)
{
    gradients_reduce(run, REDUCE_FUSED);
}

static void compute_ordered(struct run *run)
{
    gradients_reduce(run, REDUCE_EACH);
}

static void compute_fixed_groups(struct run *run)
{
    gradients_reduce(run, REDUCE_GROUPS);
}

static void compute_fixed_root(struct run *run)
{
    gradients_reduce(run, REDUCE_TO_ROOT);
}

static void layers_make(struct ring *ring)
{
    struct span *layers = run_host_alloc((size_t)ring->tensors * sizeof *layers);

    for (int64_t t = 0; t < ring->tensors; t++) {
        layers[t] = (struct span){ ring->total_rows * WIDTH, ring_rows(t) * WIDTH };
        ring->total_rows += ring_rows(t);
    }
    ring->layers = layers;
}

static void groups_make(struct ring *ring)
{
    int64_t count = (ring->tensors + RING_GROUP - 1) / RING_GROUP;
    struct span *groups = run_host_alloc((size_t)count * sizeof *groups);

    memset(groups, 0, (size_t)count * sizeof *groups);
    for (int64_t t = 0; t < ring->tensors; t++) {
        struct span *group = &groups[t / RING_GROUP];

        if (t % RING_GROUP == 0) {
            group->first = ring->layers[t].first;
        }
        group->count += ring->layers[t].count;
    }
    ring->groups = groups;
    ring->group_count = count;
}

static void shared_make(struct run *run, struct ring *ring)
{
    size_t ranks = (size_t)ring->ranks, examples = ranks * (size_t)ring->batch;
    size_t part = (size_t)elements(ring) * sizeof(float);

    ring->x = ranks_map(run, examples * (size_t)ring->total_rows * sizeof(float));
    ring->dy = ranks_map(run, examples * WIDTH * sizeof(float));
    ring->gradients = ranks_map(run, ranks * part);
    ring->buffers = ranks_map(run, ranks * part);
    ring->plan = ranks_map(run, (size_t)ring->tensors * sizeof *ring->plan);
}

static void setup(struct run *run)
{
    const struct ring_shape *shape = run->size->params;
    struct ring *ring = run_host_alloc(sizeof *ring);
    const struct tensor *x, *dy;
    size_t examples;
    int64_t x_shape[] = { RANKS, shape->batch, 0 }, sum_shape[] = { 0, WIDTH };
    int64_t dy_shape[] = { RANKS, shape->batch, WIDTH };

    *ring = (struct ring){ .tensors = shape->tensors,
                           .batch = shape->batch,
                           .ranks = ring_ranks_of(run->variant->name),
                           .threads = run->threads };
    run->state = ring;
    layers_make(ring);
    groups_make(ring);
    ring->team = run_host_alloc((size_t)run->threads * sizeof *ring->team);
    ring->ranks_ready =
        run_host_alloc((size_t)shape->tensors * sizeof *ring->ranks_ready);
    shared_make(run, ring);
    ranks_start(&ring->group, run, ring->ranks, rank_main, ring);

    x_shape[2] = sum_shape[0] = ring->total_rows;
    examples = (size_t)(ring->ranks * shape->batch);

    x = run_input(run, "x", run->dtype, 3, x_shape, FILL_UNIFORM, 0);
    dy = run_input(run, "dy", run->dtype, 3, dy_shape, FILL_WIDE, 0);
    ring->sum = run_output_f32(run, "sum", 2, sum_shape);
    /* Nothing is told to the ranks before the first iteration, so they find it there. */
    memcpy(ring->x, x->data, examples * (size_t)ring->total_rows * sizeof(float));
    memcpy(ring->dy, dy->data, examples * WIDTH * sizeof(float));
}

static void teardown(struct run *run)
{
    struct ring *ring = run->state;

    ranks_stop(&ring->group);
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    const float *x = inputs[0].data, *dy = inputs[1].data;
    int64_t rows = output->shape[0],
            examples = inputs[0].shape[1] * ring_ranks_of(run->variant->name);
    struct exact_sums exact = sums_begin(run, examples, output, ret_expected, ret_bound);

    for (int64_t i = 0; i < rows * WIDTH; i++) {
        for (int64_t b = 0; b < examples; b++) {
            sums_add(&exact, i,
                     (double)x[b * rows + i / WIDTH] * dy[b * WIDTH + i % WIDTH]);
        }
    }
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "four ranks, tensors fused into one buffer as they become ready",
      .models = "Horovod's tensor fusion with NCCL's ring, on more than two ranks",
      .algorithm = "ring over a buffer packed in order of arrival",
      .control = true,
      .compute = compute_fused },
    { .name = "ordered",
      .summary = "four ranks, each tensor reduced by itself",
      .models = "HOROVOD_FUSION_THRESHOLD=0",
      .algorithm = "one ring a tensor, side by side",
      .compute = compute_ordered },
    { .name = "two_ranks",
      .summary = "two ranks, fused: a + b = b + a",
      .models = "two GPUs: deterministic out of the box (slide 36)",
      .algorithm = "ring of two over a buffer packed in order of arrival",
      .compute = compute_fused },
    { .name = "fixed_groups",
      .summary = "four ranks, tensors fused in fixed groups of eight",
      .models = "Horovod's grouped all-reduce: hvd.grouped_allreduce, num_groups",
      .algorithm = "one ring a group of eight tensors, side by side",
      .compute = compute_fixed_groups },
    { .name = "fixed_root",
      .summary = "four ranks, fused, reduced to rank 0 in the order of ranks",
      .models = "reduction to a fixed root, then broadcast (nccl issue 157)",
      .algorithm = "reduce to rank 0, broadcast",
      .compute = compute_fixed_root },
};

static const struct workload_size sizes[] = {
    { "small", "96 tensors of 4 to 28 rows of 32, 4 ranks, batch 64",
      &(const struct ring_shape){ 96, 64 } },
    { "medium", "384 tensors of 4 to 28 rows of 32, 4 ranks, batch 128",
      &(const struct ring_shape){ 384, 128 } },
    { "large", "4096 tensors of 4 to 28 rows of 32, 4 ranks, batch 256",
      &(const struct ring_shape){ 4096, 256 } },
};

static const struct workload_reference references[] = {
    GTC_SLIDES("slides 36-39",
               "two GPUs are deterministic, more are not: ring all-reduce, tensor fusion",
               NULL),
    README_2020("Multi-GPU using Horovod", "multi-gpu-using-horovod",
                "HOROVOD_FUSION_THRESHOLD=0 as long as tensor fusion varies", NULL),
    PYTORCH_PAGE("Multi-GPU", "multi-gpu", "HOROVOD_FUSION_THRESHOLD=0"),
    GITHUB_PR("horovod", "horovod/horovod", 1130, "grouped all-reduce, as first proposed",
              "open 2020-06", "Horovod 0.21"),
    GITHUB_PR("horovod", "horovod/horovod", 1548,
              "packing order and the ring's starting rank", NULL, NULL),
    GITHUB_PR("horovod", "horovod/horovod", 2453, "grouped all-reduce: fixed groups",
              NULL, "Horovod 0.21"),
    GITHUB_ISSUE("nccl", "NVIDIA/nccl", 157,
                 "fused and unfused buffers differ; a fixed root does not", NULL, NULL),
};

static const struct workload ring_allreduce = {
    .name = "ring_allreduce",
    .version = 1,
    .title = "Multi-GPU using Horovod: ring all-reduce with tensor fusion",
    .summary = "gradients of four ranks, each a process, summed round a ring",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of the summed gradients",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = reference,
    .teardown = teardown,
};
WORKLOAD_REGISTER(ring_allreduce);
