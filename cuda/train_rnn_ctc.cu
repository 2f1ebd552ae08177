/* Training of a recurrent network with CTC loss; workloads/train_rnn_ctc.c defines the
 * operation.  A block takes a sequence through the whole of it in shared memory.  Each
 * sum has one thread, which adds in the CPU's order, and `ordered` joins the
 * sequences by the CPU's tree, so it has its bits. */
#include "cuda/kernels/kernel.h"
#include "cuda/train/parts.h"
#include "cuda/train/sequences.h"
#include "workloads/train/rnn_probe.h"

__global__ static void begin_kernel(struct rnn rnn)
{
    KERNEL_FOR(i, RNN_VARIABLES)
    {
        rnn.variables[i] = RNN_SPREAD * rnn.initial[i];
        rnn.velocity[i] = rnn.gradient[i] = 0;
    }
}

__global__ static void update_kernel(struct rnn rnn)
{
    KERNEL_FOR(i, RNN_VARIABLES)
    {
        rnn.applied[i] = rnn.gradient[i];
        rnn.before[i] = rnn.variables[i];
        rnn.velocity_before[i] = rnn.velocity[i];
        rnn.velocity[i] = RNN_MOMENTUM * rnn.velocity[i] + rnn.applied[i];
        rnn.variables[i] -= RNN_RATE * rnn.velocity[i];
        rnn.gradient[i] = 0;
    }
}

static double mean_loss(const struct rnn *rnn)
{
    int64_t batch = rnn->shape.batch;
    double loss = 0;

    CUDA_TRY(cudaMemcpy(rnn->host_losses, rnn->losses, (size_t)batch * sizeof(float),
                        cudaMemcpyDeviceToHost));
    for (int64_t b = 0; b < batch; b++) {
        loss += rnn->host_losses[b];
    }
    return loss / (double)batch;
}

static void step_probe(struct run *run, int64_t step)
{
    const struct rnn *rnn = (const struct rnn *)run->state;
    struct rnn_records records = { .batch = rnn->shape.batch,
                                   .labels =
                                       rnn->labels + step * rnn->shape.batch * RNN_LABELS,
                                   .x = rnn->x,
                                   .hidden = rnn->hidden,
                                   .log_probs = rnn->log_probs,
                                   .d_logits = rnn->d_logits,
                                   .losses = rnn->losses,
                                   .momentum = { .before = rnn->before,
                                                 .variables = rnn->variables,
                                                 .velocity_before = rnn->velocity_before,
                                                 .velocity = rnn->velocity,
                                                 .gradient = rnn->applied } };

    rnn_probe(run, step, &records);
}

static void train(struct run *run, bool racing)
{
    const struct rnn *rnn = (const struct rnn *)run->state;
    int64_t batch = rnn->shape.batch;

    LAUNCH_ITEMS(begin_kernel, RNN_VARIABLES, *rnn);
    for (int64_t step = 0; step < rnn->shape.steps; step++) {
        sequences_compute(rnn, step, racing, run_probing(run, step));
        if (!racing) {
            parts_join(rnn->parts, batch, RNN_VARIABLES, RNN_VARIABLES, rnn->gradient);
        }
        LAUNCH_ITEMS(update_kernel, RNN_VARIABLES, *rnn);
        if (run_probing(run, step)) {
            step_probe(run, step);
        }
    }
    run->loss = mean_loss(rnn);
}

static void compute_unordered(struct run *run)
{
    train(run, true);
}

static void compute_ordered(struct run *run)
{
    train(run, false);
}

static const float *uniform_input(struct run *run, const char *name, int rank,
                                  const int64_t *shape)
{
    return run_input_f32(run, name, rank, shape, FILL_UNIFORM);
}

/* COUNT floats for each sequence. */
static float *batch_alloc(struct run *run, int64_t count)
{
    const struct rnn_shape *shape = (const struct rnn_shape *)run->size->params;

    return run_alloc_f32(run, shape->batch * count);
}

static void setup(struct run *run)
{
    const struct rnn_shape *shape = (const struct rnn_shape *)run->size->params;
    struct rnn *rnn = (struct rnn *)run_host_alloc(sizeof *rnn);
    int64_t patterns[] = { RNN_SYMBOLS - 1, RNN_FEATURES }, variables = RNN_VARIABLES;
    int64_t noises[] = { shape->batch, RNN_TIME, RNN_FEATURES };
    int64_t labels[] = { shape->steps, shape->batch, RNN_LABELS };
    size_t bytes = RNN_VARIABLES * sizeof(float);

    rnn->shape = *shape;
    rnn->patterns = uniform_input(run, "patterns", 2, patterns);
    rnn->noises = uniform_input(run, "noises", 3, noises);
    rnn->labels = run_input_i32(run, "labels_less_one", 3, labels, RNN_SYMBOLS - 1);
    rnn->initial = uniform_input(run, "initial", 1, &variables);
    rnn->variables = run_output_f32(run, "variables", 1, &variables);
    rnn->velocity = (float *)run_alloc(run, bytes);
    rnn->gradient = (float *)run_alloc(run, bytes);
    rnn->before = (float *)run_alloc(run, bytes);
    rnn->velocity_before = (float *)run_alloc(run, bytes);
    rnn->applied = (float *)run_alloc(run, bytes);
    rnn->parts = batch_alloc(run, RNN_VARIABLES);
    rnn->x = batch_alloc(run, RNN_TIME * RNN_FEATURES);
    rnn->hidden = batch_alloc(run, (RNN_TIME + 1) * RNN_HIDDEN);
    rnn->log_probs = batch_alloc(run, RNN_TIME * RNN_SYMBOLS);
    rnn->d_logits = batch_alloc(run, RNN_TIME * RNN_SYMBOLS);
    rnn->losses = batch_alloc(run, 1);
    rnn->host_losses = (float *)run_host_alloc((size_t)shape->batch * sizeof(float));
    run->state = rnn;
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "each sequence adds its gradients with atomicAdd",
      .algorithm = "log-domain CTC, atomicAdd",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .algorithm = "log-domain CTC, fixed tree",
      .compute = compute_ordered },
};

CUDA_TWIN(train_rnn_ctc, 2, variants, setup);
