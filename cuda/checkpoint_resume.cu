/* A training in one piece, and one that is saved half-way and resumed by another process,
 * on the GPU; workloads/checkpoint_resume.c defines the operation.  The state goes to the
 * device and back for each half, as for any checkpoint.  Each sum has one thread, which
 * adds in the CPU's order, so all but the control have the CPU's bits. */
#include "cuda/kernels/kernel.h"
#include "cuda/train/parts.h"
#include "cuda/worker/device.h"
#include "workloads/checkpoint/halves.h"
#include "workloads/shared/exp_log.h"

#include <stdlib.h>
#include <string.h>

enum {
    FEATURES = TRAINING_FEATURES,
    CLASSES = TRAINING_CLASSES,
    WEIGHTS = TRAINING_WEIGHTS,
    BATCH = TRAINING_BATCH,
    GROUP = TRAINING_GROUP,
    THREADS = TRAINING_GROUP * TRAINING_CLASSES /* of a group of examples */
};

/* What a step reads and writes, in the device's memory. */
struct step {
    struct training_data data;
    float *weights, *velocity;
    int64_t position;
    uint64_t generator;
    float rate, scale;
    bool racing;
};

struct group {
    float x[GROUP][FEATURES]; /* after dropout */
    float p[GROUP][CLASSES];  /* logits, exponentials, gradients of logits */
};

__device__ static int64_t example_at(const struct step *step, int64_t b)
{
    return step->data.order[(step->position + b) % step->data.examples];
}

__device__ static void group_load(const struct step *step, struct group *group)
{
    for (int i = (int)threadIdx.x; i < GROUP * FEATURES; i += THREADS) {
        int64_t b = (int64_t)blockIdx.x * GROUP + i / FEATURES, d = i % FEATURES;

        group->x[i / FEATURES][d] = step->data.x[example_at(step, b) * FEATURES + d] *
                                    training_keep(step->generator, b * FEATURES + d);
    }
    __syncthreads();
}

/* A thread for each class of each example. */
__device__ static void group_classify(const struct step *step, struct group *group)
{
    int own = (int)threadIdx.x / CLASSES, c = (int)threadIdx.x % CLASSES;
    int64_t b = (int64_t)blockIdx.x * GROUP + own;
    int32_t label = step->data.labels[example_at(step, b)];
    float *p = group->p[own], logit = 0, most = -INFINITY, sum = 0, loss;

    for (int d = 0; d < FEATURES; d++) {
        logit += group->x[own][d] * step->weights[d * CLASSES + c];
    }
    p[c] = logit;
    __syncthreads();
    for (int k = 0; k < CLASSES; k++) {
        most = p[k] > most ? p[k] : most;
    }
    loss = most - p[label];
    __syncthreads();
    p[c] = exp_f32(logit - most);
    __syncthreads();
    for (int k = 0; k < CLASSES; k++) {
        sum += p[k];
    }
    __syncthreads();
    p[c] = (p[c] / sum - (c == label ? 1.0F : 0.0F)) / (float)BATCH;
    if (c == 0) {
        step->data.losses[b] = loss + log_f32(sum);
    }
    __syncthreads();
}

__global__ static void group_kernel(struct step step)
{
    __shared__ struct group group;

    group_load(&step, &group);
    group_classify(&step, &group);
    for (int i = (int)threadIdx.x; i < WEIGHTS; i += THREADS) {
        float sum = 0;

        for (int own = 0; own < GROUP; own++) {
            sum += group.x[own][i / CLASSES] * group.p[own][i % CLASSES];
        }
        if (step.racing) {
            atomicAdd(&step.data.gradient[i], sum);
        } else {
            step.data.parts[(int64_t)blockIdx.x * WEIGHTS + i] = sum;
        }
    }
}

/* Every thread that finds an overflow writes the same. */
__global__ static void gradient_kernel(struct step step)
{
    KERNEL_FOR(i, WEIGHTS)
    {
        step.data.applied[i] = step.data.gradient[i];
        step.data.gradient[i] = 0;
        if (training_overflows(step.data.applied[i], step.scale)) {
            *step.data.overflow = 1;
        }
    }
}

__global__ static void update_kernel(struct step step)
{
    if (*step.data.overflow) {
        return;
    }
    KERNEL_FOR(i, WEIGHTS)
    {
        step.velocity[i] = TRAINING_MOMENTUM * step.velocity[i] + step.data.applied[i];
        step.weights[i] -= step.rate * step.velocity[i];
    }
}

