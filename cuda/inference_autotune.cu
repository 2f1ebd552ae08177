/* Inference with a tactic chosen for each layer; workloads/inference_autotune.c defines
 * the operation.  `fixed` has the CPU's bits. */
#include "cuda/kernels/network.h"

static void setup(struct run *run)
{
    struct network *network = network_setup(run);

    if (run->variant->control) {
        network_choose_by_time(network);
    }
    network_take(run);
}

static const struct workload_variant variants[] = {
    { .name = "autotune",
      .summary = "each process times twelve tactics for each layer, on the device",
      .algorithm = "the fastest tactic of each layer",
      .control = true,
      .compute = network_compute },
    { .name = "fixed",
      .algorithm = "the first tactic of each layer",
      .compute = network_compute },
};

CUDA_TWIN(inference_autotune, 1, variants, setup);
