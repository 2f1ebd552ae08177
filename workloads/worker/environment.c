#include "workloads/worker/environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "workloads/worker/backend.h"
#include "workloads/worker/libraries.h"

enum { VALUE_MAX = 256, NAME_MAX_BYTES = 128 };

/* A name that ends in '*' stands for all that begin so. */
static const char *const relevant[] = {
    "BLIS_*",
    "CUBLAS*",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_FORCE_PTX_JIT",
    "CUDA_LAUNCH_BLOCKING",
    "CUDNN_*",
    "DNNL_*",
    "GLIBC_TUNABLES",
    "GOMP_*",
    "HOROVOD_FUSION_THRESHOLD",
    "JAX_*",
    "KMP_*",
    "LD_PRELOAD",
    "MKL_*",
    "NCCL_ALGO",
    "NCCL_MAX_NCHANNELS",
    "NCCL_MIN_NCHANNELS",
    "NCCL_NVLS_ENABLE",
    "NCCL_PROTO",
    "NVIDIA_TF32_OVERRIDE",
    "NVTE_*",
    "OMP_*",
    "ONEDNN_*",
    "OPENBLAS_*",
    "PYTHONHASHSEED",
    "TF_AUTOTUNE_THRESHOLD",
    "TF_CUDNN_*",
    "TF_DETERMINISTIC_OPS",
    "TF_DISABLE_*",
    "TF_ENABLE_*",
    "TF_USE_*",
    "TF_XLA_FLAGS",
    "TORCHINDUCTOR_COORDINATE_DESCENT_*",
    "TORCHINDUCTOR_DETERMINISTIC",
    "TORCHINDUCTOR_MAX_AUTOTUNE*",
    "TORCH_*",
    "VLLM_ATTENTION_BACKEND",
    "VLLM_BATCH_INVARIANT",
    "VLLM_USE_*",
    "XLA_FLAGS",
};

/* These the worker overrides: the environment has "threads" instead. */
static const char *const overridden[] = { "OMP_NUM_THREADS", "OMP_DYNAMIC" };

static bool matches(const char *pattern, const char *name, size_t length)
{
    size_t n = strlen(pattern);

    if (pattern[n - 1] == '*') {
        return length >= n - 1 && strncmp(pattern, name, n - 1) == 0;
    }
    return length == n && strncmp(pattern, name, n) == 0;
}

static bool is_listed(const char *const *patterns, int count, const char *name,
                      size_t length)
{
    for (int i = 0; i < count; i++) {
        if (matches(patterns[i], name, length)) {
            return true;
        }
    }
    return false;
}

bool environment_is_relevant(const char *name, size_t length)
{
    return is_listed(relevant, COUNT_OF(relevant), name, length) &&
           !is_listed(overridden, COUNT_OF(overridden), name, length);
}

static void emit_variable(struct emit *emit, const char *name, const char *value)
{
    char key[NAME_MAX_BYTES + sizeof "env."];
    char text[sizeof "digest:" + DIGEST_HEX_SIZE] = "digest:";

    snprintf(key, sizeof key, "env.%s", name);
    if (strlen(value) <= VALUE_MAX) {
        emit_string(emit, key, value);
        return;
    }
    digest_hex(digest_bytes(value, strlen(value)), text + strlen(text));
    emit_string(emit, key, text);
}

static void emit_variables(struct emit *emit)
{
    for (char **entry = environ; *entry; entry++) {
        size_t length = strcspn(*entry, "=");
        char name[NAME_MAX_BYTES + 1];
        const char *value;

        if ((*entry)[length] != '=' || length > NAME_MAX_BYTES ||
            !environment_is_relevant(*entry, length)) {
            continue;
        }
        memcpy(name, *entry, length);
        name[length] = '\0';
        value = *entry + length + 1;
        /* Of a name that stands there twice the first counts, as everywhere. */
        if (getenv(name) == value) {
            emit_variable(emit, name, value);
        }
    }
}

/* Weak: a program without any fact links. */
extern const struct workload_fact *const __start_reprod_facts[] __attribute__((weak));
extern const struct workload_fact *const __stop_reprod_facts[] __attribute__((weak));

/* The fact after *FACT that belongs to BACKEND; NULL when there is none. */
static const struct workload_fact *next(const struct workload_fact *const **fact,
                                        const char *backend)
{
    while (*fact < __stop_reprod_facts) {
        const struct workload_fact *found = *(*fact)++;

        if (found && strcmp(found->backend, backend) == 0) {
            return found;
        }
    }
    return NULL;
}

void facts_emit(struct emit *emit, const char *backend)
{
    const struct workload_fact *const *rest = __start_reprod_facts;
    for (const struct workload_fact *fact; (fact = next(&rest, backend));) {
        const char *value = fact->value();

        if (value) {
            emit_string(emit, fact->name, value);
        }
    }
}

void facts_emit_problems(struct emit *emit, const char *backend)
{
    const struct workload_fact *const *rest = __start_reprod_facts;
    emit_object(emit, "problems");
    for (const struct workload_fact *fact; (fact = next(&rest, backend));) {
        const char *problem = fact->problem ? fact->problem() : NULL;

        if (problem) {
            emit_string(emit, fact->name, problem);
        }
    }
    emit_object_end(emit);
}

void environment_emit(struct emit *emit, const struct run *run)
{
    emit_object(emit, "environment");
    emit_string(emit, "backend", run->backend->name);
    emit_string(emit, "worker_build", libraries_worker_build());
    run->backend->emit_environment(emit, run);
    facts_emit(emit, run->backend->name);
    emit_variables(emit);
    emit_object_end(emit);
}
