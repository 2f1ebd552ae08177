/* CTC loss; workloads/ctc_loss.h has the definition and its words.  `ordered` computes
 * and adds in the CPU's order, but CUDA's expf and logf are not those of the C library,
 * so its bits are its own on a GPU.
 *
 * cuDNN's gradient knows no upstream gradient and ends where an example ends: the
 * variants of cuDNN multiply it and write the zeros behind the end. */
#include "cuda/cudnn/ctc.h"
#include "cuda/cudnn/usable.h"
#include "cuda/kernels/kernel.h"
#include "workloads/shared/ctc_labels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HALVES = 2 /* of a label row, in `unordered` */ };

struct ctc_loss {
    struct ctc_shape shape;
    int64_t positions; /* of the longest extended label row: 2 * labels + 1 */
    const float *logits, *upstream;
    const int32_t *labels, *label_drop, *time_drop;
    float *gradient, *losses;
    float *log_probs; /* [batch][time][symbols] */
    float *log_paths; /* [batch][halves][time][positions]: alpha, then alpha + beta */
    float *host_losses;
    struct cudnn_ctc_task cudnn;
};

__device__ static int64_t example_time(const struct ctc_loss *ctc, int64_t b)
{
    return ctc->shape.time - ctc->time_drop[b];
}

__device__ static int64_t example_positions(const struct ctc_loss *ctc, int64_t b)
{
    return 2 * (ctc->shape.labels - ctc->label_drop[b]) + 1;
}

/* log(exp(a) + exp(b) + exp(c)), the largest first. */
__device__ static float log_add(float a, float b, float c)
{
    float most = a, second = b, third = c;

    if (second > most) {
        most = b;
        second = a;
    }
    if (third > most) {
        third = most;
        most = c;
    }
    if (most == -INFINITY) {
        return most;
    }
    return most + logf(1 + expf(second - most) + expf(third - most));
}

/* The log softmax, and its share of the gradient: a thread for each example and time. */
__global__ static void softmax_kernel(struct ctc_loss ctc)
{
    int64_t symbols = ctc.shape.symbols, batch = ctc.shape.batch;

    KERNEL_FOR(i, ctc.shape.time * batch)
    {
        int64_t b = i % batch, t = i / batch;
        const float *logits = ctc.logits + i * symbols;
        float *gradient = ctc.gradient + i * symbols;
        float *log_probs = ctc.log_probs + (b * ctc.shape.time + t) * symbols;
        bool inside = t < example_time(&ctc, b);
        float most = logits[0], sum = 0;

        for (int64_t v = 1; v < symbols; v++) {
            most = logits[v] > most ? logits[v] : most;
        }
        for (int64_t v = 0; v < symbols; v++) {
            sum += expf(logits[v] - most);
        }
        sum = logf(sum);
        for (int64_t v = 0; v < symbols; v++) {
            log_probs[v] = logits[v] - most - sum;
            gradient[v] = inside ? ctc.upstream[b] * expf(log_probs[v]) : 0.0f;
        }
    }
}

/* One position of an example's label row: the work of a thread. */
struct place {
    int64_t example, position, positions, time, symbol;
    bool skips_here, skips_on; /* from position - 2, to position + 2 */
    bool used;                 /* the row is that long */
    const float *log_probs;    /* [time][symbols] */
    float *log_paths;          /* [time][positions of the longest] */
};

__device__ static struct place place_of(const struct ctc_loss *ctc, int64_t halves)
{
    int64_t b = blockIdx.x / halves, s = threadIdx.x;
    const int32_t *labels = ctc->labels + b * ctc->shape.labels;
    struct place place;

    place.example = b;
    place.position = s;
    place.positions = example_positions(ctc, b);
    place.time = example_time(ctc, b);
    place.used = s < place.positions;
    place.symbol = place.used ? ctc_symbol_at(labels, s) : 0;
    place.skips_here = place.used && ctc_may_skip(labels, s);
    place.skips_on = s + 2 < place.positions && ctc_may_skip(labels, s + 2);
    place.log_probs = ctc->log_probs + b * ctc->shape.time * ctc->shape.symbols;
    place.log_paths = ctc->log_paths + blockIdx.x * ctc->shape.time * ctc->positions;
    return place;
}

