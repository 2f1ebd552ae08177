/* Gradients of several ranks, summed by a ring all-reduce, with and without fusion.
 *
 * A ring all-reduce cuts its buffer into as many chunks as there are ranks, and chunk c
 * goes round from rank c + 1 to rank c: the order in which the ranks' values of an
 * element are added depends on where in the buffer it lies.  Fusion packs tensors into
 * one buffer as they become ready, so that place depends on which were ready first.
 * (Patarasuk, Yuan, "Bandwidth efficient all-reduce operation on tree topologies", IPDPS
 * 2007; Sergeev, Del Balso, "Horovod", arXiv 1802.05799.)
 *
 * The ranks live in one process.  Their gradients, of dense layers (dw = transposed x
 * times dy), are computed by the threads of the team, layer by layer from the last to the
 * first, and a tensor is ready when every rank has computed it: when that is, only the
 * machine decides.  What travels between real ranks are copies, which round nothing. */
#include "workloads/workload.h"

#include <math.h>
#include <string.h>

#include "workloads/rounding.h"

enum { RANKS = 4, WIDTH = 32, LEAST_ROWS = 4, ROWS_STEP = 7, ROWS_RANGE = 25 };

struct ring_shape {
    int64_t tensors, batch;
};

/* A dense layer's weights: [rows][WIDTH]. */
struct layer {
    int64_t first_row, rows;
    int ranks_ready;
    int64_t offset; /* in the fused buffer, in elements */
};

struct ring {
    int64_t tensors, batch, total_rows;
    int ranks;
    const float *x;   /* [ranks][batch][total rows] */
    const float *dy;  /* [ranks][batch][WIDTH] */
    float *gradients; /* [ranks][total rows][WIDTH] */
    float *sum;       /* [total rows][WIDTH] */
    struct layer *layers;
    int64_t *arrivals; /* layers in the order in which they became ready */
    int64_t arrived;
};

static int64_t layer_rows(int64_t tensor)
{
    return LEAST_ROWS + tensor * ROWS_STEP % ROWS_RANGE;
}

static void gradient_compute(const struct ring *ring, int rank, const struct layer *layer)
{
    float *dw = ring->gradients + (rank * ring->total_rows + layer->first_row) * WIDTH;

    memset(dw, 0, (size_t)(layer->rows * WIDTH) * sizeof(float));
    for (int64_t b = rank * ring->batch; b < (rank + 1) * ring->batch; b++) {
        const float *x = ring->x + b * ring->total_rows + layer->first_row;
        const float *dy = ring->dy + b * WIDTH;

        for (int64_t row = 0; row < layer->rows; row++) {
#pragma omp simd
            for (int64_t i = 0; i < WIDTH; i++)
                dw[row * WIDTH + i] += x[row] * dy[i];
        }
    }
}

/* For all threads of the team.  Back-propagation on all ranks; notes what arrives when.
 */
static void gradients_compute(struct ring *ring)
{
#pragma omp single
    {
        ring->arrived = 0;
        for (int64_t t = 0; t < ring->tensors; t++)
            ring->layers[t].ranks_ready = 0;
    }
#pragma omp for schedule(dynamic, 1)
    for (int64_t task = 0; task < ring->tensors * ring->ranks; task++) {
        int64_t tensor = ring->tensors - 1 - task / ring->ranks;
        struct layer *layer = &ring->layers[tensor];

        gradient_compute(ring, (int)(task % ring->ranks), layer);
        if (__atomic_add_fetch(&layer->ranks_ready, 1, __ATOMIC_ACQ_REL) == ring->ranks)
            ring->arrivals[__atomic_fetch_add(&ring->arrived, 1, __ATOMIC_ACQ_REL)] =
                tensor;
    }
}

/* Sums one element over the ranks, round the ring from rank FIRST. */
static float ring_sum(const struct ring *ring, int64_t element, int first)
{
    float sum = ring->gradients[first * ring->total_rows * WIDTH + element];

    for (int i = 1; i < ring->ranks; i++)
        sum += ring->gradients[(first + i) % ring->ranks * ring->total_rows * WIDTH +
                               element];
    return sum;
}

/* Reduces LAYER, which lies at OFFSET of a buffer of COUNT elements. */
static void layer_reduce(const struct ring *ring, const struct layer *layer,
                         int64_t offset, int64_t count)
{
    for (int64_t i = 0; i < layer->rows * WIDTH; i++) {
        int64_t chunk = (offset + i) * ring->ranks / count;
        int64_t element = layer->first_row * WIDTH + i;

        ring->sum[element] = ring_sum(ring, element, (int)(chunk + 1) % ring->ranks);
    }
}

