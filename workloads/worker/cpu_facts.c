#include "workloads/worker/cpu_facts.h"

#include <gnu/libc-version.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "workloads/worker/cpu.h"
#include "workloads/worker/facts.h"
#include "workloads/worker/libraries.h"

const char *cpu_facts_device_id(void)
{
    static char id[sizeof("cpu:") + HOST_NAME_MAX];

    if (id[0] == '\0') {
        memcpy(id, "cpu:", sizeof("cpu:"));
        gethostname(id + strlen(id), HOST_NAME_MAX + 1);
    }
    return id;
}

static void emit_libc(struct emit *emit)
{
    char text[64];

    snprintf(text, sizeof(text), "glibc %s", gnu_get_libc_version());
    emit_string(emit, "libc", text);
}

static void emit_openmp(struct emit *emit)
{
    char library[LIBRARY_PATH_SIZE];
    char text[LIBRARY_PATH_SIZE + 32];

    libraries_openmp(library);
    snprintf(text, sizeof(text), "%s (OpenMP %d)", library, _OPENMP);
    emit_string(emit, "openmp", text);
}

static void emit_model(struct emit *emit)
{
    char model[CPU_TEXT_SIZE];

    cpu_model(model);
    emit_string(emit, "model", model);
}

static void emit_architecture(struct emit *emit)
{
    struct utsname machine;

    emit_string(emit, "architecture", uname(&machine) == 0 ? machine.machine : "unknown");
}

void cpu_facts_emit_environment(struct emit *emit, const struct run *run)
{
    emit_model(emit);
    emit_architecture(emit);
    emit_string(emit, "vector_isa", cpu_vector_isa());
    emit_int(emit, "threads", run->threads);
    emit_libc(emit);
    emit_openmp(emit);
}

void cpu_facts_emit_probe(struct emit *emit)
{
    emit_object(emit, "versions");
    emit_libc(emit);
    emit_openmp(emit);
    facts_emit(emit, "cpu");
    emit_object_end(emit);
    emit_array(emit, "devices");
    emit_object(emit, NULL);
    emit_string(emit, "id", cpu_facts_device_id());
    emit_model(emit);
    emit_object(emit, "attributes");
    emit_architecture(emit);
    emit_string(emit, "vector_isa", cpu_vector_isa());
    emit_int(emit, "processors", sysconf(_SC_NPROCESSORS_ONLN));
    emit_int(emit, "memory_bytes",
             (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
    emit_object_end(emit);
    emit_object_end(emit);
    emit_array_end(emit);
    emit_null(emit, "cause");
}