/* Returns whether a gradient was too large, when all is done. */
static bool step_compute(const struct step *step)
{
    int32_t overflow;

    CUDA_TRY(cudaMemsetAsync(step->data.overflow, 0, sizeof overflow));
    LAUNCH(group_kernel, TRAINING_GROUPS, THREADS, 0, 0, *step);
    if (!step->racing) {
        parts_join(step->data.parts, TRAINING_GROUPS, WEIGHTS, WEIGHTS,
                   step->data.gradient);
    }
    LAUNCH_ITEMS(gradient_kernel, WEIGHTS, *step);
    LAUNCH_ITEMS(update_kernel, WEIGHTS, *step);
    CUDA_TRY(cudaMemcpy(&overflow, step->data.overflow, sizeof overflow,
                        cudaMemcpyDeviceToHost));
    return overflow;
}

static double mean_loss(const struct training_data *data)
{
    float losses[BATCH];
    double loss = 0;

    CUDA_TRY(cudaMemcpy(losses, data->losses, sizeof losses, cudaMemcpyDeviceToHost));
    for (int64_t b = 0; b < BATCH; b++) {
        loss += losses[b];
    }
    return loss / (double)BATCH;
}

/* The state before a step, for its probes. */
static void before_keep(const struct halves *halves, const struct step *step)
{
    struct training *before = halves->before;
    size_t bytes = sizeof before->weights;

    halves->write(before, halves->now, sizeof *before);
    CUDA_TRY(cudaMemcpy(before->weights, step->weights, bytes, cudaMemcpyDeviceToDevice));
    CUDA_TRY(
        cudaMemcpy(before->velocity, step->velocity, bytes, cudaMemcpyDeviceToDevice));
}

/* The outputs hold the state while it is on the device. */
static double train(struct run *run, int first, int end)
{
    const struct halves *halves = (const struct halves *)run->state;
    struct training *now = halves->now;
    struct step step = { .data = halves->data,
                         .weights = halves->weights,
                         .velocity = halves->velocity,
                         .racing = run->variant->control };

    halves->write(step.weights, now->weights, sizeof now->weights);
    halves->write(step.velocity, now->velocity, sizeof now->velocity);
    CUDA_TRY(cudaMemsetAsync(step.data.gradient, 0, WEIGHTS * sizeof(float)));
    for (int i = first; i < end; i++) {
        if (run_probing(run, i)) {
            before_keep(halves, &step);
        }
        step.position = now->position;
        step.generator = now->generator;
        step.rate = now->rate;
        step.scale = now->scale;
        training_step_end(now, step.data.examples, step_compute(&step));
        if (run_probing(run, i)) {
            halves_probe(run, i, step.weights, step.velocity);
        }
    }
    CUDA_TRY(cudaMemcpy(now->weights, step.weights, sizeof now->weights,
                        cudaMemcpyDeviceToHost));
    CUDA_TRY(cudaMemcpy(now->velocity, step.velocity, sizeof now->velocity,
                        cudaMemcpyDeviceToHost));
    return mean_loss(&step.data);
}

static void output_write(void *device, const void *host, size_t bytes)
{
    CUDA_TRY(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice));
}

static void setup(struct run *run)
{
    struct halves_inputs inputs;
    struct halves *halves;
    struct training_data *data;
    size_t bytes = WEIGHTS * sizeof(float);
    float *initial;

    if (device_is_of_one_process() && strcmp(run->variant->name, "ordered") != 0) {
        run_unsupported(run,
                        "a second process resumes it, and the GPU's compute mode is "
                        "EXCLUSIVE_PROCESS");
    }
    halves = halves_init(run, &inputs);
    data = &halves->data;
    initial = (float *)run_host_alloc(bytes);
    CUDA_TRY(cudaMemcpy(initial, inputs.initial, bytes, cudaMemcpyDeviceToHost));
    CUDA_TRY(
        cudaMemcpy(&data->seed, inputs.seed, sizeof data->seed, cudaMemcpyDeviceToHost));
    data->initial = initial;
    data->gradient = (float *)run_alloc(run, bytes);
    data->applied = (float *)run_alloc(run, bytes);
    data->parts = (float *)run_alloc(run, TRAINING_GROUPS * bytes);
    data->losses = (float *)run_alloc(run, BATCH * sizeof(float));
    data->overflow = (int32_t *)run_alloc(run, sizeof *data->overflow);
    halves->train = train;
    halves->write = output_write;
}

static const struct workload checkpoint_resume_cuda = {
    .name = "checkpoint_resume",
    .version = 4,
    .backend = "cuda",
    .variants = halves_variants,
    .variant_count = HALVES_VARIANTS,
    .setup = setup,
    .resume = halves_resume,
};
WORKLOAD_REGISTER(checkpoint_resume_cuda);
