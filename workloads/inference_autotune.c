/* Inference with a tactic chosen for each layer, by time or from a fixed list.  Nothing
 * but the choice varies: network.h. */
#include "workloads/shared/references.h"
#include "workloads/tuning/network.h"

static void setup(struct run *run)
{
    struct network *network = network_setup(run);

    if (run->variant->control) {
        network_choose_by_time(network);
    }
    network_report(run);
}

static const struct workload_variant variants[] = {
    { .name = "autotune",
      .summary = "each process times twelve tactics for each layer",
      .models = "TensorRT's builder, and TensorFlow's auto-tuning in inference: kernels "
                "are deterministic, the choice among them is not",
      .algorithm = "the fastest tactic of each layer",
      .control = true,
      .kind = "choice",
      .compute = network_compute },
    { .name = "fixed",
      .summary = "the first tactic for every layer",
      .models = "inference with auto-tuning turned off",
      .algorithm = "the first tactic of each layer",
      .compute = network_compute },
};

static const struct workload_reference references[] = {
    GTC_SLIDES("slide 47",
               "inference: some 500 deterministic kernels, chosen by time on the target",
               NULL),
    README_2020("Sources Beyond TensorFlow",
                "sources-of-non-determinism-beyond-tensorflow",
                "TensorRT's choice by time", NULL),
};

static const struct workload inference_autotune = {
    .name = "inference_autotune",
    .version = 1,
    .title = "Inference with timing-based auto-tuning",
    .summary = "four dense layers, each by one of twelve deterministic tactics",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(network_sizes),
    .weight_sum = "sum of y",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = network_reference,
};
WORKLOAD_REGISTER(inference_autotune);
