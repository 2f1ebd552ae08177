#include "daemon/run/run_probe.h"

#include <string.h>

#include "daemon/jobs/case.h"
#include "daemon/process/members.h"
#include "daemon/trace/trace.h"

enum { RECORD_FIELDS = 3, DIGEST_DIGITS = DIGEST_TEXT_SIZE - 1 };

static enum err_code check_place(const char *place, struct err *err)
{
    size_t length = strlen(place);

    if (length < 1 || length > TRACE_PLACE_MAX) {
        return err_set(err, ERR_PROTOCOL, "a place of %zu bytes, not 1 to %d", length,
                       TRACE_PLACE_MAX);
    }
    return trace_place_valid(place)
               ? ERR_OK
               : err_set(err, ERR_PROTOCOL, "a place with control characters");
}

static enum err_code check_moment(json_int_t iteration, json_int_t step, struct err *err)
{
    if (iteration < 0 || iteration > INT32_MAX) {
        return err_set(err, ERR_PROTOCOL, "i is %lld, no iteration",
                       (long long)iteration);
    }
    return step < 0 ? err_set(err, ERR_PROTOCOL, "step is negative") : ERR_OK;
}

static enum err_code check_record(const struct probe_record *record, struct err *err)
{
    enum err_code rc;

    if ((rc = check_place(record->place, err)) ||
        (rc = member_check_hex("in", record->in, DIGEST_DIGITS, err)) ||
        (rc = member_check_hex("out", record->out, DIGEST_DIGITS, err))) {
        return rc;
    }
    return ERR_OK;
}

enum err_code probe_event_read(const json_t *event, struct probe_record *ret_record,
                               struct err *err)
{
    struct probe_record record = { 0 };
    json_int_t iteration = 0, step;
    enum err_code rc;

    if ((rc = members_unpack(event, err, "{s?I,s:I,s:s,s:s,s:s}", "i", &iteration, "step",
                             &step, "name", &record.place, "in", &record.in, "out",
                             &record.out)) ||
        (rc = check_moment(iteration, step, err)) || (rc = check_record(&record, err))) {
        return rc;
    }
    record.iteration = (int32_t)iteration;
    record.step = step;
    *ret_record = record;
    return ERR_OK;
}

static enum err_code read_triple(const json_t *triple, struct probe_record *record,
                                 struct err *err)
{
    record->place = json_string_value(json_array_get(triple, 0));
    record->in = json_string_value(json_array_get(triple, 1));
    record->out = json_string_value(json_array_get(triple, 2));
    if (json_array_size(triple) != RECORD_FIELDS || !record->place || !record->in ||
        !record->out) {
        return err_set(err, ERR_PROTOCOL, "not an array of place, in and out");
    }
    return check_record(record, err);
}

enum err_code probes_event_read(const json_t *event, probe_record_cb *on_record,
                                void *arg, struct err *err)
{
    struct probe_record record = { 0 };
    json_int_t iteration, step;
    json_t *records, *triple;
    enum err_code rc;
    size_t i;

    if ((rc = members_unpack(event, err, "{s:I,s:I,s:o}", "i", &iteration, "step", &step,
                             "records", &records)) ||
        (rc = check_moment(iteration, step, err))) {
        return rc;
    }
    if (!json_is_array(records)) {
        return err_set(err, ERR_PROTOCOL, "records is not an array");
    }
    record.iteration = (int32_t)iteration;
    record.step = step;
    json_array_foreach(records, i, triple)
    {
        if (read_triple(triple, &record, err) != ERR_OK) {
            return err_wrap(err, "records[%zu]", i);
        }
        on_record(arg, &record);
    }
    return ERR_OK;
}

static enum err_code check_shape(const json_t *shape, struct err *err)
{
    json_t *extent;
    size_t i;

    if (!json_is_array(shape)) {
        return err_set(err, ERR_PROTOCOL, "shape is not an array");
    }
    json_array_foreach(shape, i, extent)
    {
        if (!json_is_integer(extent) || json_integer_value(extent) < 0) {
            return err_set(err, ERR_PROTOCOL, "shape[%zu] is no extent", i);
        }
    }
    return ERR_OK;
}

static enum err_code check_piece(const struct tensor_event *t, struct err *err)
{
    if (t->index < 0 || t->offset < 0 || t->offset > t->captured_bytes ||
        t->captured_bytes > t->bytes_total) {
        return err_set(err, ERR_PROTOCOL,
                       "tensor %lld from %lld, %lld of %lld bytes: impossible",
                       (long long)t->index, (long long)t->offset,
                       (long long)t->captured_bytes, (long long)t->bytes_total);
    }
    if (strlen(t->data) > (TENSOR_CHUNK_MAX + 2) / 3 * 4) {
        return err_set(err, ERR_PROTOCOL, "data of more than %d bytes", TENSOR_CHUNK_MAX);
    }
    return ERR_OK;
}

static enum err_code read_role(const char *role, bool *ret_is_out, struct err *err)
{
    *ret_is_out = strcmp(role, "out") == 0;
    return *ret_is_out || strcmp(role, "in") == 0
               ? ERR_OK
               : err_set(err, ERR_PROTOCOL, "role is neither 'in' nor 'out'");
}

enum err_code tensor_event_read(const json_t *event, struct tensor_event *ret_tensor,
                                struct err *err)
{
    struct tensor_event t = { 0 };
    json_int_t iteration, step, index, total, captured, offset;
    const char *role;
    json_t *shape;
    enum err_code rc;

    if ((rc = members_unpack(
             event, err, "{s:I,s:I,s:s,s:s,s:I,s:s,s:s,s:o,s:I,s:I,s:I,s:s}", "i",
             &iteration, "step", &step, "place", &t.place, "role", &role, "index", &index,
             "name", &t.name, "dtype", &t.dtype, "shape", &shape, "bytes_total", &total,
             "captured_bytes", &captured, "offset", &offset, "data", &t.data)) ||
        (rc = check_moment(iteration, step, err)) || (rc = check_place(t.place, err)) ||
        (rc = read_role(role, &t.is_out, err)) || (rc = check_shape(shape, err))) {
        return rc;
    }
    t.iteration = (int32_t)iteration;
    t.step = step;
    t.index = index;
    t.shape = shape;
    t.bytes_total = total;
    t.captured_bytes = captured;
    t.offset = offset;
    *ret_tensor = t;
    return check_piece(&t, err);
}
