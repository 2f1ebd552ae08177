/* The network of tactics.h on the CPU, and its reference. */
#ifndef WORKLOADS_TUNING_NETWORK_H
#define WORKLOADS_TUNING_NETWORK_H

#include "workloads/workload.h"

#include <stdlib.h>
#include <string.h>

#include "workloads/shared/probing.h"
#include "workloads/shared/rounding.h"
#include "workloads/tuning/choice.h"
#include "workloads/tuning/tactics.h"

struct network {
    const struct network_shape *shape;
    const float *activations[NETWORK_LAYERS]; /* what each layer reads */
    const float *weights[NETWORK_LAYERS];
    float *results[NETWORK_LAYERS]; /* what each layer writes */
    float *trial;                   /* what a trial writes: one row */
    int32_t *orders;                /* of each tactic: its permutation of the features */
    int chosen[NETWORK_LAYERS];
    char names[NETWORK_NAMES_SIZE]; /* of the chosen */
};

enum { NETWORK_TILE = 16 };

typedef float network_lanes __attribute__((vector_size(NETWORK_TILE * sizeof(float)),
                                           aligned(sizeof(float)), may_alias));

/* Row N of LAYER, by TACTIC, to Y. */
static inline void network_row(const struct network *network, int layer, int tactic,
                               int64_t n, float *y)
{
    int64_t features = network->shape->features;
    const float *x = network->activations[layer] + n * features;
    const int32_t *order = network->orders + tactic * features;

    for (int64_t j = 0; j < features; j += NETWORK_TILE) {
        const float *weights = network->weights[layer] + j;
        network_lanes sum = { 0 };

        for (int64_t i = 0; i < features; i++) {
            sum += x[order[i]] * *(const network_lanes *)(weights + order[i] * features);
        }
        for (int64_t i = 0; i < NETWORK_TILE; i++) {
            y[j + i] = layer == NETWORK_LAYERS - 1 || sum[i] > 0 ? sum[i] : 0;
        }
    }
}

/* What each layer was computed by, and what it made of what it read. */
static inline void network_probe(struct run *run)
{
    static const char *const choices[] = { "algorithm/layer0", "algorithm/layer1",
                                           "algorithm/layer2", "algorithm/layer3" };
    static const char *const layers[] = { "layer0/forward", "layer1/forward",
                                          "layer2/forward", "layer3/forward" };
    const struct network *network = run->state;
    int64_t features = network->shape->features;
    int64_t elements = network->shape->batch * features;

    if (!run_probing(run, 0)) {
        return;
    }
    for (int layer = 0; layer < NETWORK_LAYERS; layer++) {
        const struct probe_value in[] = {
            probe_floats("x", network->activations[layer], elements),
            probe_floats("w", network->weights[layer], features * features),
            probe_ints("tactic", &network->chosen[layer], 1),
        };
        struct probe_value out = probe_floats("y", network->results[layer], elements);

        run_probe(run, 0, choices[layer], NULL, 0, &in[2], 1);
        run_probe(run, 0, layers[layer], in, COUNT_OF(in), &out, 1);
    }
}

/* The hook `compute`. */
static inline void network_compute(struct run *run)
{
    const struct network *network = run->state;
    int64_t features = network->shape->features;

#pragma omp parallel num_threads(run->threads)
    for (int layer = 0; layer < NETWORK_LAYERS; layer++) {
#pragma omp for
        for (int64_t n = 0; n < network->shape->batch; n++) {
            network_row(network, layer, network->chosen[layer], n,
                        network->results[layer] + n * features);
        }
    }
    network_probe(run);
}

struct network_trial {
    const struct network *network;
    int layer;
};

static inline void network_trial_cb(void *context, int tactic)
{
    const struct network_trial *trial = context;

    network_row(trial->network, trial->layer, tactic, 0, trial->network->trial);
}

/* Chooses a tactic for each layer by time. */
static inline void network_choose_by_time(struct network *network)
{
    int tactics[NETWORK_TACTICS];

    for (int i = 0; i < NETWORK_TACTICS; i++) {
        tactics[i] = i;
    }
    for (int layer = 0; layer < NETWORK_LAYERS; layer++) {
        struct network_trial trial = { network, layer };

        network->chosen[layer] =
            choice_by_time(network_trial_cb, &trial, tactics, NETWORK_TACTICS);
    }
}

