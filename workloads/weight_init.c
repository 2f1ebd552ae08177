/* Initialisation of trainable variables: weights[v,i] is number i of the generator that
 * begins with seeds[v].  What varies is where the seeds come from: the system's entropy,
 * or the global seed together with a seed of the variable's own, which frameworks count
 * up where nobody gives one. */
#include "workloads/weight_init.h"

#include <string.h>
#include <sys/random.h>

#include "workloads/instruments/philox.h"
#include "workloads/shared/references.h"
#include "workloads/workload.h"

enum { TASK = 1024 /* elements */ };

static void variables_fill(struct run *run)
{
    const struct weight_init *init = run->state;

#pragma omp parallel for num_threads(run->threads) schedule(dynamic, 1)
    for (int64_t task = 0; task < INIT_VARIABLES * init->elements / TASK; task++) {
        for (int64_t i = task * TASK; i < (task + 1) * TASK; i++) {
            init->weights[i] =
                init_weight(init->seeds[i / init->elements], i % init->elements);
        }
    }
}

static void compute_unseeded(struct run *run)
{
    const struct weight_init *init = run->state;

    memcpy(init->seeds, init->entropy, sizeof init->entropy);
    variables_fill(run);
}

static void seeded_fill(struct run *run, bool added)
{
    const struct weight_init *init = run->state;

    for (int v = 0; v < INIT_VARIABLES; v++) {
        init->seeds[v] = init_seed(init->global, init_count_before(v, added));
    }
    variables_fill(run);
}

static void compute_seeded(struct run *run)
{
    seeded_fill(run, false);
}

static void compute_one_more(struct run *run)
{
    seeded_fill(run, true);
}

static void compute_own_seeds(struct run *run)
{
    const struct weight_init *init = run->state;

    for (int v = 0; v < INIT_VARIABLES; v++) {
        init->seeds[v] = init_seed(init->global, INIT_NAMES + v);
    }
    variables_fill(run);
}

static void setup(struct run *run)
{
    struct weight_init *init = run_host_alloc(sizeof *init);
    int64_t elements = *(const int64_t *)run->size->params, one = 1;
    int64_t variables = INIT_VARIABLES, shape[] = { variables, elements };

    init->elements = elements;
    init->global = philox_stream(run->seed, run->workload->name, "global") >> 1;
    run_input_values(run, "global_seed", DTYPE_INT64, 1, &one, &init->global);
    init->weights = run_output_f32(run, "weights", 2, shape);
    init->seeds = run_output(run, "seeds", DTYPE_INT32, 1, &variables)->data;
    if (getrandom(init->entropy, sizeof init->entropy, 0) != sizeof init->entropy) {
        run_infra(run, "the kernel gave no seeds for the variables");
    }
    for (int v = 0; v < INIT_VARIABLES; v++) {
        init->entropy[v] &= INT32_MAX;
    }
    run->state = init;
}

/* The seed that variable V must have.  Of the control none is wrong. */
static int32_t expected_seed(const struct run *run, const struct tensor *inputs, int v)
{
    uint64_t global = *(const uint64_t *)inputs[0].data;
    const int32_t *seeds = run->outputs[1].data;

    if (run->variant->control) {
        return seeds[v];
    }
    if (strcmp(run->variant->name, "own_seeds") == 0) {
        return init_seed(global, INIT_NAMES + v);
    }
    return init_seed(global,
                     init_count_before(v, strcmp(run->variant->name, "one_more") == 0));
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    int64_t share = tensor_elements(output) / INIT_VARIABLES;

    for (int64_t i = 0; i < tensor_elements(output); i++) {
        int32_t seed = expected_seed(run, inputs, (int)(i / share));

        ret_expected[i] = seed;
        if (output->dtype == DTYPE_FLOAT32) {
            ret_expected[i] =
                (double)INIT_LIMIT *
                philox_uniform_f32((uint64_t)seed, 0, (uint64_t)(i % share));
        }
        ret_bound[i] = 0; /* INIT_LIMIT is a power of two */
    }
}

static const struct workload_variant variants[] = {
    { .name = "unseeded",
      .summary = "the system's entropy gives each variable its seed",
      .models = "variables initialised without any seed",
      .algorithm = "seeds of the process",
      .control = true,
      .kind = "entropy",
      .compute = compute_unseeded },
    { .name = "seeded",
      .summary = "the global seed, and how many variables were made before",
      .models = "tf.random.set_seed alone",
      .algorithm = "global seed, variables counted",
      .compute = compute_seeded },
    { .name = "one_more",
      .summary = "the same with one more variable: those behind it get other values",
      .models = "tf.random.set_seed alone, and a model that has one more variable",
      .algorithm = "global seed, variables counted, one more",
      .compute = compute_one_more },
    { .name = "own_seeds",
      .summary = "the global seed, and one that each variable is given",
      .models = "all seeds set, those of the initialisers included",
      .algorithm = "global seed, seeds of the variables",
      .compute = compute_own_seeds },
};

static const struct workload_relation relations[] = {
    { "one_more", "seeded", false },
};

static const struct workload_size sizes[] = {
    { "small", "weights[4,65536]", &(const int64_t){ 65536 } },
    { "medium", "weights[4,2097152]", &(const int64_t){ 2097152 } },
    { "large", "weights[4,33554432]", &(const int64_t){ 33554432 } },
};

static const struct workload_reference references[] = {
    README_2020("Seeds", "seeds",
                "tf.random.set_seed makes trainable variables start the same way each "
                "time",
                NULL),
    PYTORCH_PAGE("Seeds", "seeds",
                 "trainable variables must start reproducibly before training does"),
    GTC_SLIDES("slide 45", "set the seed of every random number generator", NULL),
    TENSORFLOW_ISSUE(54442,
                     "variables start otherwise when the number of variables changes",
                     "open 2023-07", NULL),
    TENSORFLOW_COMMIT(
        a4b53af7, 10f1e1dc41279e2de7cf6ec8b092f28b,
        "an unseeded random op raises when determinism is asked for, since TF 2.7",
        "merged 2023-07", NULL),
};

static const struct workload weight_init = {
    .name = "weight_init",
    .version = 1,
    .title = "Initialisation of trainable variables",
    .summary = "four variables drawn at random: where their seeds come from",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of the weights",
    WORKLOAD_REFERENCES(references),
    WORKLOAD_RELATIONS(relations),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(weight_init);
