/* Building an inference engine with and without a timing cache: tactics of all layers
 * (network.h) are stored together, once for each environment and case, in one file, which
 * choice.h describes.  A process that finds it times nothing. */
#include "workloads/shared/references.h"
#include "workloads/tuning/network.h"

static void setup(struct run *run)
{
    struct network *network = network_setup(run);
    bool cached = !run->variant->control;

    if (!cached) {
        network_choose_by_time(network);
    } else if (!choice_load(run, network_tactics, NETWORK_TACTICS, NETWORK_LAYERS,
                            network->chosen)) {
        network_choose_by_time(network);
        choice_store(run, network_tactics, NETWORK_TACTICS, NETWORK_LAYERS,
                     network->chosen);
    }
    network_report(run);
}

static const struct workload_variant variants[] = {
    { .name = "autotune",
      .summary = "every build times twelve tactics for each layer",
      .models = "a TensorRT build without a timing cache",
      .algorithm = "the fastest tactic of each layer",
      .control = true,
      .kind = "choice",
      .compute = network_compute },
    { .name = "cached",
      .summary = "the first build stores its tactics, later builds read them",
      .models =
          "a TensorRT build with ITimingCache, which is good for one device and one "
          "set of libraries",
      .algorithm = "the stored tactic of each layer",
      .compute = network_compute },
};

static const struct workload_reference references[] = {
    { .kind = "documentation",
      .id = "TensorRT documentation, Algorithm Selection and Reproducible Builds",
      .title = "a timing cache pins the tactics",
      .url = "https://docs.nvidia.com/deeplearning/tensorrt/10.16.1/inference-library/"
             "precision-control.html",
      .solved = NULL },
    GTC_SLIDES("slide 47", "a mechanism against timing-based choice is announced", NULL),
};

static const struct workload algorithm_cache = {
    .name = "algorithm_cache",
    .version = 1,
    .title = "Engine builds with a timing cache",
    .summary = "four dense layers, with tactics timed in every build or stored once",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(network_sizes),
    .weight_sum = "sum of y",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = network_reference,
};
WORKLOAD_REGISTER(algorithm_cache);
