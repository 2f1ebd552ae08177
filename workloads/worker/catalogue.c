#include "workloads/worker/catalogue.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "workloads/worker/environment.h"
#include "workloads/worker/libraries.h"
#include "workloads/worker/status.h"

enum { PROBE_VERSION = 1 };

static struct emit line;

static int finish(struct emit *emit)
{
    int error = emit_end(emit);

    if (error) {
        fprintf(stderr, "reprod-worker: cannot write to standard output: %s\n",
                strerror(error));
        return STATUS_OUTPUT;
    }
    return STATUS_OK;
}

static void emit_relation(struct emit *emit, const struct workload *w,
                          const struct workload_variant *v)
{
    for (int i = 0; i < w->relation_count; i++) {
        const struct workload_relation *r = &w->relations[i];

        if (strcmp(r->variant, v->name) == 0) {
            emit_string(emit, r->equal ? "equals" : "differs", r->other);
        }
    }
}

static void emit_variants(struct emit *emit, const struct workload *w)
{
    emit_array(emit, "variants");
    for (int i = 0; i < w->variant_count; i++) {
        const struct workload_variant *v = &w->variants[i];

        emit_object(emit, NULL);
        emit_string(emit, "name", v->name);
        emit_string(emit, "summary", v->summary);
        emit_string(emit, "models", v->models);
        emit_string(emit, "algorithm", v->algorithm);
        emit_string(emit, "claim", v->claim);
        emit_string(emit, "subject", v->library ? "library" : "model");
        emit_string(emit, "subject_name", v->library);
        emit_bool(emit, "control", v->control);
        if (v->control || v->kind) {
            emit_string(emit, "kind", v->kind ? v->kind : "race");
        }
        emit_relation(emit, w, v);
        emit_object_end(emit);
    }
    emit_array_end(emit);
}

static void emit_sizes(struct emit *emit, const struct workload *w)
{
    emit_array(emit, "sizes");
    for (int i = 0; i < w->size_count; i++) {
        emit_object(emit, NULL);
        emit_string(emit, "name", w->sizes[i].name);
        emit_string(emit, "description", w->sizes[i].description);
        emit_object_end(emit);
    }
    emit_array_end(emit);
}

static void emit_references(struct emit *emit, const struct workload *w)
{
    emit_array(emit, "references");
    for (int i = 0; i < w->reference_count; i++) {
        emit_object(emit, NULL);
        emit_string(emit, "kind", w->references[i].kind);
        emit_string(emit, "id", w->references[i].id);
        emit_string(emit, "title", w->references[i].title);
        emit_string(emit, "url", w->references[i].url);
        emit_string(emit, "state", w->references[i].state);
        emit_string(emit, "solved", w->references[i].solved);
        emit_object_end(emit);
    }
    emit_array_end(emit);
}

static int print_workload(struct emit *emit, const struct workload *w)
{
    emit_begin(emit);
    emit_string(emit, "workload", w->name);
    emit_int(emit, "version", w->version);
    emit_string(emit, "backend", w->backend);
    emit_string(emit, "title", w->title);
    emit_string(emit, "summary", w->summary);
    emit_variants(emit, w);
    emit_sizes(emit, w);
    emit_array(emit, "dtypes");
    for (int i = 0; i < w->dtype_count; i++) {
        emit_string(emit, NULL, dtype_name(w->dtypes[i]));
    }
    emit_array_end(emit);
    emit_string(emit, "weight_sum", w->weight_sum);
    emit_string(emit, "loss", w->loss);
    emit_string(emit, "no_control", w->no_control);
    emit_references(emit, w);
    return finish(emit);
}

int catalogue_print(const struct registry *registry, const struct backend *backend)
{
    emit_init(&line, STDOUT_FILENO);
    for (int i = 0; i < registry->count; i++) {
        const struct workload *w = registry->workloads[i];
        int status =
            strcmp(w->backend, backend->name) == 0 ? print_workload(&line, w) : STATUS_OK;

        if (status) {
            return status;
        }
    }
    return STATUS_OK;
}

int catalogue_probe(const struct backend *backend)
{
    emit_init(&line, STDOUT_FILENO);
    emit_begin(&line);
    emit_int(&line, "v", PROBE_VERSION);
    emit_string(&line, "backend", backend->name);
    emit_string(&line, "worker_build", libraries_worker_build());
    emit_bool(&line, "checks", true);
    emit_bool(&line, "passed", true);
    emit_bool(&line, "nonce", true);
    emit_bool(&line, "processes", backend->emit_processes != NULL);
    backend->emit_probe(&line);
    facts_emit_problems(&line, backend->name);
    return finish(&line);
}

int catalogue_processes(const struct backend *backend)
{
    emit_init(&line, STDOUT_FILENO);
    emit_begin(&line);
    emit_int(&line, "v", PROBE_VERSION);
    if (backend->emit_processes) {
        backend->emit_processes(&line);
    } else {
        emit_array(&line, "devices");
        emit_array_end(&line);
        emit_string(&line, "cause", "this backend does not tell");
    }
    return finish(&line);
}