/* Writes alpha; returns log p, to all threads of the block. */
__device__ static float block_alpha(const struct ctc_loss *ctc, const struct place *place)
{
    int64_t s = place->position;
    float *alpha = place->log_paths;
    const float *log_probs = place->log_probs + place->symbol, *last;

    for (int64_t t = 0; t < place->time; t++) {
        const float *before = alpha - ctc->positions;

        if (place->used && t == 0) {
            alpha[s] = s < 2 ? *log_probs : -INFINITY;
        } else if (place->used) {
            alpha[s] = log_add(before[s], s >= 1 ? before[s - 1] : -INFINITY,
                               place->skips_here ? before[s - 2] : -INFINITY) +
                       *log_probs;
        }
        alpha += ctc->positions;
        log_probs += ctc->shape.symbols;
        __syncthreads();
    }
    last = alpha - ctc->positions + place->positions - 2;
    return log_add(last[0], last[1], -INFINITY);
}

__device__ static float beta_before(const struct place *place, const float *onward)
{
    int64_t s = place->position;

    return log_add(onward[s], s + 1 < place->positions ? onward[s + 1] : -INFINITY,
                   place->skips_on ? onward[s + 2] : -INFINITY);
}

/* A block an example, or `halves` of them: each computes the whole example, and adds its
 * part of the positions to the gradient with atomicAdd.  With one, alpha + beta is left
 * to rows_kernel.  `onward` is beta with the emission. */
__global__ static void paths_kernel(struct ctc_loss ctc, int64_t halves)
{
    DYNAMIC_SHARED(float, onward);
    struct place place = place_of(&ctc, halves);
    int64_t s = place.position, half = blockIdx.x % halves;
    int64_t begin = half * place.positions / halves;
    int64_t end = (half + 1) * place.positions / halves;
    float log_probability = block_alpha(&ctc, &place);

    if (s == 0 && half == 0) {
        ctc.losses[place.example] = -log_probability;
    }
    for (int64_t t = place.time - 1; t >= 0; t--) {
        float *log_paths = place.log_paths + t * ctc.positions + s;
        float beta = s >= place.positions - 2 ? 0 : -INFINITY;

        if (place.used && t < place.time - 1) {
            beta = beta_before(&place, onward);
        }
        __syncthreads();
        if (place.used) {
            onward[s] = beta + place.log_probs[t * ctc.shape.symbols + place.symbol];
        }
        if (place.used && halves == 1) {
            *log_paths += beta;
        } else if (s >= begin && s < end) {
            atomicAdd(
                &ctc.gradient[(t * ctc.shape.batch + place.example) * ctc.shape.symbols +
                              place.symbol],
                -(ctc.upstream[place.example] *
                  expf(*log_paths + beta - log_probability)));
        }
        __syncthreads();
    }
}

/* A thread for each example and time subtracts its occupancies, positions in order. */
__global__ static void rows_kernel(struct ctc_loss ctc)
{
    KERNEL_FOR(i, ctc.shape.time * ctc.shape.batch)
    {
        int64_t b = i % ctc.shape.batch, t = i / ctc.shape.batch;
        const float *log_paths = ctc.log_paths + (b * ctc.shape.time + t) * ctc.positions;
        const int32_t *labels = ctc.labels + b * ctc.shape.labels;
        float *gradient = ctc.gradient + i * ctc.shape.symbols;

        if (t >= example_time(&ctc, b)) {
            continue;
        }
        for (int64_t s = 0; s < example_positions(&ctc, b); s++) {
            gradient[ctc_symbol_at(labels, s)] -=
                ctc.upstream[b] * expf(log_paths[s] + ctc.losses[b]);
        }
    }
}

static double losses_sum(const struct ctc_loss *ctc)
{
    double sum = 0;

    CUDA_TRY(cudaMemcpy(ctc->host_losses, ctc->losses,
                        (size_t)ctc->shape.batch * sizeof(float),
                        cudaMemcpyDeviceToHost));
    for (int64_t b = 0; b < ctc->shape.batch; b++) {
        sum += ctc->host_losses[b];
    }
    return sum;
}

static void paths_compute(const struct ctc_loss *ctc, int64_t halves)
{
    unsigned threads = (unsigned)(ceil_div(ctc->positions, WARP_LANES) * WARP_LANES);

    LAUNCH_ITEMS(softmax_kernel, ctc->shape.time * ctc->shape.batch, *ctc);
    LAUNCH(paths_kernel, (unsigned)(ctc->shape.batch * halves), threads,
           (size_t)ctc->positions * sizeof(float), 0, *ctc, halves);
}

