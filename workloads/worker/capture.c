#include "workloads/worker/capture.h"

#include "workloads/worker/backend.h"

/* Where a tensor belongs. */
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
        struct tensor tensor = probes_tensor(value);
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

void capture_place(struct run *run, int64_t step, const char *place,
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
