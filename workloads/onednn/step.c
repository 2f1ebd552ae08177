#include "workloads/onednn/step.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* One engine and one stream serve the process, as in the frameworks. */
static void *engine, *stream;

const char *onednn_unsupported(const struct run *run)
{
    (void)run;
    return onednn_load()->reason;
}

const struct onednn_api *onednn_api(void)
{
    run_library_called("oneDNN");
    return &onednn_load()->api;
}

void onednn_check(struct run *run, int status, const char *call)
{
    const char *version = onednn_load()->version;

    if (status == ONEDNN_UNIMPLEMENTED) {
        run_unsupported(run, "oneDNN %s: %s: no implementation for this case", version,
                        call);
    }
    if (status == ONEDNN_OUT_OF_MEMORY) {
        run_infra(run, "oneDNN %s: %s: out of memory", version, call);
    }
    if (status != 0) {
        run_infra(run, "oneDNN %s: %s failed with status %d", version, call, status);
    }
}

static void open_engine(struct run *run)
{
    const struct onednn_api *api = onednn_api();

    if (engine) {
        return;
    }
    onednn_check(run, api->engine_create(&engine, ONEDNN_ENGINE_CPU, 0), "engine_create");
    onednn_check(run, api->stream_create(&stream, engine, ONEDNN_STREAM_DEFAULT),
                 "stream_create");
}

struct onednn_layout onednn_layout(struct run *run, int rank, const int64_t *extents,
                                   int order)
{
    struct onednn_layout layout;

    onednn_check(run,
                 onednn_api()->memory_desc_init_by_tag(&layout, rank, extents,
                                                       ONEDNN_FLOAT32, order),
                 "memory_desc_init_by_tag");
    return layout;
}

static void create_primitive(struct run *run, struct onednn_step *step)
{
    step->count = 0;
    onednn_check(run, onednn_api()->primitive_create(&step->primitive, step->choice),
                 "primitive_create");
}

void onednn_step_init(struct run *run, struct onednn_step *step,
                      const struct onednn_operation *operation,
                      const struct onednn_step *forward)
{
    const struct onednn_api *api = onednn_api();

    open_engine(run);
    onednn_check(run,
                 api->primitive_desc_create(&step->choice, operation, NULL, engine,
                                            forward ? forward->choice : NULL),
                 "primitive_desc_create");
    create_primitive(run, step);
    onednn_check(run,
                 api->primitive_desc_query(step->choice, ONEDNN_QUERY_IMPLEMENTATION, 0,
                                           &run->algorithm),
                 "primitive_desc_query");
}

void onednn_step_init_reorder(struct run *run, struct onednn_step *step,
                              const struct onednn_layout *from, void *from_data,
                              const struct onednn_layout *to, void *to_data)
{
    open_engine(run);
    onednn_check(run,
                 onednn_api()->reorder_primitive_desc_create(&step->choice, from, engine,
                                                             to, engine, NULL),
                 "reorder_primitive_desc_create");
    create_primitive(run, step);
    onednn_step_bind(run, step, ONEDNN_SOURCE, from, from_data);
    onednn_step_bind(run, step, ONEDNN_RESULT, to, to_data);
}

void onednn_step_bind(struct run *run, struct onednn_step *step, enum onednn_role role,
                      const struct onednn_layout *layout, const void *data)
{
    struct onednn_argument *argument = &step->arguments[step->count++];

    argument->role = (int)role;
    onednn_check(
        run, onednn_api()->memory_create(&argument->memory, layout, engine, (void *)data),
        "memory_create");
}

const struct onednn_layout *onednn_step_layout(struct run *run,
                                               const struct onednn_step *step,
                                               enum onednn_query query)
{
    const struct onednn_layout *layout =
        onednn_api()->primitive_desc_query_md(step->choice, (int)query, 0);

    if (!layout) {
        run_infra(run, "oneDNN %s: no layout for query %d", onednn_load()->version,
                  (int)query);
    }
    return layout;
}

void *onednn_alloc(struct run *run, const struct onednn_layout *layout)
{
    return run_alloc(run, onednn_api()->memory_desc_get_size(layout));
}

void onednn_step_execute(struct run *run, const struct onednn_step *step)
{
    const struct onednn_api *api = onednn_api();

    onednn_check(
        run,
        api->primitive_execute(step->primitive, stream, step->count, step->arguments),
        "primitive_execute");
    onednn_check(run, api->stream_wait(stream), "stream_wait");
}