static void compute_unordered(struct run *run)
{
    const struct ctc_loss *ctc = (const struct ctc_loss *)run->state;

    paths_compute(ctc, HALVES);
    run->loss = losses_sum(ctc);
}

static void compute_ordered(struct run *run)
{
    const struct ctc_loss *ctc = (const struct ctc_loss *)run->state;

    paths_compute(ctc, 1);
    LAUNCH_ITEMS(rows_kernel, ctc->shape.time * ctc->shape.batch, *ctc);
    run->loss = losses_sum(ctc);
}

__global__ static void finish_kernel(struct ctc_loss ctc)
{
    KERNEL_FOR(i, ctc.shape.time * ctc.shape.batch * ctc.shape.symbols)
    {
        int64_t row = i / ctc.shape.symbols, b = row % ctc.shape.batch;

        ctc.gradient[i] = row / ctc.shape.batch < example_time(&ctc, b)
                              ? ctc.gradient[i] * ctc.upstream[b]
                              : 0.0f;
    }
}

static void compute_cudnn(struct run *run)
{
    const struct ctc_loss *ctc = (const struct ctc_loss *)run->state;

    cudnn_ctc_compute(run, &ctc->cudnn);
    LAUNCH_ITEMS(finish_kernel, ctc->shape.time * ctc->shape.batch * ctc->shape.symbols,
                 *ctc);
    run->loss = losses_sum(ctc);
}

static int32_t *host_copy(const int32_t *values, int64_t count)
{
    size_t bytes = (size_t)count * sizeof(int32_t);
    int32_t *copy = (int32_t *)run_host_alloc(bytes);

    CUDA_TRY(cudaMemcpy(copy, values, bytes, cudaMemcpyDeviceToHost));
    return copy;
}

static const int *device_copy(struct run *run, const int *values, int64_t count)
{
    size_t bytes = (size_t)count * sizeof(int);
    int *copy = (int *)run_alloc(run, bytes);

    CUDA_TRY(cudaMemcpy(copy, values, bytes, cudaMemcpyHostToDevice));
    return copy;
}

/* Labels one after the other and lengths, as cuDNN takes them. */
static void cudnn_labels(struct run *run, struct ctc_loss *ctc)
{
    const struct ctc_shape *shape = &ctc->shape;
    struct cudnn_ctc_task *task = &ctc->cudnn;
    int32_t *rows = host_copy(ctc->labels, shape->batch * shape->labels);
    int *label_lengths = host_copy(ctc->label_drop, shape->batch);
    int *time_lengths = host_copy(ctc->time_drop, shape->batch);
    int *labels =
        (int *)run_host_alloc((size_t)(shape->batch * shape->labels) * sizeof(int));
    int64_t count = 0;

    for (int64_t b = 0; b < shape->batch; b++) {
        label_lengths[b] = (int)shape->labels - label_lengths[b];
        time_lengths[b] = (int)shape->time - time_lengths[b];
        for (int64_t i = 0; i < label_lengths[b]; i++) {
            labels[count++] = rows[b * shape->labels + i] + 1;
        }
    }
    free(rows);
    task->labels = task->v8 ? device_copy(run, labels, count) : labels;
    task->label_lengths =
        task->v8 ? device_copy(run, label_lengths, shape->batch) : label_lengths;
    task->time_lengths =
        task->v8 ? device_copy(run, time_lengths, shape->batch) : time_lengths;
}

static const struct cudnn_kind {
    const char *variant;
    bool deterministic, v8;
} cudnn_kinds[] = {
    { "cudnn_non_deterministic", false, false },
    { "cudnn_deterministic", true, false },
    { "cudnn_v8_non_deterministic", false, true },
    { "cudnn_v8_deterministic", true, true },
};

static void cudnn_setup(struct run *run, struct ctc_loss *ctc)
{
    struct cudnn_ctc_task *task = &ctc->cudnn;
    const struct cudnn_kind *kind = cudnn_kinds;

    while (strcmp(kind->variant, run->variant->name) != 0) {
        kind++;
    }
    task->time = (int)ctc->shape.time;
    task->batch = (int)ctc->shape.batch;
    task->symbols = (int)ctc->shape.symbols;
    task->most_labels = (int)ctc->shape.labels;
    task->deterministic = kind->deterministic;
    task->v8 = kind->v8;
    task->logits = ctc->logits;
    task->losses = ctc->losses;
    task->gradient = ctc->gradient;
    cudnn_ctc_describe(run, task);
    cudnn_labels(run, ctc);
    cudnn_ctc_prepare(run, task);
}

