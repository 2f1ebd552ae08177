/* Gradient of an embedding bag in sum mode: the gradient of a bag goes to the entry of
 * each of its ids: dtable[v,c] = sum over bags b and positions l with ids[b,l] == v of
 * dy[b,c].  A negative id is padding.  Ids are as unevenly distributed as words: id v is
 * about as frequent as 1 / (v + 1). */
#include "workloads/embedding_bwd.h"

#include "workloads/shared/references.h"
#include "workloads/shared/scatter.h"
#include "workloads/workload.h"

static void setup(struct run *run)
{
    struct scatter *scatter = run_host_alloc(sizeof *scatter);

    embedding_bwd_tensors(run, scatter);
    scatter_init(run, scatter);
    run->state = scatter;
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    scatter_reference(run, &inputs[0], NULL, &inputs[1], output, ret_expected, ret_bound);
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "a bag adds its gradient to each of its entries with atomic adds",
      .models = "embedding gradients on GPU that scatter with atomicAdd",
      .algorithm = "atomic adds",
      .control = true,
      .compute = scatter_compute_unordered },
    { .name = "ordered",
      .summary = "ids sorted, stably; each entry has one owner",
      .models = "gradients that sort the ids first, as in torch.nn.Embedding",
      .algorithm = "counting sort, entries in order of bags",
      .compute = scatter_compute_ordered },
};

static const struct workload_size sizes[] = {
    { "small", "dy[2048,64] ids[2048,16] dtable[1024,64]",
      &(const struct embedding_shape){ 2048, 16, 1024, 64 } },
    { "medium", "dy[16384,128] ids[16384,16] dtable[8192,128]",
      &(const struct embedding_shape){ 16384, 16, 8192, 128 } },
    { "large", "dy[65536,256] ids[65536,32] dtable[65536,256]",
      &(const struct embedding_shape){ 65536, 32, 65536, 256 } },
};

static const struct workload_reference references[] = {
    PYTORCH_ALGORITHMS(
        "EmbeddingBag in max mode raises: its gradient has no deterministic kernel"),
    TENSORFLOW_PR(51861,
                  "deterministic segment reductions, on which embedding gradients rest",
                  "merged 2023-07", "TF 2.7"),
};

static const struct workload embedding_bwd = {
    .name = "embedding_bwd",
    .version = 1,
    .title = "Embedding backprop",
    .summary = "gradient of an embedding bag: few words are frequent, most are rare",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of dtable",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(embedding_bwd);
