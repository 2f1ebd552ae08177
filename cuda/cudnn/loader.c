#include "cuda/cudnn/loader.h"

#include <stdlib.h>
#include <string.h>

enum { ARCH_MISMATCH_8 = 6, NOT_SUPPORTED_8 = 9, NOT_SUPPORTED_9 = 3, GROUP_SIZE = 1000 };
enum { MESSAGE_SIZE = 400 };

static const char *const sonames[] = { "libcudnn.so.9", "libcudnn.so.8", NULL };
static struct library library = { .title = "cuDNN",
                                  .stem = "libcudnn",
                                  .sonames = sonames };
static struct cudnn_table api;

/* What the file's name promises: "libcudnn.so.9". */
static int named_major(void)
{
    const char *dot = strrchr(library.path, '.');

    return dot ? (int)strtol(dot + 1, NULL, 10) : 0;
}

static void ask_version(void)
{
    int major;

    library_ask_version(&library, "cudnnGetProperty");
    major = library.major;
    if (library.state == LIBRARY_USABLE &&
        (major != named_major() || major < 8 || major > 9)) {
        library_refuse(
            &library, LIBRARY_UNSUPPORTED,
            "%s is cuDNN %s; what can be used is libcudnn.so.8 that is cuDNN 8 "
            "and libcudnn.so.9 that is cuDNN 9",
            library.path, library.version);
    }
}

static void load(void)
{
#define CUDNN_ENTRY(function)                                                            \
    { #function, offsetof(struct cudnn_table, function), false },
#define CUDNN_OPTIONAL(function)                                                         \
    { #function, offsetof(struct cudnn_table, function), true },
    static const struct library_function functions[] = { CUDNN_FUNCTIONS(
        CUDNN_ENTRY) CUDNN_OPTIONAL_FUNCTIONS(CUDNN_OPTIONAL) };
#undef CUDNN_ENTRY
#undef CUDNN_OPTIONAL

    if (library.state == LIBRARY_CLOSED) {
        library_open(&library);
        ask_version();
        library_functions(&library, functions, COUNT_OF(functions), &api);
    }
}

const char *cudnn_unsupported(const struct run *run)
{
    load();
    return library_unsupported(&library, run);
}

const struct cudnn_table *cudnn_api(void)
{
    load();
    run_library_called(library.title);
    return &api;
}

const char *cudnn_version(void)
{
    load();
    return library.version[0] ? library.version : NULL;
}

static const char *problem_get(void)
{
    load();
    return library.state == LIBRARY_USABLE ? NULL : library.reason;
}

static const struct workload_fact cudnn_fact = {
    .backend = "cuda", .name = "cudnn", .value = cudnn_version, .problem = problem_get
};
WORKLOAD_FACT_REGISTER(cudnn_fact);

bool cudnn_says_unsupported(cudnnStatus_t status)
{
    return library.major < 9
               ? (int)status == NOT_SUPPORTED_8 || (int)status == ARCH_MISMATCH_8
               : (int)status / GROUP_SIZE == NOT_SUPPORTED_9;
}

/* What the library last complained about, in its words; cuDNN 9 only. */
static void last_error(char ret_text[MESSAGE_SIZE])
{
    ret_text[0] = '\0';
    if (cudnn_api()->cudnnGetLastErrorString) {
        cudnn_api()->cudnnGetLastErrorString(ret_text, MESSAGE_SIZE);
    }
    ret_text[MESSAGE_SIZE - 1] = '\0';
}

void cudnn_check(struct run *run, cudnnStatus_t status, const char *call)
{
    char last[MESSAGE_SIZE];

    if (status == 0) {
        return;
    }
    last_error(last);
    if (cudnn_says_unsupported(status)) {
        run_unsupported(run, "cuDNN %s: %s: %s%s%s", library.version, call,
                        api.cudnnGetErrorString(status), last[0] ? ": " : "", last);
    }
    run_infra(run, "cuDNN %s: %s: %s%s%s", library.version, call,
              api.cudnnGetErrorString(status), last[0] ? ": " : "", last);
}

const char *cudnn_claim(cudnnDeterminism_t determinism)
{
    return determinism == CUDNN_DETERMINISTIC ? "deterministic" : "non-deterministic";
}

bool cudnn_warns(const char *claim)
{
    return claim && strcmp(claim, "non-deterministic") == 0;
}
