#include "cuda/cudnn/loader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/cudnn/usable.h"
#include "cuda/library/library.h"

enum { NOT_SUPPORTED_8 = 9, NOT_SUPPORTED_9 = 3, GROUP_SIZE = 1000, MESSAGE_SIZE = 400 };

enum { VERSION_SIZE = 40 };

static const char *const sonames[] = { "libcudnn.so.9", "libcudnn.so.8", NULL };
static struct library library = { .title = "cuDNN",
                                  .stem = "libcudnn",
                                  .sonames = sonames };
static struct cudnn cudnn;

/* What the file's name promises: "libcudnn.so.9". */
static int named_major(void)
{
    const char *dot = strrchr(library.path, '.');

    return dot ? (int)strtol(dot + 1, NULL, 10) : 0;
}

static void read_version(void)
{
    static char text[VERSION_SIZE];
    static const struct library_function get = { "cudnnGetProperty", 0, false };
    LIBRARY_POINTER(cudnnGetProperty) get_property;
    int minor = 0, patch = 0;

    library_functions(&library, &get, 1, "of an unknown version", &get_property);
    if (library.state != LIBRARY_USABLE) {
        return;
    }
    if (get_property(LIBRARY_MAJOR, &cudnn.major) != 0 ||
        get_property(LIBRARY_MINOR, &minor) != 0 ||
        get_property(LIBRARY_PATCH, &patch) != 0) {
        library_refuse(&library, LIBRARY_BROKEN, "cuDNN (%s) does not know its version",
                       library.path);
        return;
    }
    snprintf(text, sizeof text, "%d.%d.%d", cudnn.major, minor, patch);
    cudnn.version = text;
    if (cudnn.major != named_major() || cudnn.major < 8 || cudnn.major > 9) {
        library_refuse(
            &library, LIBRARY_UNSUPPORTED,
            "%s is cuDNN %s; what can be used is libcudnn.so.8 that is cuDNN 8 "
            "and libcudnn.so.9 that is cuDNN 9",
            library.path, text);
    }
}

static void find_functions(void)
{
#define CUDNN_ENTRY(function)                                                            \
    { #function, offsetof(struct cudnn_table, function), false },
#define CUDNN_OPTIONAL(function)                                                         \
    { #function, offsetof(struct cudnn_table, function), true },
    static const struct library_function functions[] = { CUDNN_FUNCTIONS(
        CUDNN_ENTRY) CUDNN_OPTIONAL_FUNCTIONS(CUDNN_OPTIONAL) };
#undef CUDNN_ENTRY
#undef CUDNN_OPTIONAL

    library_functions(&library, functions, COUNT_OF(functions), cudnn.version,
                      &cudnn.api);
}

const struct cudnn *cudnn_load(void)
{
    if (library.state == LIBRARY_CLOSED) {
        library_open(&library);
        if (library.state == LIBRARY_USABLE) {
            read_version();
        }
        if (library.state == LIBRARY_USABLE) {
            find_functions();
        }
        cudnn.reason = library.state == LIBRARY_USABLE ? NULL : library.reason;
    }
    return &cudnn;
}

const char *cudnn_unsupported(const struct run *run)
{
    cudnn_load();
    return library_unsupported(&library, run);
}

const struct cudnn_table *cudnn_api(void)
{
    return &cudnn_load()->api;
}

const char *cudnn_version(void)
{
    return cudnn_load()->version;
}

static const char *problem_get(void)
{
    return cudnn_load()->reason;
}

static const struct workload_fact cudnn_fact = {
    .backend = "cuda", .name = "cudnn", .value = cudnn_version, .problem = problem_get
};
WORKLOAD_FACT_REGISTER(cudnn_fact);

bool cudnn_says_unsupported(int major, int status)
{
    return major < 9 ? status == NOT_SUPPORTED_8 : status / GROUP_SIZE == NOT_SUPPORTED_9;
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
    const struct cudnn *loaded = cudnn_load();
    char last[MESSAGE_SIZE];

    if (status == 0) {
        return;
    }
    last_error(last);
    if (cudnn_says_unsupported(loaded->major, (int)status)) {
        run_unsupported(run, "cuDNN %s: %s: %s%s%s", loaded->version, call,
                        loaded->api.cudnnGetErrorString(status), last[0] ? ": " : "",
                        last);
    }
    run_infra(run, "cuDNN %s: %s: %s%s%s", loaded->version, call,
              loaded->api.cudnnGetErrorString(status), last[0] ? ": " : "", last);
}

const char *cudnn_claim(cudnnDeterminism_t determinism)
{
    return determinism == CUDNN_DETERMINISTIC ? "deterministic" : "non-deterministic";
}
