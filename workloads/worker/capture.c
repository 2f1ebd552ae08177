#include "workloads/worker/capture.h"

#include "workloads/worker/backend.h"

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

void capture_list(struct run *run, struct capture capture,
                  const struct probe_value *values, int count)
{
    struct probes *probes = run->probes;
    for (capture.index = 0; capture.index < count; capture.index++) {
        struct tensor tensor = probes_tensor(&values[capture.index]);
        int64_t captured = tensor_elements(&tensor) * (int64_t)dtype_bytes(tensor.dtype);
        int64_t offset = 0;
        int64_t room = PROBES_CAPTURED_MAX - probes->captured_bytes;
        room = room < PROBES_TENSOR_MAX ? room : PROBES_TENSOR_MAX;
        captured = captured < room ? captured : room;
        probes->captured_bytes += captured;
        do {
            chunk_send(run, &capture, &tensor, offset, captured);
            offset += PROBES_CHUNK;
        } while (offset < captured);
    }
}
