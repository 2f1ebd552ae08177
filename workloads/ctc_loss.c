/* Connectionist temporal classification: losses, and their gradient with respect to the
 * logits times an upstream gradient for each example, in the logarithmic domain.  The
 * definition and its words (position, alpha, beta, occupancy) are in ctc_loss.h. */
#include "workloads/ctc_loss.h"

#include <omp.h>
#include <string.h>

#include "workloads/shared/references.h"
#include "workloads/workload.h"

struct ctc_loss {
    struct ctc_shape shape;
    int64_t positions; /* of the longest extended label row: 2 * labels + 1 */
    const float *logits, *upstream;
    const int32_t *labels, *label_drop, *time_drop;
    float *gradient, *losses;
    float *log_probs; /* [batch][time][symbols] */
    float *scratch;   /* for each thread, time + 2 rows of positions */
};

/* Positions [begin, end) of one example: the work of one task.  Its alphas depend on the
 * positions before them alone and its betas on those after, so two tasks can share an
 * example and meet only in the gradient. */
struct part {
    int64_t example, time, positions, begin, end;
    const int32_t *labels;
    const float *log_probs; /* [time][symbols] */
    float upstream;
    float *log_paths;     /* [time][positions]: alpha, then alpha + beta */
    float *beta, *onward; /* a row each */
    float log_probability;
};

static struct part part_at(const struct ctc_loss *ctc, int64_t b)
{
    const struct ctc_shape *shape = &ctc->shape;
    float *scratch =
        ctc->scratch + omp_get_thread_num() * (shape->time + 2) * ctc->positions;
    int64_t positions = 2 * (shape->labels - ctc->label_drop[b]) + 1;

    return (struct part){
        .example = b,
        .time = shape->time - ctc->time_drop[b],
        .positions = positions,
        .end = positions,
        .labels = ctc->labels + b * shape->labels,
        .log_probs = ctc->log_probs + b * shape->time * shape->symbols,
        .upstream = ctc->upstream[b],
        .log_paths = scratch,
        .beta = scratch + shape->time * ctc->positions,
        .onward = scratch + (shape->time + 1) * ctc->positions,
    };
}

/* log(exp(a) + exp(b) + exp(c)), the largest first. */
static float log_add(float a, float b, float c)
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

static void log_softmax(const float *logits, int64_t symbols, float *ret_log_probs)
{
    float most = logits[0], sum = 0;

    for (int64_t v = 1; v < symbols; v++) {
        most = logits[v] > most ? logits[v] : most;
    }
    for (int64_t v = 0; v < symbols; v++) {
        sum += expf(logits[v] - most);
    }
    sum = logf(sum);
    for (int64_t v = 0; v < symbols; v++) {
        ret_log_probs[v] = logits[v] - most - sum;
    }
}

/* The log softmax of example B, and its share of the gradient. */
static void example_softmax(const struct ctc_loss *ctc, int64_t b)
{
    const struct ctc_shape *shape = &ctc->shape;

    for (int64_t t = 0; t < shape->time; t++) {
        int64_t row = (t * shape->batch + b) * shape->symbols;
        float *log_probs = ctc->log_probs + (b * shape->time + t) * shape->symbols;

        if (t >= shape->time - ctc->time_drop[b]) {
            memset(ctc->gradient + row, 0, (size_t)shape->symbols * sizeof(float));
            continue;
        }
        log_softmax(ctc->logits + row, shape->symbols, log_probs);
        for (int64_t v = 0; v < shape->symbols; v++) {
            ctc->gradient[row + v] = ctc->upstream[b] * expf(log_probs[v]);
        }
    }
}

static void part_alpha(const struct ctc_loss *ctc, const struct part *part)
{
    const float *log_probs = part->log_probs;
    float *alpha = part->log_paths;

    for (int64_t s = 0; s < part->end; s++) {
        alpha[s] = s < 2 ? log_probs[ctc_symbol_at(part->labels, s)] : -INFINITY;
    }
    for (int64_t t = 1; t < part->time; t++) {
        const float *before = alpha;

        alpha += ctc->positions;
        log_probs += ctc->shape.symbols;
        for (int64_t s = 0; s < part->end; s++) {
            alpha[s] =
                log_add(before[s], s >= 1 ? before[s - 1] : -INFINITY,
                        ctc_may_skip(part->labels, s) ? before[s - 2] : -INFINITY) +
                log_probs[ctc_symbol_at(part->labels, s)];
        }
    }
}

