/* Building an inference engine with and without a timing cache;
 * workloads/algorithm_cache.c defines the operation.  What is stored was timed on a GPU,
 * and belongs to GPUs of that name; the CPU's choice is another, and so are its bits. */
#include "cuda/kernels/network.h"

static void load_or_choose(struct run *run, struct network *network)
{
    static cudaDeviceProp properties;
    int device;

    CUDA_TRY(cudaGetDevice(&device));
    CUDA_TRY(cudaGetDeviceProperties(&properties, device));
    choice_belongs_to(properties.name);
    if (choice_load(run, network_tactics, NETWORK_TACTICS, NETWORK_LAYERS,
                    network->chosen)) {
        return;
    }
    network_choose_by_time(network);
    choice_store(run, network_tactics, NETWORK_TACTICS, NETWORK_LAYERS, network->chosen);
}

static void setup(struct run *run)
{
    struct network *network = network_setup(run);

    if (run->variant->control) {
        network_choose_by_time(network);
    } else {
        load_or_choose(run, network);
    }
    network_take(run);
}

static const struct workload_variant variants[] = {
    { .name = "autotune",
      .summary = "every build times twelve tactics for each layer, on the device",
      .algorithm = "the fastest tactic of each layer",
      .control = true,
      .compute = network_compute },
    { .name = "cached",
      .algorithm = "the stored tactic of each layer, timed on the device",
      .compute = network_compute },
};

CUDA_TWIN(algorithm_cache, 1, variants, setup);