static const int32_t *index_input(struct run *run, const char *name, int rank,
                                  const int64_t *shape, int64_t limit)
{
    return run_input_i32(run, name, rank, shape, limit);
}

static void setup(struct run *run)
{
    const struct ctc_shape *shape = (const struct ctc_shape *)run->size->params;
    struct ctc_loss *ctc = (struct ctc_loss *)run_host_alloc(sizeof *ctc);
    int64_t logits_shape[] = { shape->time, shape->batch, shape->symbols };
    int64_t labels_shape[] = { shape->batch, shape->labels };
    const int64_t *batch = &shape->batch;
    int64_t rows = shape->batch * shape->time;

    ctc->shape = *shape;
    ctc->positions = 2 * shape->labels + 1;
    ctc->logits = run_input_f32(run, "logits", 3, logits_shape, FILL_UNIFORM);
    ctc->upstream = run_input_f32(run, "upstream", 1, batch, FILL_WIDE);
    ctc->labels =
        index_input(run, "labels_less_one", 2, labels_shape, shape->symbols - 1);
    ctc->label_drop = index_input(run, "label_drop", 1, batch, shape->labels / 4);
    ctc->time_drop = index_input(run, "time_drop", 1, batch, shape->time / 4);
    ctc->gradient = run_output_f32(run, "gradient", 3, logits_shape);
    ctc->losses = run_output_f32(run, "losses", 1, batch);
    ctc->host_losses = (float *)run_host_alloc((size_t)*batch * sizeof(float));
    run->state = ctc;
    if (run->variant->compute == compute_cudnn) {
        cudnn_setup(run, ctc);
        return;
    }
    ctc->log_probs = run_alloc_f32(run, rows * shape->symbols);
    ctc->log_paths = run_alloc_f32(run, HALVES * rows * ctc->positions);
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "two blocks an example add their label positions with atomicAdd",
      .algorithm = "log-domain alpha-beta by halves, atomicAdd",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary = "one block an example; a thread adds the positions of a time in order",
      .algorithm = "log-domain alpha-beta, positions in order, CUDA's expf and logf",
      .compute = compute_ordered },
    { .name = "cudnn_non_deterministic",
      .summary = "cuDNN's CUDNN_CTC_LOSS_ALGO_NON_DETERMINISTIC itself",
      .models = "cudnnCTCLoss, the algorithm that TensorFlow tries first",
      .algorithm = "CUDNN_CTC_LOSS_ALGO_NON_DETERMINISTIC, cudnnCTCLoss",
      .claim = "non-deterministic",
      .compute = compute_cudnn,
      .library = "cuDNN",
      .unsupported = cudnn_unsupported },
    { .name = "cudnn_deterministic",
      .summary = "cuDNN's CUDNN_CTC_LOSS_ALGO_DETERMINISTIC itself",
      .models = "cudnnCTCLoss, as TF_DETERMINISTIC_OPS selects it",
      .algorithm = "CUDNN_CTC_LOSS_ALGO_DETERMINISTIC, cudnnCTCLoss",
      .claim = "deterministic",
      .compute = compute_cudnn,
      .library = "cuDNN",
      .unsupported = cudnn_unsupported },
    { .name = "cudnn_v8_non_deterministic",
      .summary = "the same algorithm through cudnnCTCLoss_v8",
      .models = "cudnnCTCLoss_v8: labels in device memory",
      .algorithm = "CUDNN_CTC_LOSS_ALGO_NON_DETERMINISTIC, cudnnCTCLoss_v8",
      .claim = "non-deterministic",
      .compute = compute_cudnn,
      .library = "cuDNN",
      .unsupported = cudnn_unsupported },
    { .name = "cudnn_v8_deterministic",
      .summary = "the same algorithm through cudnnCTCLoss_v8",
      .models = "cudnnCTCLoss_v8: labels in device memory",
      .algorithm = "CUDNN_CTC_LOSS_ALGO_DETERMINISTIC, cudnnCTCLoss_v8",
      .claim = "deterministic",
      .compute = compute_cudnn,
      .library = "cuDNN",
      .unsupported = cudnn_unsupported },
};

CUDA_TWIN(ctc_loss, 1, variants, setup);
