#include "workloads/worker/probes.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "workloads/shared/probing.h"
#include "workloads/worker/backend.h"
#include "workloads/worker/ending.h"

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

static struct tensor tensor_of(const struct probe_value *value)
{
    return (struct tensor){ .name = value->name ? value->name : "",
                            .dtype = value->dtype,
                            .rank = 1,
                            .shape = { value->elements },
                            .data = (void *)value->data };
}

/* What is remembered of VALUE if it is an input, which does not change as long as the run
 * lasts; NULL when it is none. */
static struct probes_input *input_of(struct run *run, const struct probe_value *value)
{
    for (int i = 0; i < run->input_count; i++) {
        const struct tensor *input = &run->inputs[i];

        if (input->data == value->data && input->dtype == value->dtype &&
            tensor_elements(input) == value->elements) {
            return &run->probes->inputs[i];
        }
    }
    return NULL;
}

/* Borrowed: valid until the next value is remembered.  NULL: not hashed yet. */
static const struct digest *remembered(struct run *run, const struct probe_value *value)
{
    const struct probes_input *input = input_of(run, value);

    if (input) {
        return input->hashed ? &input->digest : NULL;
    }
    for (int i = 0; i < run->probes->hashed_count; i++) {
        const struct probes_hashed *h = &run->probes->hashed[i];

        if (h->data == value->data && h->elements == value->elements &&
            h->dtype == value->dtype) {
            return &h->digest;
        }
    }
    return NULL;
}

static void remember(struct run *run, const struct probe_value *value,
                     struct digest digest)
{
    struct probes *probes = run->probes;
    struct probes_input *input = input_of(run, value);

    if (input) {
        *input = (struct probes_input){ .hashed = true, .digest = digest };
        return;
    }
    /* Backends leave run->probes alone, which the analyzer cannot see. */
    if (probes->hashed_count < PROBES_HASHED_MAX) { /* NOLINT(*-core.NullDereference) */
        probes->hashed[probes->hashed_count++] = (struct probes_hashed){
            .data = value->data,
            .elements = value->elements,
            .dtype = value->dtype,
            .digest = digest,
        };
    }
}

static struct digest value_digest(struct run *run, const struct probe_value *value)
{
    const struct digest *known = remembered(run, value);
    struct tensor tensor;
    struct digest digest;

    if (known) {
        return *known;
    }
    tensor = tensor_of(value);
    digest = run->backend->digest(run, &tensor);
    remember(run, value, digest);
    /* cppcheck-suppress returnDanglingLifetime -- a digest holds no pointer */
    return digest;
}

/* The digest of a list (PROTOCOL.md): zeros of none, that of its value of one, else all
 * combined. */
static struct digest list_digest(struct run *run, const struct probe_value *values,
                                 int count)
{
    struct digest parts[RUN_TENSORS_MAX];

    if (count < 0 || count > RUN_TENSORS_MAX) {
        run_defect(run, "a probe of %d values, more than %d", count, RUN_TENSORS_MAX);
    }
    if (count == 0) {
        return (struct digest){ 0 };
    }
    for (int i = 0; i < count; i++) {
        parts[i] = value_digest(run, &values[i]);
    }
    return count == 1 ? parts[0] : digest_combine(parts, count);
}

/* Hashes COUNT values at once for the run_probe calls that follow in the stretch. */
static void hash_all(struct run *run, const struct probe_value *values, int count)
{
    struct tensor tensors[PROBES_HASHED_MAX];
    struct digest digests[PROBES_HASHED_MAX];
    int which[PROBES_HASHED_MAX];
    int unknown = 0;

    if (!run->backend->digests) {
        return;
    }
    for (int i = 0; i < count && unknown < PROBES_HASHED_MAX; i++) {
        if (!remembered(run, &values[i])) {
            which[unknown] = i;
            tensors[unknown++] = tensor_of(&values[i]);
        }
    }
    run->probes->computed_ms += run->backend->timer_stop(run);
    run->backend->digests(run, tensors, unknown, digests);
    for (int i = 0; i < unknown; i++) {
        remember(run, &values[which[i]], digests[i]);
    }
    run->backend->timer_start(run);
}

/* The values of a place: one list of a record. */
struct capture_list {
    const struct probe_value *values; /* borrowed */
    int count;
};

/* Where a captured tensor belongs. */
struct capture {
    int64_t step;
    const char *place, *role; /* role: "in" or "out" */
    int index;
};

