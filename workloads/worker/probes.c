#include "workloads/worker/probes.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "workloads/worker/backend.h"
#include "workloads/worker/capture.h"
#include "workloads/worker/run.h"

enum {
    /* What a record may add to a line: a place of which each byte is escaped, two digests
     * and their punctuation; and the end of the line. */
    RECORD_MAX = 6 * PROBES_PLACE_MAX + 2 * DIGEST_HEX_SIZE + 32
};

bool probes_wanted(const struct probes_request *request)
{
    return request->every > 0 || request->capture;
}

void probes_init(struct probes *probes, const struct probes_request *request, int fd)
{
    *probes = (struct probes){ .request = *request };
    emit_init(&probes->emit, fd);
}

void probes_flush(struct probes *probes)
{
    if (probes->line_open) {
        emit_array_end(&probes->emit);
        emit_send(&probes->emit);
        probes->line_open = false;
    }
}

static bool step_recorded(const struct probes_request *request, int64_t step)
{
    return request->every > 0 && step >= request->first_step &&
           step <= request->last_step && step % request->every == 0;
}

static bool step_captured(const struct run *run, int64_t step)
{
    const struct probes *probes = run->probes;

    return probes->request.capture && !probes->captured &&
           run->iteration == probes->request.capture_iteration &&
           step == probes->request.capture_step;
}

bool run_probing(const struct run *run, int64_t step)
{
    if (!run->probes) {
        return false;
    }
    run->probes->hashed_count = 0;
    run->probes->step = step;
    return step_recorded(&run->probes->request, step) || step_captured(run, step);
}

struct tensor probes_tensor(const struct probe_value *value)
{
    return (struct tensor){ .name = value->name ? value->name : "",
                            .dtype = value->dtype,
                            .rank = 1,
                            .shape = { value->elements },
                            .data = (void *)value->data };
}

static void line_begin(struct probes *probes, int iteration, int64_t step)
{
    if (probes->line_open && probes->line_iteration == iteration &&
        probes->line_step == step && probes->emit.length + RECORD_MAX <= EMIT_LINE_MAX) {
        return;
    }
    probes_flush(probes);
    emit_begin(&probes->emit);
    emit_string(&probes->emit, "event", "probes");
    emit_int(&probes->emit, "i", iteration);
    emit_int(&probes->emit, "step", step);
    emit_array(&probes->emit, "records");
    probes->line_open = true;
    probes->line_iteration = iteration;
    probes->line_step = step;
}

static void record_add(struct run *run, int64_t step, const char *place, struct digest in,
                       struct digest out)
{
    struct probes *probes = run->probes;

    line_begin(probes, run->iteration, step);
    emit_array(&probes->emit, NULL);
    emit_string(&probes->emit, NULL, place);
    emit_digest(&probes->emit, NULL, in);
    emit_digest(&probes->emit, NULL, out);
    emit_array_end(&probes->emit);
    probes->records++;
}

static struct probe_value value_of(const struct tensor *tensor)
{
    return (struct probe_value){ .dtype = tensor->dtype,
                                 .elements = tensor_elements(tensor),
                                 .data = tensor->data,
                                 .name = tensor->name };
}

static bool place_wanted(const struct run *run, int64_t step, const char *place)
{
    const struct probes_request *request = &run->probes->request;

    return step_recorded(request, step) &&
           (!request->names || fnmatch(request->names, place, 0) == 0);
}

static bool place_captured(const struct run *run, int64_t step, const char *place)
{
    return step_captured(run, step) &&
           strcmp(place, run->probes->request.capture_place) == 0;
}

bool probes_want(const struct run *run, int64_t step, const char *place)
{
    return place_captured(run, step, place) ||
           (run->probes->records < PROBES_RECORDS_MAX && place_wanted(run, step, place));
}

void run_probe(struct run *run, int64_t step, const char *place,
               const struct probe_value *in, int in_count, const struct probe_value *out,
               int out_count)
{
    struct probes *probes = run->probes;

    if (!probes) {
        return;
    }
    bool captured = place_captured(run, step, place);
    if (!captured && !place_wanted(run, step, place)) {
        return;
    }
    if (!captured && probes->records == PROBES_RECORDS_MAX) {
        probes->dropped++;
        return;
    }
    if (strlen(place) > PROBES_PLACE_MAX || step < 0) {
        run_defect(run, "place '%s' of step %lld breaks the rules of probes", place,
                   (long long)step);
    }
    probes->computed_ms += run->backend->timer_stop(run);
    struct digest read = probes_list_digest(run, in, in_count);
    record_add(run, step, place, read, probes_list_digest(run, out, out_count));
    if (captured) {
        probes_flush(probes);
        probes->captured = true;
        capture_place(run, step, place, (struct capture_list){ in, in_count },
                      (struct capture_list){ out, out_count });
    }
    run->backend->timer_start(run);
}

static void outputs_probe(struct run *run)
{
    struct probes *probes = run->probes;
    int64_t step = probes->step;
    struct probe_value in[RUN_TENSORS_MAX];

    if (!run_probing(run, step)) {
        return;
    }
    for (int i = 0; i < run->input_count; i++) {
        in[i] = value_of(&run->inputs[i]);
    }
    for (int i = 0; i < run->output_count; i++) {
        struct probe_value out = value_of(&run->outputs[i]);
        char place[PROBES_PLACE_MAX + 1];

        snprintf(place, sizeof(place), "output/%s", out.name);
        run_probe(run, step, place, in, run->input_count, &out, 1);
    }
}

double probes_iteration_end(struct run *run, double milliseconds)
{
    struct probes *probes = run->probes;
    double computed = milliseconds + probes->computed_ms;

    outputs_probe(run);
    probes_flush(probes);
    probes->computed_ms = 0;
    probes->step = 0;
    return computed;
}
