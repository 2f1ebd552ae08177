/* A workload to copy.  It has every field and every hook of workloads/workload.h, and
 * says when it is called and whether it is required.  It is compiled, so it cannot rot,
 * but not registered, so no worker offers it.  workloads/README.md explains a first one.
 *
 * The operation: scaled[i] = 2 * x[i]. */
#include "workloads/shared/references.h"
#include "workloads/workload.h"

#include <stdlib.h>

/* What `params` of a size points to: as much as setup needs to know of the shapes. */
struct skeleton_shape {
    int64_t elements;
};

/* What the hooks share during a run; run->state points to it. */
struct skeleton {
    int64_t elements;
    const float *x;
    float *scaled;
};

/* OPTIONAL, one for each variant.  Called once, before setup, when run->size and
 * run->dtype are known.  Returns why this variant cannot compute the case, as one line
 * for people, or NULL when it can.  The run then ends `unsupported`, not as a failure.
 * Leave the field out when the variant can always do it. */
static const char *unsupported(const struct run *run)
{
    const struct skeleton_shape *shape = run->size->params;

    return shape->elements > INT32_MAX ? "more than 2^31 - 1 elements" : NULL;
}

/* REQUIRED.  Called once, in the fresh process of the run.  Creates every input and
 * output, takes scratch memory (run_alloc; one share for each of run->threads threads
 * where they need their own) and leaves what compute needs in run->state.  Inputs depend
 * on nothing but the seed, the size and the dtype.  FILL_WIDE is for upstream gradients
 * and for whatever is summed: summands of one magnitude hide the order.
 * May end the run with run_unsupported (found out only now) or run_infra (the machine is
 * broken); both do not return.  Memory from here lives until the process ends. */
static void setup(struct run *run)
{
    const struct skeleton_shape *shape = run->size->params;
    struct skeleton *skeleton = run_host_alloc(sizeof *skeleton);

    skeleton->elements = shape->elements;
    skeleton->x = run_input_f32(run, "x", 1, &shape->elements, FILL_WIDE);
    skeleton->scaled = run_output_f32(run, "scaled", 1, &shape->elements);
    run->state = skeleton;
}

/* REQUIRED, one for each variant.  Called run->iterations times.  Reads the inputs and
 * writes every element of every output: they hold poison when it is called, and each of
 * their bits is hashed when it returns.  It never writes to inputs and remembers nothing
 * from one iteration to the next.  A workload with a loss also writes run->loss.
 * The team of run->threads OpenMP threads is running; use it as
 * `#pragma omp parallel num_threads(run->threads)`.  A variant that promises an order
 * gives equal bits for any number of threads: split the work at places that do not depend
 * on threads (see tree.h).  Only this hook is timed. */
static void compute_ordered(struct run *run)
{
    const struct skeleton *skeleton = run->state;

#pragma omp parallel for num_threads(run->threads)
    for (int64_t i = 0; i < skeleton->elements; i++) {
        skeleton->scaled[i] = 2 * skeleton->x[i];
    }
}

/* REQUIRED.  Called by `reprod-worker --check` and by the tests, once for each output,
 * after an iteration.  Writes the right value of each element in float64, and how far
 * from it rounding may take a correct variant, in any order of summation (rounding.h);
 * never wider than can be proved.  Plain loops: this is the definition of the operation,
 * and it shares no code with compute.  INPUTS are host copies in order of creation. */
static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    const float *x = inputs[0].data;

    (void)run;
    for (int64_t i = 0; i < tensor_elements(output); i++) {
        ret_expected[i] = 2 * (double)x[i];
        ret_bound[i] = 0; /* doubling is exact */
    }
}

/* OPTIONAL.  Called once, after the last iteration of a run that completed.  Frees what
 * setup took from elsewhere (a library's handle).  What came from run_input, run_output,
 * run_alloc or run_host_alloc needs no freeing: the process ends. */
static void teardown(struct run *run)
{
    free(run->state);
}

/* The first variant is what frameworks do by default, normally `unordered` with
 * `.control = true`: it adds in no fixed order and so must be seen to vary before another
 * variant may be called reproducible.  Only natural races count: no random numbers, no
 * sleeping. */
static const struct workload_variant variants[] = {
    { .name = "ordered",
      .summary = "each element is computed by itself",
      .models = "nothing in the documents",
      .algorithm = "elementwise",
      .claim = NULL,    /* or "deterministic", "non-deterministic": a library's word */
      .control = false, /* true: see above */
      .compute = compute_ordered,
      .library = NULL, /* "cuDNN": the library that compute calls */
      .unsupported = unsupported },
};

/* "small" is required: at most 0.25 s for a run of 10 iterations on two CPU cores.  A
 * control needs some 10 ms of one thread's work in an iteration to be seen to vary. */
static const struct workload_size sizes[] = {
    { "small", "x[4096] scaled[4096]", &(const struct skeleton_shape){ 4096 } },
};

static const struct workload_reference references[] = {
    GITHUB_PR("project", "somebody/project", 1,
              "an issue or pull request, and what it is about", NULL, "project 1.0"),
};

/* Unused here.  A workload says WORKLOAD_REGISTER(name of this variable); after it. */
__attribute__((unused)) static const struct workload skeleton = {
    .name = "skeleton", /* for ever: results refer to it */
    .version = 1,       /* one more whenever the bits of a variant change */
    .title = "Skeleton",
    .summary = "a vector times two",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes), /* in float32; others are named by WORKLOAD_DTYPES */
    .no_control = "each element is computed alone, so no order exists",
    .weight_sum = "sum of scaled",
    .loss = NULL,
    WORKLOAD_REFERENCES(references),
    .relations = NULL, /* or { { "patched", "ordered", true } }: has its digest */
    .relation_count = 0,
    .setup = setup,
    .reference = reference,
    .resume = NULL, /* or what the process does that run_resume started from compute */
    .teardown = teardown,
};