/* Reports what was chosen; to be called at the end of setup. */
static inline void network_report(struct run *run)
{
    struct network *network = run->state;

    network_names(network->chosen, network->names);
    run->algorithm = network->names;
}

/* Inputs, output and orders; every layer's tactic is the first. */
static inline struct network *network_setup(struct run *run)
{
    static const char *const names[] = { "w0", "w1", "w2", "w3" };
    const struct network_shape *s = run->size->params;
    struct network *network = run_host_alloc(sizeof *network);
    int64_t x_shape[] = { s->batch, s->features };
    int64_t w_shape[] = { s->features, s->features };
    size_t row_bytes = (size_t)s->features * sizeof(float);

    network->shape = s;
    network->activations[0] =
        run_input(run, "x", run->dtype, 2, x_shape, FILL_UNIFORM, 0)->data;
    for (int layer = 0; layer < NETWORK_LAYERS; layer++) {
        bool last = layer == NETWORK_LAYERS - 1;

        network->weights[layer] =
            run_input(run, names[layer], run->dtype, 2, w_shape, FILL_UNIFORM, 0)->data;
        network->results[layer] = last
                                      ? run_output(run, "y", run->dtype, 2, x_shape)->data
                                      : run_alloc(run, (size_t)s->batch * row_bytes);
        if (!last) {
            network->activations[layer + 1] = network->results[layer];
        }
        network->chosen[layer] = 0;
    }
    network->trial = run_alloc(run, row_bytes);
    network->orders =
        run_alloc(run, NETWORK_TACTICS * (size_t)s->features * sizeof *network->orders);
    for (int i = 0; i < NETWORK_TACTICS; i++) {
        network_order(i, s->features, network->orders + i * s->features);
    }
    /* Trials of later layers read activations that nobody has computed yet. */
    for (int layer = 0; layer + 1 < NETWORK_LAYERS; layer++) {
        network_row(network, layer, 0, 0, network->results[layer]);
    }
    run->state = network;
    return network;
}

/* One layer in float64.  With error E in its input, the output is off by at most
 * sum |w| * E + gamma * sum |w| * (|a| + E); max(0, .) makes no error larger. */
static inline void network_reference_layer(const struct run *run, const float *weights,
                                           int64_t features, bool last, double *values,
                                           double *errors)
{
    size_t bytes = (size_t)features * sizeof(double);
    double *new_values = run_host_alloc(bytes), *new_errors = run_host_alloc(bytes);
    double gamma = rounding_gamma(run->dtype, features);

    for (int64_t j = 0; j < features; j++) {
        double sum = 0, error = 0;

        for (int64_t k = 0; k < features; k++) {
            double weight = weights[k * features + j];

            sum += values[k] * weight;
            error += fabs(weight) * (errors[k] + gamma * (fabs(values[k]) + errors[k]));
        }
        new_values[j] = last || sum > 0 ? sum : 0;
        new_errors[j] = error;
    }
    memcpy(values, new_values, bytes);
    memcpy(errors, new_errors, bytes);
    free(new_values);
    free(new_errors);
}

/* The hook `reference`. */
static inline void network_reference(const struct run *run, const struct tensor *inputs,
                                     const struct tensor *output, double *ret_expected,
                                     double *ret_bound)
{
    const float *x = inputs[0].data;
    int64_t features = output->shape[1];

    for (int64_t n = 0; n < output->shape[0]; n++) {
        double *values = ret_expected + n * features, *errors = ret_bound + n * features;

        for (int64_t k = 0; k < features; k++) {
            values[k] = x[n * features + k];
            errors[k] = 0;
        }
        for (int layer = 0; layer < NETWORK_LAYERS; layer++) {
            network_reference_layer(run, inputs[1 + layer].data, features,
                                    layer == NETWORK_LAYERS - 1, values, errors);
        }
    }
}

static const struct workload_size network_sizes[] = {
    { "small", "x[512,64] four layers of w[64,64] y[512,64]",
      &(const struct network_shape){ 512, 64 } },
    { "medium", "x[4096,128] four layers of w[128,128] y[4096,128]",
      &(const struct network_shape){ 4096, 128 } },
    { "large", "x[65536,128] four layers of w[128,128] y[65536,128]",
      &(const struct network_shape){ 65536, 128 } },
};

#endif
