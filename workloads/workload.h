/* The workload contract: what a registered computation is and what the worker does with
 * it.
 *
 * One workload is one file per backend: workloads/<name>.c for the CPU (the readable
 * reference) and cuda/<name>.cu for CUDA.  The file defines one `static const struct
 * workload` at its bottom and registers it with WORKLOAD_REGISTER; nothing else is
 * touched. workloads/skeleton.c is a commented template, workloads/README.md a tutorial.
 *
 * The CPU's workload defines the operation.  The registry takes from it what the CUDA one
 * of that name leaves empty: title, summary, sizes, dtypes, weight_sum, loss, references,
 * relations, the hooks setup with teardown, and reference; of a variant with the same
 * name, summary and models.  So both have one definition and one float64 reference.
 * Setup makes the same inputs on both, in the same order: if the state is the same too,
 * one hook serves both.
 *
 * Everything here runs in the worker: one fresh process that computes one case on one
 * device and exits.  So hooks may end the process (run_unsupported, run_infra), memory
 * that run_input and run_output hand out lives until the process ends, and host memory
 * exhaustion aborts. */
#ifndef WORKLOADS_WORKLOAD_H
#define WORKLOADS_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/array.h"

#ifdef __cplusplus
extern "C" {
#endif

enum dtype {
    DTYPE_FLOAT32,
    DTYPE_FLOAT64,
    DTYPE_FLOAT16,
    DTYPE_BFLOAT16,
    DTYPE_INT32,
    DTYPE_INT64,
    DTYPE_UINT8,
    DTYPE_COUNT
};

/* "float32", …; the name used in requests, results and the database. */
const char *dtype_name(enum dtype dtype);
size_t dtype_bytes(enum dtype dtype);

enum { TENSOR_RANK_MAX = 6, RUN_TENSORS_MAX = 64, WORKLOAD_DTYPES_MAX = 7 };

/* A dense row-major array in the memory of the run's device. */
struct tensor {
    const char *name;
    enum dtype dtype;
    int rank;
    int64_t shape[TENSOR_RANK_MAX]; /* first `rank` are used; every extent >= 1 */
    void *data; /* device memory on CUDA; borrowed: valid for the run */
};

int64_t tensor_elements(const struct tensor *tensor);

/* How run_input fills a tensor.  Values are a pure function of (seed, workload name,
 * tensor name, element index), through Philox4x32-10: identical on every backend, for
 * every variant, and for any number of threads. */
enum fill {
    FILL_UNIFORM, /* uniform in [-1, 1) */
    FILL_WIDE, /* random sign, mantissa uniform in [1, 2), exponent uniform in -12 .. 12:
                  for upstream gradients, since equal magnitudes hide every order effect
                */
    FILL_INDEX /* integers uniform in [0, limit) */
};

struct run;

/* One implementation of the workload. */
struct workload_variant {
    /* "unordered", "ordered", "autotune", "cached", "patched", or own. */
    const char *name;
    const char *summary;   /* what it does, one line */
    const char *models;    /* the source or solution it stands for in the documents */
    const char *algorithm; /* the real algorithm; a hook may overwrite run->algorithm */
    const char *claim;     /* what its library promises: "deterministic",
                              "non-deterministic", or NULL when it promises nothing */
    bool control;          /* accumulates in no fixed order, so it must be seen to vary
                              before any variant of this workload may be called
                              reproducible in the same environment */
    /* Of a control, why it varies: "race" (NULL says that, too), "entropy" (a number that
     * is drawn anew), "choice" (what was fastest) or "poison" (memory that nobody wrote).
     * It vouches only for variants that are exposed to the same: a generator without a
     * seed says nothing of a parallel sum.  Of another variant, what it is exposed to;
     * NULL: what all controls of the workload are, or "race" if they differ. */
    const char *kind;
    /* One iteration: reads the inputs, writes every element of every output.  Called
     * `iterations` times on poisoned outputs.  The OpenMP team of run->threads threads is
     * warm.  Must keep no state between iterations unless that is its subject. */
    void (*compute)(struct run *run);
    const char *library; /* whose code computes: the library under test ("cuDNN"); NULL:
                            reprod's own, a model of what it stands for */
    /* NULL, or: why this variant cannot do RUN's size or dtype (the run ends
     * `unsupported` with that reason); NULL when it can.  Called before setup. */
    const char *(*unsupported)(const struct run *run);
};

/* Whether the digest of VARIANT must be that of OTHER, or must differ from it, in the
 * same case and environment.  Neither is a control.  The matrix shows whether that was
 * seen; a verdict tells only that a variant repeats. */
struct workload_relation {
    const char *variant, *other;
    bool equal;
};

/* One size of a workload's case; `params` is whatever the workload's setup reads. */
struct workload_size {
    const char *name; /* "small" (under 1 s a run on two CPU cores), "medium",
                         "large" (fills a GPU), or own */
    /* The shapes, for people: "x[256,14,14,16] dy[256,14,14,32]". */
    const char *description;
    const void *params;
};

/* What the documents or their authors wrote of the workload's source, shown with it.
 * workloads/shared/references.h has those that many workloads refer to. */
struct workload_reference {
    const char *kind;   /* "issue", "pull request", "commit", "release note",
                           "documentation", "thread", "slides", "article" or "source" */
    const char *id;     /* "tensorflow PR 31465"; once in a workload */
    const char *title;  /* in our words */
    const char *url;    /* "https://…" */
    const char *state;  /* as documents give it, and their months: "open 2020-06, merged
                           2023-07"; NULL where they give none */
    const char *solved; /* version that solved it, "TF 2.1"; NULL if none did */
};

struct workload {
    const char *name;    /* [a-z][a-z0-9_]*, for ever */
    int version;         /* >= 1; changed numerics bump it */
    const char *backend; /* "cpu" (NULL says that too) or "cuda" */
    const char *title;   /* the documents' name of the row */
    const char *summary; /* one line: the operation and its shapes in words */

    const struct workload_variant *variants; /* the first is the default behaviour of the
                                                frameworks: normally the control */
    int variant_count;
    const struct workload_size *sizes; /* the first is the default; "small" is required */
    int size_count;
    enum dtype dtypes[WORKLOAD_DTYPES_MAX]; /* the first is the default */
    int dtype_count;                        /* 0: on a CPU float32; on CUDA the CPU's */

    const char *no_control; /* why no variant is a control; NULL when one is */
    const char *weight_sum; /* what weight_sum sums, "sum of dw" */
    const char *loss; /* what loss is, "sum of the per-example losses"; NULL: none */
    const struct workload_reference *references; /* NULL when reference_count is 0 */
    int reference_count;
    const struct workload_relation *relations; /* at most one for a variant */
    int relation_count;

    /* Required.  Creates inputs and outputs with run_input and run_output, and whatever
     * state the variants share in run->state.  Called once, before the first iteration;
     * until it makes the first input, the process has one thread. */
    void (*setup)(struct run *run);

    /* Required.  The correct answer: for output tensor OUTPUT, writes tensor_elements()
     * float64 values to ret_expected and, for each, the largest difference that rounding
     * in the run's dtype may explain to ret_bound (0: must be exact).  Called by
     * `reprod-worker --check` after an iteration; INPUTS are host copies in order of
     * creation, and so are RUN's outputs, of which OUTPUT is one.  Plain loops in
     * float64: this is the definition of the operation.  It reads nothing of run->state,
     * which belongs to the backend. */
    void (*reference)(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound);

    /* Optional, for a workload that calls run_resume.  In the fresh process that this
     * starts, called once after setup instead of a variant's compute: goes on from the
     * state that FILE holds, and replaces it there by the state it ends with. */
    void (*resume)(struct run *run, int file);

    /* Optional.  Frees what setup took outside run_input/run_output/run_alloc. */
    void (*teardown)(struct run *run);
};

/* A list of a workload, with its length. */
#define WORKLOAD_VARIANTS(list)   .variants = list, .variant_count = COUNT_OF(list)
#define WORKLOAD_SIZES(list)      .sizes = list, .size_count = COUNT_OF(list)
#define WORKLOAD_REFERENCES(list) .references = list, .reference_count = COUNT_OF(list)
#define WORKLOAD_RELATIONS(list)  .relations = list, .relation_count = COUNT_OF(list)
/* In C only. */
#define WORKLOAD_DTYPES(...)                                                             \
    .dtypes = { __VA_ARGS__ }, .dtype_count = COUNT_OF(((enum dtype[]){ __VA_ARGS__ }))

/* One run, as hooks see it. */
struct run {
    const struct workload *workload;
    const struct workload_variant *variant;
    const struct workload_size *size;
    enum dtype dtype;
    uint64_t seed;
    int threads;           /* CPU: size of the OpenMP team; 1 on CUDA */
    int iterations;        /* how many will be computed */
    int iteration;         /* index of the current one, 0 … */
    const char *algorithm; /* what is reported; set to variant->algorithm before setup */
    const char *claim;     /* likewise variant->claim; setup may know better */
    void *state;           /* the workload's own; set by setup */

    struct tensor inputs[RUN_TENSORS_MAX];
    int input_count;
    struct tensor outputs[RUN_TENSORS_MAX];
    int output_count;
    int weights_output; /* index of the output whose exact sum is weight_sum; default 0 */
    bool has_loss;
    double loss; /* written by compute when the workload has one */

    const struct backend *backend; /* worker/backend.h; hooks do not touch it */
    struct probes *probes; /* worker/probes.h, NULL: none; hooks do not touch it */
};

/* Creates, fills and records an input; its digest joins the run's input digest.
 * LIMIT is for FILL_INDEX only (exclusive upper bound).  SHAPE has RANK extents. */
struct tensor *run_input(struct run *run, const char *name, enum dtype dtype, int rank,
                         const int64_t *shape, enum fill fill, int64_t limit);

/* Creates an input whose values the workload makes itself: copies BYTES from host memory
 * VALUES.  They must depend on nothing but (seed, size, dtype). */
struct tensor *run_input_values(struct run *run, const char *name, enum dtype dtype,
                                int rank, const int64_t *shape, const void *values);

/* Creates an output.  Before each iteration it is poisoned with a 32-bit pattern that
 * differs between iterations and between processes, so that an element nobody wrote
 * shows; after it every bit is hashed. */
struct tensor *run_output(struct run *run, const char *name, enum dtype dtype, int rank,
                          const int64_t *shape);

/* The same for tensors of float32 and int32, and where they are. */
static inline const float *run_input_f32(struct run *run, const char *name, int rank,
                                         const int64_t *shape, enum fill fill)
{
    return (const float *)run_input(run, name, DTYPE_FLOAT32, rank, shape, fill, 0)->data;
}

static inline const int32_t *run_input_i32(struct run *run, const char *name, int rank,
                                           const int64_t *shape, int64_t limit)
{
    struct tensor *input =
        run_input(run, name, DTYPE_INT32, rank, shape, FILL_INDEX, limit);

    return (const int32_t *)input->data;
}

static inline const float *run_values_f32(struct run *run, const char *name, int rank,
                                          const int64_t *shape, const float *values)
{
    return (const float *)run_input_values(run, name, DTYPE_FLOAT32, rank, shape, values)
        ->data;
}

static inline const int32_t *run_values_i32(struct run *run, const char *name, int rank,
                                            const int64_t *shape, const int32_t *values)
{
    return (const int32_t *)run_input_values(run, name, DTYPE_INT32, rank, shape, values)
        ->data;
}

static inline float *run_output_f32(struct run *run, const char *name, int rank,
                                    const int64_t *shape)
{
    return (float *)run_output(run, name, DTYPE_FLOAT32, rank, shape)->data;
}

/* Scratch in the device's memory, uninitialised (filled once, with 0xA5 or with the
 * pattern of the run's circumstances).  64-byte aligned. */
void *run_alloc(struct run *run, size_t bytes);

/* The same, COUNT values. */
static inline float *run_alloc_f32(struct run *run, int64_t count)
{
    return (float *)run_alloc(run, (size_t)count * sizeof(float));
}

static inline int32_t *run_alloc_i32(struct run *run, int64_t count)
{
    return (int32_t *)run_alloc(run, (size_t)count * sizeof(int32_t));
}

/* Host scratch: aborts instead of returning NULL; freed with free() or never. */
void *run_host_alloc(size_t bytes);

/* End the run, and the process, now: outcome `unsupported` or `infra` with that cause. */
__attribute__((noreturn)) void run_unsupported(struct run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
__attribute__((noreturn)) void run_infra(struct run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Notes that LIBRARY ("cuDNN") was asked to compute.  Its loader calls it where it hands
 * out the functions.  A run that asked another library than its variant names is a
 * defect, and so is one that never asked the one it names. */
void run_library_called(const char *library);

/* Starts this program again, as a process that gets nothing but RUN's case and FILE (a
 * descriptor open for reading and writing; borrowed), and waits until the workload's
 * resume hook is done there.  Ends the run as `infra`, with that process's cause, when it
 * fails.  For compute. */
void run_resume(struct run *run, int file);

/* What a place of a computation reads or writes: ELEMENTS (>= 0) of DTYPE in the memory
 * of the run's device. */
struct probe_value {
    enum dtype dtype;
    int64_t elements;
    const void *data;
    const char *name; /* shown with a captured tensor; NULL: none */
};

/* Whether anything of step STEP (0 … in each iteration; 0 where there are no steps) is
 * recorded.  Costs nothing when not.
 *
 * Also begins a *stretch*: until the next call, what run_probe reads must not change, so
 * that a buffer that several places read is hashed once.  Compute nothing between the
 * run_probe calls of a stretch. */
bool run_probing(const struct run *run, int64_t step);

/* Records that PLACE (PROTOCOL.md has the names by convention; at most 128 bytes) read IN
 * and wrote OUT: one digest of each list, whose order counts.  Nothing happens when the
 * step or the place is not wanted.  For compute, after run_probing: by the initial
 * thread, outside parallel regions.  Its time does not count in the iteration's. */
void run_probe(struct run *run, int64_t step, const char *place,
               const struct probe_value *in, int in_count, const struct probe_value *out,
               int out_count);

/* Puts a pointer to W, a `static const struct workload`, where the registry finds it.
 * Pointers, not structs: compilers pad structs in sections as they like.  Two workloads
 * with one identifier do not link. */
#define WORKLOAD_REGISTER(w)                                                             \
    extern const struct workload *const w##_registered;                                  \
    __attribute__((used, section("reprod_workloads")))                                   \
    const struct workload *const w##_registered = &w

/* A fact that belongs to the environment of every run of a backend's worker, whatever it
 * computes, and to the versions of its probe: which library the stack has it use.  VALUE
 * returns it, valid until the process ends, or NULL where there is nothing to say.  It
 * must be the same in all processes of a stack, not only where the library is used. */
struct workload_fact {
    const char *backend; /* "cpu" or "cuda" */
    const char *name;    /* of no other fact of the environment: "onednn" */
    const char *(*value)(void);
    const char *(*problem)(void); /* why the library cannot be used, or NULL: shown in the
                                     probe.  Optional */
};

#define WORKLOAD_FACT_REGISTER(f)                                                        \
    extern const struct workload_fact *const f##_registered;                             \
    __attribute__((used, section("reprod_facts")))                                       \
    const struct workload_fact *const f##_registered = &f

#ifdef __cplusplus
}
#endif

#endif
