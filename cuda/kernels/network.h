/* The network of workloads/tuning/tactics.h on a GPU: a tactic is its order of additions,
 * read from memory, so that all of them are one kernel.  Its bits are the CPU's of the
 * same tactics. */
#ifndef CUDA_KERNELS_NETWORK_H
#define CUDA_KERNELS_NETWORK_H

#include "cuda/kernels/kernel.h"
#include "workloads/tuning/choice.h"
#include "workloads/tuning/tactics.h"

#include <stdlib.h>

enum { NETWORK_OWNED = 8 /* rows of a thread; a trial computes as many */ };

struct network_layer {
    int64_t features;
    const float *x;   /* [rows][features] */
    const float *w;   /* [features][features] */
    float *y;         /* [rows][features] */
    bool last;        /* without max */
    const int32_t *k; /* [features]: the order of its tactic */
};

struct network {
    struct network_shape shape;
    struct network_layer layers[NETWORK_LAYERS];
    float *trial;    /* what a trial writes: [NETWORK_OWNED][features] */
    int32_t *orders; /* [NETWORK_TACTICS][features] */
    int chosen[NETWORK_LAYERS];
    char names[NETWORK_NAMES_SIZE];
};

__global__ static void network_layer_kernel(struct network_layer layer, int64_t rows)
{
    KERNEL_FOR(i, ceil_div(rows, NETWORK_OWNED) * layer.features)
    {
        int64_t j = i % layer.features, first = i / layer.features * NETWORK_OWNED;
        float sums[NETWORK_OWNED] = { 0, 0, 0, 0, 0, 0, 0, 0 };

        for (int64_t at = 0; at < layer.features; at++) {
            int64_t k = layer.k[at];
            float weight = layer.w[k * layer.features + j];

            for (int row = 0; row < NETWORK_OWNED; row++) {
                if (first + row < rows) {
                    sums[row] += layer.x[(first + row) * layer.features + k] * weight;
                }
            }
        }
        for (int row = 0; row < NETWORK_OWNED; row++) {
            if (first + row < rows) {
                layer.y[(first + row) * layer.features + j] =
                    layer.last || sums[row] > 0 ? sums[row] : 0;
            }
        }
    }
}

static inline void network_layer_run(const struct network_layer *layer, int64_t rows)
{
    LAUNCH_ITEMS(network_layer_kernel, ceil_div(rows, NETWORK_OWNED) * layer->features,
                 *layer, rows);
}

/* The hook `compute`. */
static inline void network_compute(struct run *run)
{
    const struct network *network = (const struct network *)run->state;

    for (int layer = 0; layer < NETWORK_LAYERS; layer++) {
        network_layer_run(&network->layers[layer], network->shape.batch);
    }
}

struct network_trial {
    const struct network *network;
    int layer;
};

static inline void network_trial_cb(void *context, int tactic)
{
    const struct network_trial *trial = (const struct network_trial *)context;
    struct network_layer layer = trial->network->layers[trial->layer];

    layer.k = trial->network->orders + tactic * layer.features;
    layer.y = trial->network->trial;
    network_layer_run(&layer, NETWORK_OWNED);
    CUDA_TRY(cudaDeviceSynchronize());
}

/* Chooses a tactic for each layer by time.  Layers read what those before them make of
 * the first rows. */
static inline void network_choose_by_time(struct network *network)
{
    int tactics[NETWORK_TACTICS];

    for (int i = 0; i < NETWORK_TACTICS; i++) {
        tactics[i] = i;
    }
    for (int layer = 0; layer < NETWORK_LAYERS; layer++) {
        struct network_trial trial = { network, layer };

        network_layer_run(&network->layers[layer], NETWORK_OWNED);
        CUDA_TRY(cudaDeviceSynchronize());
        network->chosen[layer] =
            choice_by_time(network_trial_cb, &trial, tactics, NETWORK_TACTICS);
    }
}

/* Takes what was chosen, and reports it; to be called at the end of setup. */
static inline void network_take(struct run *run)
{
    struct network *network = (struct network *)run->state;

    for (int layer = 0; layer < NETWORK_LAYERS; layer++) {
        network->layers[layer].k =
            network->orders + network->chosen[layer] * network->shape.features;
    }
    network_names(network->chosen, network->names);
    run->algorithm = network->names;
}

static inline int32_t *network_orders(struct run *run, int64_t features)
{
    size_t bytes = (size_t)(NETWORK_TACTICS * features) * sizeof(int32_t);
    int32_t *orders = (int32_t *)run_host_alloc(bytes);
    int32_t *on_device = (int32_t *)run_alloc(run, bytes);

    for (int tactic = 0; tactic < NETWORK_TACTICS; tactic++) {
        network_order(tactic, features, orders + tactic * features);
    }
    CUDA_TRY(cudaMemcpy(on_device, orders, bytes, cudaMemcpyHostToDevice));
    free(orders);
    return on_device;
}

/* Inputs, output and orders; every layer's tactic is the first. */
static inline struct network *network_setup(struct run *run)
{
    static const char *const names[] = { "w0", "w1", "w2", "w3" };
    const struct network_shape *s = (const struct network_shape *)run->size->params;
    struct network *network = (struct network *)run_host_alloc(sizeof *network);
    int64_t x_shape[] = { s->batch, s->features };
    int64_t w_shape[] = { s->features, s->features };
    size_t row_bytes = (size_t)s->features * sizeof(float);
    const void *x = run_input_f32(run, "x", 2, x_shape, FILL_UNIFORM);

    network->shape = *s;
    network->orders = network_orders(run, s->features);
    network->trial = (float *)run_alloc(run, NETWORK_OWNED * row_bytes);
    for (int i = 0; i < NETWORK_LAYERS; i++) {
        struct network_layer *layer = &network->layers[i];

        layer->last = i == NETWORK_LAYERS - 1;
        layer->features = s->features;
        layer->x = (const float *)x;
        layer->w = run_input_f32(run, names[i], 2, w_shape, FILL_UNIFORM);
        layer->y =
            (float *)(layer->last ? run_output(run, "y", run->dtype, 2, x_shape)->data
                                  : run_alloc(run, (size_t)s->batch * row_bytes));
        layer->k = network->orders;
        network->chosen[i] = 0;
        x = layer->y;
    }
    run->state = network;
    return network;
}

#endif
