#include "cuda/nccl/loader.h"

#include <stdio.h>

#include "cuda/library/library.h"

static const char *const sonames[] = { "libnccl.so.2", NULL };
static struct library library = { .title = "NCCL",
                                  .stem = "libnccl",
                                  .sonames = sonames };
static struct nccl_table api;

/* 2.28.9 is 22809; before 2.9, 2.8.4 was 2804. */
static void write_version(int number)
{
    int major = number < 10000 ? number / 1000 : number / 10000;
    int minor = number < 10000 ? number / 100 % 10 : number / 100 % 100;

    snprintf(library.version, sizeof library.version, "%d.%d.%d", major, minor,
             number % 100);
}

static void load(void)
{
#define NCCL_ENTRY(function) { #function, offsetof(struct nccl_table, function), false },
    static const struct library_function functions[] = { NCCL_FUNCTIONS(NCCL_ENTRY) };
#undef NCCL_ENTRY
    int number = 0;

    if (library.state != LIBRARY_CLOSED) {
        return;
    }
    library_open(&library);
    library_functions(&library, functions, COUNT_OF(functions), &api);
    if (library.state != LIBRARY_USABLE) {
        return;
    }
    if (api.ncclGetVersion(&number) != ncclSuccess) {
        library_refuse(&library, LIBRARY_BROKEN, "NCCL (%s) does not know its version",
                       library.path);
        return;
    }
    write_version(number);
}

const char *nccl_unsupported(const struct run *run)
{
    load();
    return library_unsupported(&library, run);
}

const struct nccl_table *nccl_api(void)
{
    run_library_called(library.title);
    return &api;
}

void nccl_check(struct run *run, ncclResult_t status, const char *call)
{
    if (status != ncclSuccess) {
        run_infra(run, "NCCL %s: %s: %s", library.version, call,
                  api.ncclGetErrorString(status));
    }
}

static const char *version_get(void)
{
    load();
    return library.version[0] ? library.version : NULL;
}

static const char *problem_get(void)
{
    load();
    return library.state == LIBRARY_USABLE ? NULL : library.reason;
}

static const struct workload_fact nccl_version = {
    .backend = "cuda", .name = "nccl", .value = version_get, .problem = problem_get
};
WORKLOAD_FACT_REGISTER(nccl_version);
