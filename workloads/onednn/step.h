/* oneDNN in this process, and one call of it, prepared in setup and executed in each
 * iteration.  What the library refuses ends the run: `unsupported` where it has no
 * implementation, else `infra`.
 *
 * The library is the one that the variable REPROD_ONEDNN names, as dlopen(3) takes it
 * ("libdnnl.so.2", or a path).  A stack sets it.  Where it is not set nothing is loaded,
 * and no run of the stack depends on a library that happens to be installed. */
#ifndef WORKLOADS_ONEDNN_STEP_H
#define WORKLOADS_ONEDNN_STEP_H

#include "workloads/onednn/api.h"
#include "workloads/workload.h"

struct onednn {
    const char *reason;    /* why it cannot be used, one line; NULL when it can */
    const char *version;   /* "2.6.3"; NULL when nothing was loaded */
    struct onednn_api api; /* valid when `reason` is NULL */
};

/* Loads the library on the first call.  Borrowed: valid until the process ends. */
const struct onednn *onednn_load(void);

enum { ONEDNN_ARGUMENTS_MAX = 4 };

/* What every workload that calls oneDNN has in no_control, and in its variant apart from
 * summary and compute. */
#define ONEDNN_NO_CONTROL                                                                \
    "oneDNN has no variant that adds in no fixed order on a CPU: it promises equal "     \
    "bits "                                                                              \
    "for equal hardware, software and number of threads, and each number of threads is " \
    "an environment of its own"
#define ONEDNN_LIBRARY                                                                   \
    .name = "library",                                                                   \
    .models =                                                                            \
        "the CPU path of TensorFlow and PyTorch, which call oneDNN (once MKL-DNN)",      \
    .algorithm = "what oneDNN chooses", .claim = "deterministic", .library = "oneDNN",   \
    .unsupported = onednn_unsupported

struct onednn_step {
    void *choice; /* the library's choice of an implementation: dnnl_primitive_desc_t */
    void *primitive;
    int count;
    struct onednn_argument arguments[ONEDNN_ARGUMENTS_MAX];
};

/* For `unsupported` of a variant: why oneDNN cannot be used here; NULL when it can. */
const char *onednn_unsupported(const struct run *run);

/* The functions, once onednn_unsupported returned NULL. */
const struct onednn_api *onednn_api(void);

/* Ends the run unless STATUS, what CALL returned, is success. */
void onednn_check(struct run *run, int status, const char *call);

/* The layout of float32 numbers in ORDER, one of enum onednn_order. */
struct onednn_layout onednn_layout(struct run *run, int rank, const int64_t *extents,
                                   int order);

/* Lets the library choose an implementation of OPERATION, whose name becomes the run's
 * algorithm.  FORWARD is the step whose gradient this is, or NULL. */
void onednn_step_init(struct run *run, struct onednn_step *step,
                      const struct onednn_operation *operation,
                      const struct onednn_step *forward);

/* The step copies a tensor into another layout; its arguments are bound too. */
void onednn_step_init_reorder(struct run *run, struct onednn_step *step,
                              const struct onednn_layout *from, void *from_data,
                              const struct onednn_layout *to, void *to_data);

/* Binds DATA, borrowed, to the argument ROLE.  The library never writes to sources. */
void onednn_step_bind(struct run *run, struct onednn_step *step, enum onednn_role role,
                      const struct onednn_layout *layout, const void *data);

/* The layout that the library chose for what QUERY names.  Borrowed from STEP. */
const struct onednn_layout *onednn_step_layout(struct run *run,
                                               const struct onednn_step *step,
                                               enum onednn_query query);

/* Scratch for a tensor of LAYOUT; see run_alloc. */
void *onednn_alloc(struct run *run, const struct onednn_layout *layout);

/* Computes, and waits until it is done. */
void onednn_step_execute(struct run *run, const struct onednn_step *step);

#endif
