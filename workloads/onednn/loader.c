#include "workloads/onednn/loader.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/workload.h"

enum { MAJOR = 2, REASON_SIZE = 512, VERSION_SIZE = 40 };

static struct onednn onednn;

__attribute__((format(printf, 1, 2))) static void refuse(const char *format, ...)
{
    static char reason[REASON_SIZE];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    onednn.reason = reason;
}

static void read_version(const char *name, void *library)
{
    static char text[VERSION_SIZE];
    void *symbol = dlsym(library, "dnnl_version");
    const struct onednn_version *(*get_version)(void);
    const struct onednn_version *version;

    if (!symbol) {
        refuse("%s has no dnnl_version: it is not oneDNN", name);
        return;
    }
    memcpy(&get_version, &symbol, sizeof symbol);
    version = get_version();
    snprintf(text, sizeof text, "%d.%d.%d", version->major, version->minor,
             version->patch);
    onednn.version = text;
    if (version->major != MAJOR) {
        refuse("%s is oneDNN %s; the workloads speak the C interface of oneDNN %d.x",
               name, text, MAJOR);
    }
}

static void find_functions(const char *name, void *library)
{
#define ONEDNN_ENTRY(result, function, parameters)                                       \
    { "dnnl_" #function, offsetof(struct onednn_api, function) },
    static const struct {
        const char *symbol;
        size_t offset;
    } entries[] = { ONEDNN_FUNCTIONS(ONEDNN_ENTRY) };
#undef ONEDNN_ENTRY

    for (int i = 0; i < COUNT_OF(entries); i++) {
        void *symbol = dlsym(library, entries[i].symbol);

        if (!symbol) {
            refuse("%s (oneDNN %s) has no function %s", name, onednn.version,
                   entries[i].symbol);
            return;
        }
        memcpy((char *)&onednn.api + entries[i].offset, &symbol, sizeof symbol);
    }
}

static void load(const char *name)
{
    void *library;

    if (!name || !*name) {
        refuse("this stack names no oneDNN library: REPROD_ONEDNN is not set");
        return;
    }
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        refuse("%s is not installed: %s", name, dlerror());
        return;
    }
    read_version(name, library);
    if (!onednn.reason) {
        find_functions(name, library);
    }
}

const struct onednn *onednn_load(void)
{
    static bool loaded;

    if (!loaded) {
        load(getenv("REPROD_ONEDNN"));
    }
    loaded = true;
    return &onednn;
}

static const char *version_get(void)
{
    return onednn_load()->version;
}

/* A stack that names none has no problem. */
static const char *problem_get(void)
{
    const char *name = getenv("REPROD_ONEDNN");

    return name && *name ? onednn_load()->reason : NULL;
}

static const struct workload_fact onednn_version = {
    .backend = "cpu", .name = "onednn", .value = version_get, .problem = problem_get
};
WORKLOAD_FACT_REGISTER(onednn_version);