static float beta_before(const struct part *part, int64_t s)
{
    const float *onward = part->onward;
    bool may_skip = s + 2 < part->positions && ctc_may_skip(part->labels, s + 2);

    return log_add(onward[s], s + 1 < part->positions ? onward[s + 1] : -INFINITY,
                   may_skip ? onward[s + 2] : -INFINITY);
}

/* Adds beta to alpha.  `onward` is beta with the emission. */
static void part_beta(const struct ctc_loss *ctc, const struct part *part)
{
    for (int64_t t = part->time - 1; t >= 0; t--) {
        float *log_paths = part->log_paths + t * ctc->positions;
        const float *log_probs = part->log_probs + t * ctc->shape.symbols;

        for (int64_t s = part->begin; s < part->positions; s++) {
            if (t < part->time - 1) {
                part->beta[s] = beta_before(part, s);
            } else {
                part->beta[s] = s >= part->positions - 2 ? 0 : -INFINITY;
            }
        }
        for (int64_t s = part->begin; s < part->positions; s++) {
            part->onward[s] = part->beta[s] + log_probs[ctc_symbol_at(part->labels, s)];
        }
        for (int64_t s = part->begin; s < part->end; s++) {
            log_paths[s] += part->beta[s];
        }
    }
}

/* A part that ends the label row knows log p from its last alphas, one that begins it
 * from its first betas. */
static void part_compute(const struct ctc_loss *ctc, struct part *part)
{
    const float *last =
        part->log_paths + (part->time - 1) * ctc->positions + part->positions - 2;

    part_alpha(ctc, part);
    if (part->end == part->positions) {
        part->log_probability = log_add(last[0], last[1], -INFINITY);
        ctc->losses[part->example] = -part->log_probability;
    }
    part_beta(ctc, part);
    if (part->end < part->positions) {
        part->log_probability = log_add(part->onward[0], part->onward[1], -INFINITY);
    }
}

static float occupancy(const struct ctc_loss *ctc, const struct part *part, int64_t t,
                       int64_t s)
{
    float log_paths = part->log_paths[t * ctc->positions + s];

    return part->upstream * expf(log_paths - part->log_probability);
}

static float *gradient_at(const struct ctc_loss *ctc, const struct part *part, int64_t t,
                          int64_t s)
{
    return ctc->gradient + (t * ctc->shape.batch + part->example) * ctc->shape.symbols +
           ctc_symbol_at(part->labels, s);
}

/* The halves of an example go through time in opposite directions: two threads meet
 * somewhere, and nanoseconds decide where. */
static void half_add_atomically(const struct ctc_loss *ctc, int64_t b, bool second)
{
    struct part part = part_at(ctc, b);

    if (second) {
        part.begin = part.positions / 2;
    } else {
        part.end = part.positions / 2;
    }
    part_compute(ctc, &part);
    for (int64_t i = 0; i < part.time; i++) {
        int64_t t = second ? part.time - 1 - i : i;

        for (int64_t s = part.begin; s < part.end; s++) {
            float share = occupancy(ctc, &part, t, s);
            float *gradient = gradient_at(ctc, &part, t, s);

#pragma omp atomic
            *gradient -= share;
        }
    }
}

static double losses_sum(const struct ctc_loss *ctc)
{
    double sum = 0;

    for (int64_t b = 0; b < ctc->shape.batch; b++) {
        sum += ctc->losses[b];
    }
    return sum;
}

static void compute_unordered(struct run *run)
{
    const struct ctc_loss *ctc = run->state;

#pragma omp parallel num_threads(run->threads)
    {
#pragma omp for schedule(dynamic, 1)
        for (int64_t b = 0; b < ctc->shape.batch; b++) {
            example_softmax(ctc, b);
        }
#pragma omp for schedule(dynamic, 1)
        for (int64_t task = 0; task < ctc->shape.batch * 2; task++) {
            half_add_atomically(ctc, task / 2, task % 2);
        }
    }
    run->loss = losses_sum(ctc);
}

static void example_add(const struct ctc_loss *ctc, int64_t b)
{
    struct part part = part_at(ctc, b);

    part_compute(ctc, &part);
    for (int64_t t = 0; t < part.time; t++) {
        for (int64_t s = 0; s < part.positions; s++) {
            *gradient_at(ctc, &part, t, s) -= occupancy(ctc, &part, t, s);
        }
    }
}