static void compute_fused(struct run *run)
{
    struct ring *ring = run->state;

#pragma omp parallel num_threads(run->threads)
    {
        gradients_compute(ring);
#pragma omp single
        for (int64_t i = 0, offset = 0; i < ring->tensors; i++) {
            struct layer *layer = &ring->layers[ring->arrivals[i]];

            layer->offset = offset;
            offset += layer->rows * WIDTH;
        }
#pragma omp for
        for (int64_t t = 0; t < ring->tensors; t++)
            layer_reduce(ring, &ring->layers[t], ring->layers[t].offset,
                         ring->total_rows * WIDTH);
    }
}

static void compute_ordered(struct run *run)
{
    struct ring *ring = run->state;

#pragma omp parallel num_threads(run->threads)
    {
        gradients_compute(ring);
#pragma omp for
        for (int64_t t = 0; t < ring->tensors; t++)
            layer_reduce(ring, &ring->layers[t], 0, ring->layers[t].rows * WIDTH);
    }
}

/* Wherever an element lies, it is summed from rank 0 on. */
static void compute_fixed_root(struct run *run)
{
    struct ring *ring = run->state;

#pragma omp parallel num_threads(run->threads)
    {
        gradients_compute(ring);
#pragma omp for
        for (int64_t i = 0; i < ring->total_rows * WIDTH; i++)
            ring->sum[i] = ring_sum(ring, i, 0);
    }
}

static int variant_ranks(const struct run *run)
{
    return strcmp(run->variant->name, "two_ranks") == 0 ? 2 : RANKS;
}

static void setup(struct run *run)
{
    const struct ring_shape *shape = run->size->params;
    struct ring *ring = run_host_alloc(sizeof(*ring));

    *ring = (struct ring){ .tensors = shape->tensors,
                           .batch = shape->batch,
                           .ranks = variant_ranks(run) };
    ring->layers = run_alloc(run, (size_t)shape->tensors * sizeof(*ring->layers));
    ring->arrivals = run_alloc(run, (size_t)shape->tensors * sizeof(*ring->arrivals));
    for (int64_t t = 0; t < shape->tensors; t++) {
        ring->layers[t].first_row = ring->total_rows;
        ring->layers[t].rows = layer_rows(t);
        ring->total_rows += layer_rows(t);
    }
    int64_t x_shape[] = { RANKS, shape->batch, ring->total_rows };
    int64_t dy_shape[] = { RANKS, shape->batch, WIDTH };
    int64_t sum_shape[] = { ring->total_rows, WIDTH };

    ring->x = run_input(run, "x", run->dtype, 3, x_shape, FILL_UNIFORM, 0)->data;
    ring->dy = run_input(run, "dy", run->dtype, 3, dy_shape, FILL_WIDE, 0)->data;
    ring->sum = run_output(run, "sum", run->dtype, 2, sum_shape)->data;
    ring->gradients =
        run_alloc(run, (size_t)(RANKS * ring->total_rows * WIDTH) * sizeof(float));
    run->state = ring;
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    const float *x = inputs[0].data, *dy = inputs[1].data;
    int64_t rows = output->shape[0], examples = inputs[0].shape[1] * variant_ranks(run);
    double gamma = rounding_gamma(run->dtype, examples);

    for (int64_t i = 0; i < rows * WIDTH; i++) {
        ret_expected[i] = ret_bound[i] = 0;
        for (int64_t b = 0; b < examples; b++) {
            double term = (double)x[b * rows + i / WIDTH] * dy[b * WIDTH + i % WIDTH];

            ret_expected[i] += term;
            ret_bound[i] += gamma * fabs(term);
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
      .algorithm = "one ring a tensor",
      .compute = compute_ordered },
    { .name = "two_ranks",
      .summary = "two ranks, fused: a + b = b + a",
      .models = "two GPUs: deterministic out of the box (slide 36)",
      .algorithm = "ring of two over a buffer packed in order of arrival",
      .compute = compute_fused },
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
    { "GTC S9911 slides 36-39",
      "two GPUs are deterministic, more are not: ring all-reduce, tensor fusion", NULL },
    { "horovod PR 1130", "grouped all-reduce, asked for", NULL },
    { "horovod PR 1548", "packing order and the ring's starting rank", NULL },
    { "horovod PR 2453", "grouped all-reduce: fixed groups", "Horovod 0.21" },
    { "nccl issue 157", "fused and unfused buffers differ; a fixed root does not", NULL },
};

static const struct workload ring_allreduce = {
    .name = "ring_allreduce",
    .version = 1,
    .backend = "cpu",
    .title = "Multi-GPU using Horovod: ring all-reduce with tensor fusion",
    .summary = "gradients of four ranks, summed round a ring",
    .variants = variants,
    .variant_count = COUNT_OF(variants),
    .sizes = sizes,
    .size_count = COUNT_OF(sizes),
    .dtypes = { DTYPE_FLOAT32 },
    .dtype_count = 1,
    .weight_sum = "sum of the summed gradients",
    .references = references,
    .reference_count = COUNT_OF(references),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(ring_allreduce);