static void chunk_send(struct run *run, const struct capture *capture,
                       const struct tensor *tensor, int64_t offset, int64_t captured)
{
    static unsigned char host[PROBES_CHUNK];
    struct emit *emit = &run->probes->emit;
    int64_t left = captured - offset;
    size_t count = (size_t)(left < PROBES_CHUNK ? left : PROBES_CHUNK);

    if (count > 0) {
        run->backend->download(run, host, (const char *)tensor->data + offset, count);
    }
    emit_begin(emit);
    emit_string(emit, "event", "tensor");
    emit_int(emit, "i", run->iteration);
    emit_int(emit, "step", capture->step);
    emit_string(emit, "place", capture->place);
    emit_string(emit, "role", capture->role);
    emit_int(emit, "index", capture->index);
    emit_string(emit, "name", tensor->name);
    emit_string(emit, "dtype", dtype_name(tensor->dtype));
    emit_array(emit, "shape");
    emit_int(emit, NULL, tensor->shape[0]);
    emit_array_end(emit);
    emit_int(emit, "bytes_total",
             tensor_elements(tensor) * (int64_t)dtype_bytes(tensor->dtype));
    emit_int(emit, "captured_bytes", captured);
    emit_int(emit, "offset", offset);
    emit_base64(emit, "data", host, count);
    emit_send(emit);
}

/* The bytes of VALUE, or as many of them as one tensor may have. */
static int64_t value_bytes(const struct probe_value *value)
{
    int64_t bytes = value->elements * (int64_t)dtype_bytes(value->dtype);

    return bytes < PROBES_TENSOR_MAX ? bytes : PROBES_TENSOR_MAX;
}

static void list_send(struct run *run, struct capture capture, struct capture_list list,
                      int64_t room)
{
    for (capture.index = 0; capture.index < list.count; capture.index++) {
        const struct probe_value *value = &list.values[capture.index];
        struct tensor tensor = tensor_of(value);
        int64_t wanted = value_bytes(value);
        int64_t captured = wanted < room ? wanted : room;
        int64_t offset = 0;

        room -= captured;
        do {
            chunk_send(run, &capture, &tensor, offset, captured);
            offset += PROBES_CHUNK;
        } while (offset < captured);
    }
}

/* Writes what PLACE of STEP read and wrote, as events; no line is open.  What it read
 * gets the room that what it wrote leaves. */
static void capture_place(struct run *run, int64_t step, const char *place,
                          struct capture_list in, struct capture_list out)
{
    struct capture capture = { .step = step, .place = place, .role = "in" };
    int64_t kept = 0; /* for OUT, without which nobody sees what differs */

    for (int i = 0; i < out.count; i++) {
        kept += value_bytes(&out.values[i]);
    }
    kept = kept < PROBES_CAPTURED_MAX ? kept : PROBES_CAPTURED_MAX;
    list_send(run, capture, in, PROBES_CAPTURED_MAX - kept);
    capture.role = "out";
    list_send(run, capture, out, kept);
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

/* Whether run_probe would record PLACE of STEP, or capture it. */
static bool place_matters(const struct run *run, int64_t step, const char *place)
{
    return place_captured(run, step, place) ||
           (run->probes->records < PROBES_RECORDS_MAX && place_wanted(run, step, place));
}

void run_probe(struct run *run, int64_t step, const char *place,
               const struct probe_value *in, int in_count, const struct probe_value *out,
               int out_count)
{
    struct probes *probes = run->probes;
    bool captured;
    struct digest read;

    if (!probes) {
        return;
    }
    captured = place_captured(run, step, place);
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
    read = list_digest(run, in, in_count);
    record_add(run, step, place, read, list_digest(run, out, out_count));
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
    struct probe_value in[RUN_TENSORS_MAX] = { 0 };

    if (!run_probing(run, step)) {
        return;
    }
    for (int i = 0; i < run->input_count; i++) {
        in[i] = value_of(&run->inputs[i]);
    }
    for (int i = 0; i < run->output_count; i++) {
        struct probe_value out = value_of(&run->outputs[i]);
        char place[PROBES_PLACE_MAX + 1];

        snprintf(place, sizeof place, "output/%s", out.name);
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

static int values_take(const struct probe_value *values, const int *indices,
                       struct probe_value ret_values[PLACE_VALUES_MAX])
{
    int count = 0;

    for (; count < PLACE_VALUES_MAX && indices[count]; count++) {
        ret_values[count] = values[indices[count]];
    }
    return count;
}

static void mark(const int *indices, bool marks[PLACES_VALUES_MAX])
{
    for (int i = 0; i < PLACE_VALUES_MAX && indices[i]; i++) {
        marks[indices[i]] = true;
    }
}

void places_probe(struct run *run, int64_t step, const struct probe_value *values,
                  const struct place *places, int count)
{
    bool marks[PLACES_VALUES_MAX] = { false };
    struct probe_value needed[PLACES_VALUES_MAX];
    int needed_count = 0;

    for (int i = 0; i < count; i++) {
        if (place_matters(run, step, places[i].name)) {
            mark(places[i].in, marks);
            mark(places[i].out, marks);
        }
    }
    for (int i = 1; i < PLACES_VALUES_MAX; i++) {
        if (marks[i]) {
            needed[needed_count++] = values[i];
        }
    }
    if (needed_count > 0) {
        hash_all(run, needed, needed_count);
    }
    for (int i = 0; i < count; i++) {
        struct probe_value in[PLACE_VALUES_MAX], out[PLACE_VALUES_MAX];
        int in_count = values_take(values, places[i].in, in);
        int out_count = values_take(values, places[i].out, out);

        run_probe(run, step, places[i].name, in, in_count, out, out_count);
    }
}
