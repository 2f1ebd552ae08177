#include "cuda/cublas/multiply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char variable[] = "CUBLAS_WORKSPACE_CONFIG";
static const float one = 1, zero = 0;

/* The first call that fails, and how. */
struct attempt {
    cublasStatus_t status;
    const char *call;
};

/* TRY(attempt, function, arguments …): unless something failed before. */
#define TRY(attempt, function, ...)                                                      \
    do {                                                                                 \
        if ((attempt)->status == CUBLAS_STATUS_SUCCESS) {                                \
            (attempt)->status = cublas_api()->function(__VA_ARGS__);                     \
            (attempt)->call = #function;                                                 \
        }                                                                                \
    } while (0)

/* cuBLAS's matrices lie column by column, so ours are their transposed ones there, and
 * transposed c is transposed b times transposed a. */
static void compute_at_once(const struct cublas_products *p, struct attempt *attempt)
{
    TRY(attempt, cublasSgemmStridedBatched, p->handle, CUBLAS_OP_N, CUBLAS_OP_N,
        p->columns, p->rows, p->inner, &one, p->b, p->columns,
        (long long)p->inner * p->columns, p->a, p->inner, (long long)p->rows * p->inner,
        &zero, p->c, p->columns, (long long)p->rows * p->columns, p->count);
}

/* cublasSetStream takes a workspace away: it has to be given again. */
static void compute_on_streams(const struct cublas_products *p, struct attempt *attempt)
{
    for (int i = 0; i < p->count; i++) {
        int stream = i % p->stream_count;
        size_t at = (size_t)i;

        TRY(attempt, cublasSetStream_v2, p->handle, p->streams[stream]);
        if (p->workspace_bytes) {
            TRY(attempt, cublasSetWorkspace_v2, p->handle, p->workspaces[stream],
                p->workspace_bytes);
        }
        TRY(attempt, cublasSgemm_v2, p->handle, CUBLAS_OP_N, CUBLAS_OP_N, p->columns,
            p->rows, p->inner, &one, p->b + at * (size_t)p->inner * (size_t)p->columns,
            p->columns, p->a + at * (size_t)p->rows * (size_t)p->inner, p->inner, &zero,
            p->c + at * (size_t)p->rows * (size_t)p->columns, p->columns);
    }
}

static void compute(const struct cublas_products *p, struct attempt *attempt)
{
    if (p->stream_count) {
        compute_on_streams(p, attempt);
    } else {
        compute_at_once(p, attempt);
    }
}

/* Sets the variable to VALUE, or removes it where that is NULL. */
static void variable_set(const char *value)
{
    if (value) {
        setenv(variable, value, 1);
    } else {
        unsetenv(variable);
    }
}

/* cuBLAS reads the variable when it makes a handle; should a version read it when it
 * first computes, it is still there.  It is gone before anything is reported: a choice of
 * this run must not pass for one of its environment. */
static void handle_make(struct cublas_products *p, struct attempt *attempt)
{
    const char *set = getenv(variable);
    char *before = set ? strdup(set) : NULL;

    if (p->config) {
        variable_set(p->config);
    }
    TRY(attempt, cublasCreate_v2, &p->handle);
    TRY(attempt, cublasSetMathMode, p->handle,
        p->tf32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH);
    TRY(attempt, cublasSetAtomicsMode, p->handle,
        p->atomics ? CUBLAS_ATOMICS_ALLOWED : CUBLAS_ATOMICS_NOT_ALLOWED);
    compute(p, attempt);
    if (p->config) {
        variable_set(before);
    }
    free(before);
}

static void workspace_describe(const struct cublas_products *p, char *ret_text,
                               size_t size)
{
    const char *set = p->config ? p->config : getenv(variable);

    if (p->workspace_bytes) {
        snprintf(ret_text, size, "a workspace of %zu bytes each", p->workspace_bytes);
    } else {
        snprintf(ret_text, size, "cuBLAS's own workspace%s%.32s", set ? " " : "",
                 set ? set : "");
    }
}

void cublas_products_prepare(struct run *run, struct cublas_products *products)
{
    struct attempt attempt = { .status = CUBLAS_STATUS_SUCCESS };
    char workspace[80];

    handle_make(products, &attempt);
    cublas_check(run, attempt.status, attempt.call);
    workspace_describe(products, workspace, sizeof workspace);
    snprintf(products->description, sizeof products->description,
             "%s, %d stream%s, %s, %s, atomics %sallowed",
             products->stream_count ? "cublasSgemm" : "cublasSgemmStridedBatched",
             products->stream_count ? products->stream_count : 1,
             products->stream_count > 1 ? "s of one handle" : "", workspace,
             products->tf32 ? "CUBLAS_TF32_TENSOR_OP_MATH" : "CUBLAS_DEFAULT_MATH",
             products->atomics ? "" : "not ");
    run->algorithm = products->description;
}

void cublas_products_compute(struct run *run, const struct cublas_products *products)
{
    struct attempt attempt = { .status = CUBLAS_STATUS_SUCCESS };

    compute(products, &attempt);
    cublas_check(run, attempt.status, attempt.call);
}