static void compute_ordered(struct run *run)
{
    const struct ctc_loss *ctc = run->state;

#pragma omp parallel for num_threads(run->threads) schedule(dynamic, 1)
    for (int64_t b = 0; b < ctc->shape.batch; b++) {
        example_softmax(ctc, b);
        example_add(ctc, b);
    }
    run->loss = losses_sum(ctc);
}

static void setup(struct run *run)
{
    const struct ctc_shape *shape = run->size->params;
    struct ctc_loss *ctc = run_host_alloc(sizeof *ctc);
    int64_t logits_shape[] = { shape->time, shape->batch, shape->symbols };
    int64_t labels_shape[] = { shape->batch, shape->labels };
    const int64_t *batch = &shape->batch;
    int64_t rows = shape->batch * shape->time;

    ctc->shape = *shape;
    ctc->positions = 2 * shape->labels + 1;
    ctc->logits = run_input_f32(run, "logits", 3, logits_shape, FILL_UNIFORM);
    ctc->upstream = run_input_f32(run, "upstream", 1, batch, FILL_WIDE);
    ctc->labels =
        run_input_i32(run, "labels_less_one", 2, labels_shape, shape->symbols - 1);
    ctc->label_drop = run_input_i32(run, "label_drop", 1, batch, shape->labels / 4);
    ctc->time_drop = run_input_i32(run, "time_drop", 1, batch, shape->time / 4);
    ctc->gradient = run_output_f32(run, "gradient", 3, logits_shape);
    ctc->losses = run_output_f32(run, "losses", 1, batch);
    ctc->log_probs = run_alloc_f32(run, rows * shape->symbols);
    ctc->scratch = run_alloc_f32(run, run->threads * (shape->time + 2) * ctc->positions);
    run->state = ctc;
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    const struct ctc_shape *shape = run->size->params;

    for (int64_t i = 0; i < tensor_elements(output); i++) {
        ret_expected[i] = ret_bound[i] = 0;
    }
    for (int64_t b = 0; b < shape->batch; b++) {
        ctc_reference_example(shape, inputs, b, output->rank == 1, ret_expected,
                              ret_bound);
    }
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "the halves of each label row add to the gradient with atomic adds",
      .models = "cuDNN CUDNN_CTC_LOSS_ALGO_NON_DETERMINISTIC",
      .algorithm = "log-domain alpha-beta by halves, atomic adds",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary = "one task an example adds its label positions in order",
      .models = "cuDNN CUDNN_CTC_LOSS_ALGO_DETERMINISTIC, selected by "
                "TF_DETERMINISTIC_OPS",
      .algorithm = "log-domain alpha-beta, positions in order",
      .compute = compute_ordered },
};

static const struct workload_size sizes[] = {
    { "small", "logits[64,128,16] labels[128,24]",
      &(const struct ctc_shape){ 64, 128, 16, 24 } },
    { "medium", "logits[128,256,32] labels[256,40]",
      &(const struct ctc_shape){ 128, 256, 32, 40 } },
    { "large", "logits[256,1024,64] labels[1024,80]",
      &(const struct ctc_shape){ 256, 1024, 64, 80 } },
};

static const struct workload_reference references[] = {
    TENSORFLOW_COMMIT(
        9e096deb, c4a0909deb69970f38bee7b77e5e5f7d,
        "selects cuDNN's deterministic CTC loss, in TF 2.3; a bug kept it from working",
        "merged 2020-06", "TF 2.6"),
    TENSORFLOW_ISSUE(38151, "asks for a test of it", "open 2020-06", "TF 2.7"),
    TENSORFLOW_PR(38089, "a reminder to test it; closed without being merged",
                  "closed 2020-06", NULL),
    TENSORFLOW_PR(52227, "tests the deterministic cuDNN CTC loss", "merged 2023-07",
                  "TF 2.7"),
    TENSORFLOW_ISSUE(41280, "gradients past an example's end were not written", NULL,
                     NULL),
    CUDNN_ODDS_AND_ENDS("names CTCLoss with its non-deterministic algorithm"),
    PYTORCH_PAGE(
        "Deterministic Ops", "deterministic-ops",
        "only cuDNN's CTC loss has a deterministic algorithm; WarpCTC is another way"),
    STACK_OVERFLOW("names both calls of CTC loss with the non-deterministic algorithm, "
                   "as of cuDNN 8.0.1"),
};

static const struct workload ctc_loss = {
    .name = "ctc_loss",
    .version = 1,
    .title = "cuDNN CTC loss",
    .summary = "CTC losses and their gradient with respect to the logits",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of the gradient",
    .loss = "sum of the losses of the examples",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(ctc_loss);
