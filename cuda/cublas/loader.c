#include "cuda/cublas/loader.h"

#include <stdio.h>
#include <string.h>

#include "cuda/library/elf.h"
#include "cuda/library/library.h"

enum { BUILD_DIGITS = 16, BUILD_SIZE = 80 };

static const char *const sonames[] = { "libcublas.so.13", "libcublas.so.12",
                                       "libcublas.so.11", NULL };
static struct library library = { .title = "cuBLAS",
                                  .stem = "libcublas",
                                  .sonames = sonames };
static struct cublas_table api;

static void load(void)
{
#define CUBLAS_ENTRY(function)                                                           \
    { #function, offsetof(struct cublas_table, function), false },
    static const struct library_function functions[] = { CUBLAS_FUNCTIONS(CUBLAS_ENTRY) };
#undef CUBLAS_ENTRY

    library_open(&library);
    library_functions(&library, functions, COUNT_OF(functions), &api);
    library_ask_version(&library, "cublasGetProperty");
}

const char *cublas_unsupported(const struct run *run)
{
    if (library.state == LIBRARY_CLOSED) {
        load();
    }
    return library_unsupported(&library, run);
}

const struct cublas_table *cublas_api(void)
{
    run_library_called(library.title);
    return &api;
}

const char *cublas_version(void)
{
    return library.version;
}

void cublas_check(struct run *run, cublasStatus_t status, const char *call)
{
    if (status == CUBLAS_STATUS_SUCCESS) {
        return;
    }
    if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_ARCH_MISMATCH) {
        run_unsupported(run, "cuBLAS %s: %s: %s", library.version, call,
                        api.cublasGetStatusString(status));
    }
    run_infra(run, "cuBLAS %s: %s: %s", library.version, call,
              api.cublasGetStatusString(status));
}

static const char *build_get(void)
{
    static char text[BUILD_SIZE];
    char id[BUILD_DIGITS + 1];

    if (!text[0] && library_find(&library)) {
        elf_build_id(library.path, id, sizeof id);
        snprintf(text, sizeof text, "%s build %s", strrchr(library.path, '.') + 1,
                 id[0] ? id : "unknown");
    }
    return text[0] ? text : NULL;
}

static const char *problem_get(void)
{
    return library_find(&library) ? NULL : library.reason;
}

static const struct workload_fact cublas_build = {
    .backend = "cuda", .name = "cublas", .value = build_get, .problem = problem_get
};
WORKLOAD_FACT_REGISTER(cublas_build);
