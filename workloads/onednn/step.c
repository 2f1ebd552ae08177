#include "workloads/onednn/step.h"

/* One engine and one stream serve the process, as in the frameworks. */
static void *engine, *stream;

const char *onednn_unsupported(const struct run *run)
{
    (void)run;
    return onednn_load()->reason;
}

const struct onednn_api *onednn_api(void)
{
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
