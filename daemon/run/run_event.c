#include "daemon/run/run_event.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/buf.h"
#include "daemon/base/json_in.h"
#include "daemon/evidence/facts.h"
#include "daemon/jobs/run.h"
#include "daemon/process/wire.h"
#include "daemon/trace/trace.h"

enum {
    DIGEST_DIGITS = DIGEST_TEXT_SIZE - 1,
    BITS_DIGITS = BITS_TEXT_SIZE - 1,
    ALGORITHM_MAX = CASE_TITLE_SIZE - 1,
    SEVERAL_MAX = 256, /* iterations in an event */
    RECORD_FIELDS = 3,
    DATA_MAX = (TENSOR_CHUNK_MAX + 2) / 3 * 4, /* of base64 */
    MS_MAX = 7 * 24 * 3600 * 1000              /* no run may last longer */
};

#define PLACE_WANTED "must have 1 to %d bytes and no control characters"

/* Environment. */

static void check_fact(struct in_reader *reader, const json_t *value)
{
    if (!json_is_string(value) && !json_is_integer(value)) {
        in_refuse(reader, NULL, "is neither a string nor an integer");
    }
}

static void check_environment(struct in_reader *reader, const json_t *environment)
{
    static const char *const required[] = { "backend", "model", "worker_build" };

    for (int i = 0; i < COUNT_OF(required); i++) {
        const char *text = in_text(environment, required[i]);

        if (!text || text[0] == '\0') {
            in_refuse(reader, NULL, "does not name its %s", required[i]);
        }
    }
}

/* It agrees with the other members of the event. */
static enum err_code compare_environment(const struct start_event *start, struct err *err)
{
    const json_t *threads = json_object_get(start->environment, "threads");

    if (strcmp(in_text(start->environment, "backend"), start->backend) != 0) {
        return err_set(err, ERR_PROTOCOL, "environment.backend is not backend");
    }
    if (threads && json_integer_value(threads) != start->threads) {
        return err_set(err, ERR_PROTOCOL, "environment.threads is not threads");
    }
    return ERR_OK;
}

char *run_environment_canonical(const json_t *environment)
{
    return json_dumps(environment, JSON_COMPACT | JSON_SORT_KEYS);
}

/* What is named in a title, where the environment has it, with the words around it.  Of
 * cuBLAS "13 build 0a1b2c3d", as of the worker: enough to tell two apart. */
static const struct {
    const char *key, *before, *after;
    int most; /* characters of it; 0: all */
} title_parts[] = {
    { "backend", "", "", 0 },
    { "model", "", "", 0 },
    { "threads", "", " threads", 0 },
    { "driver", "driver ", "", 0 },
    { "cuda_runtime", "CUDA ", "", 0 },
    { "cudnn", "cuDNN ", "", 0 },
    { "cublas", "cuBLAS ", "", 17 },
    { "nccl", "NCCL ", "", 0 },
    { "tensorflow", "TensorFlow ", "", 0 },
    { "torch", "PyTorch ", "", 0 },
    { "jax", "JAX ", "", 0 },
    { "onnxruntime", "ONNX Runtime ", "", 0 },
    { "numpy", "NumPy ", "", 0 },
    { "onednn", "oneDNN ", "", 0 },
    { "worker_build", "worker ", "", 8 },
};

char *run_environment_title(const json_t *environment)
{
    struct buf title = BUF_INIT;
    char *text;

    for (int i = 0; i < COUNT_OF(title_parts); i++) {
        const json_t *value = json_object_get(environment, title_parts[i].key);

        if (!value) {
            continue;
        }
        if (title.length) {
            buf_puts(&title, " \xc2\xb7 ");
        }
        buf_puts(&title, title_parts[i].before);
        if (json_is_integer(value)) {
            buf_printf(&title, "%lld", (long long)json_integer_value(value));
        } else {
            buf_printf(&title, "%.*s", title_parts[i].most ? title_parts[i].most : 120,
                       json_string_value(value));
        }
        buf_puts(&title, title_parts[i].after);
    }
    if (facts_have_changed_files(environment)) {
        buf_puts(&title, " \xc2\xb7 with changed files");
    }
    text = buf_detach(&title, NULL);
    wire_clean(text); /* a model may have been cut within a character */
    return text;
}

/* Telemetry. */

static void check_sample(struct in_reader *reader, const json_t *value)
{
    bool is_plain =
        json_is_string(value) || json_is_number(value) || json_is_boolean(value);
    bool is_list = json_is_array(value);
    size_t i;
    json_t *text;

    json_array_foreach(value, i, text)
    {
        is_list = is_list && json_is_string(text);
    }
    if (!is_plain && !is_list) {
        in_refuse(reader, NULL, "is no string, number, boolean or list of strings");
    }
}

static void check_telemetry(struct in_reader *reader, const json_t *telemetry)
{
    if (json_dumpb(telemetry, NULL, 0, JSON_COMPACT) > RUN_TELEMETRY_MAX) {
        in_refuse(reader, NULL, "is longer than %d bytes", RUN_TELEMETRY_MAX);
    }
}

char *run_telemetry_text(const json_t *telemetry)
{
    return telemetry ? json_dumps(telemetry, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
}

/* Values that several events have. */

/* A sum is NaN or infinite when any element is, and stays so whatever is added: then the
 * bits agree however the order went, and prove nothing. */
static void check_finite(struct in_reader *reader, const json_t *bits)
{
    static const uint64_t infinity = UINT64_C(0x7ff0000000000000);
    uint64_t value = strtoull(json_string_value(bits), NULL, 16) & ~(UINT64_C(1) << 63);

    if (value > infinity) {
        in_refuse(reader, NULL, "is NaN: equal NaNs prove nothing");
    } else if (value == infinity) {
        in_refuse(reader, NULL, "is infinite: equal infinities prove nothing");
    }
}

static void check_seed(struct in_reader *reader, const json_t *seed)
{
    const char *text = json_string_value(seed);

    errno = 0;
    (void)strtoull(text, NULL, 10);
    if (text[0] == '\0' || text[strspn(text, "0123456789")] != '\0' || errno) {
        in_refuse(reader, NULL, "is not a decimal number");
    }
}

static void check_place(struct in_reader *reader, const json_t *place)
{
    if (!trace_place_valid(json_string_value(place))) {
        in_refuse(reader, NULL, PLACE_WANTED, TRACE_PLACE_MAX);
    }
}

static const struct in_member path_members[] = {
    { .key = "path", .kind = IN_TEXT },
    { "build_id", IN_TEXT, .flags = IN_NULLABLE },
};
static const struct in_shape path_shape = IN_SHAPE(path_members, NULL);
static const struct in_member library = { NULL, IN_OBJECT, .shape = &path_shape };
static const struct in_member fact = { NULL, IN_JSON, .check = check_fact };
static const struct in_member sample = { NULL, IN_JSON, .check = check_sample };
/* A warning in other words would be none. */
static const char *const claims[] = { "deterministic", "non-deterministic", NULL };

/* Events. */

#define TELEMETRY                                                                        \
    "telemetry", IN_OBJECT, AT(telemetry), .flags = IN_OPTIONAL | IN_NULLABLE,           \
                                           .item = &sample, .check = check_telemetry
#define AT(field) IN_AT(struct start_event, field)
static const struct in_member start_members[] = {
    { "pid", IN_INT, AT(pid) },
    { "workload", IN_TEXT, AT(workload) },
    { "version", IN_INT, AT(version) },
    { "variant", IN_TEXT, AT(variant) },
    { "size", IN_TEXT, AT(size) },
    { "dtype", IN_TEXT, AT(dtype) },
    { "seed", IN_TEXT, .check = check_seed },
    { "iterations", IN_INT, AT(iterations) },
    { "threads", IN_INT, AT(threads) },
    { "backend", IN_TEXT, AT(backend) },
    { "device", IN_TEXT, AT(device) },
    { "algorithm", IN_TEXT, AT(algorithm), .most = ALGORITHM_MAX },
    { "claim", IN_TEXT, AT(claim), .flags = IN_NULLABLE, .names = claims },
    { "input_digest", IN_HEX, AT(input_digest), .most = DIGEST_DIGITS },
    { "environment", IN_OBJECT, AT(environment), .item = &fact,
      .check = check_environment },
    { "libraries", IN_ARRAY, AT(libraries), .item = &library },
    { "circumstances", IN_JSON, AT(circumstances), .flags = IN_OPTIONAL },
    { TELEMETRY },
};
static const struct in_shape start_shape = IN_SHAPE(start_members, NULL);
static const struct in_member version_members[] = { { "v", IN_INT, AT(protocol) } };
static const struct in_shape version_shape = IN_SHAPE(version_members, NULL);
#undef AT

enum err_code start_event_read(const json_t *event, struct start_event *ret_start,
                               struct err *err)
{
    struct start_event s = { 0 };

    /* The version first: what another version says need not have these fields. */
    if (in_read_wire(&version_shape, event, &s, err) != ERR_OK) {
        return err->code;
    }
    if (s.protocol != 1) {
        return err_set(err, ERR_PROTOCOL, "protocol version %lld is not 1",
                       (long long)s.protocol);
    }
    if (in_read_wire(&start_shape, event, &s, err) != ERR_OK) {
        return err->code;
    }
    s.seed = strtoull(in_text(event, "seed"), NULL, 10);
    *ret_start = s;
    return compare_environment(&s, err);
}

struct iteration_values {
    struct iteration_event event;
    double ms;
    const json_t *all_ms; /* of several */
};

#define AT(field)  IN_AT(struct iteration_values, field)
#define BITS(name) #name, IN_HEX, AT(event.name), .most = BITS_DIGITS
#define ALGORITHM  "algorithm", IN_TEXT, AT(event.algorithm), .most = ALGORITHM_MAX
static const struct in_member iteration_members[] = {
    { "i", IN_INT, AT(event.index) },
    { "digest", IN_HEX, AT(event.digest), .most = DIGEST_DIGITS },
    { BITS(weight_sum), .check = check_finite },
    { BITS(loss), .flags = IN_NULLABLE, .check = check_finite },
    { "ms", IN_REAL, AT(ms), .most = MS_MAX },
    { ALGORITHM },
};
static const struct in_shape iteration_shape = IN_SHAPE(iteration_members, NULL);
static const struct in_member one_ms = { NULL, IN_REAL, .most = MS_MAX };
static const struct in_member iterations_members[] = {
    { "i", IN_INT, AT(event.index), .most = INT32_MAX },
    { "digest", IN_HEX, AT(event.digest), .most = DIGEST_DIGITS },
    { BITS(weight_sum), .check = check_finite },
    { BITS(loss), .flags = IN_NULLABLE, .check = check_finite },
    { "ms", IN_ARRAY, AT(all_ms), .least = 1, .most = SEVERAL_MAX, .item = &one_ms },
    { ALGORITHM },
};
static const struct in_shape iterations_shape = IN_SHAPE(iterations_members, NULL);
#undef AT

enum err_code iteration_event_read(const json_t *event, bool several,
                                   iteration_cb *on_iteration, void *arg, struct err *err)
{
    const struct in_shape *shape = several ? &iterations_shape : &iteration_shape;
    struct iteration_values values = { .ms = 0 };

    if (in_read_wire(shape, event, &values, err) != ERR_OK) {
        return err->code;
    }
    for (size_t i = 0; i < (several ? json_array_size(values.all_ms) : 1); i++) {
        struct iteration_event iteration = values.event;
        double ms =
            several ? json_number_value(json_array_get(values.all_ms, i)) : values.ms;

        iteration.index += (int64_t)i;
        iteration.ns = llround(ms * 1e6);
        on_iteration(arg, &iteration);
    }
    return ERR_OK;
}

#define AT(field)     IN_AT(struct probe_record, field)
#define DIGEST(field) #field, IN_HEX, AT(field), .most = DIGEST_DIGITS
#define STEP          "step", IN_INT, AT(step), .most = INT64_MAX
#define ITERATION     "i", IN_INT, AT(iteration), .most = INT32_MAX
#define PLACE         IN_TEXT, AT(place), .check = check_place
static const struct in_member probe_members[] = {
    { ITERATION, .flags = IN_OPTIONAL },
    { STEP },
    { "name", PLACE },
    { DIGEST(in) },
    { DIGEST(out) },
};
static const struct in_shape probe_shape = IN_SHAPE(probe_members, NULL);
static const struct in_member probes_members[] = {
    { ITERATION },
    { STEP },
    { .key = "records", .kind = IN_ARRAY },
};
static const struct in_shape probes_shape = IN_SHAPE(probes_members, NULL);
#undef AT

enum err_code probe_event_read(const json_t *event, struct probe_record *ret_record,
                               struct err *err)
{
    *ret_record = (struct probe_record){ 0 };
    return in_read_wire(&probe_shape, event, ret_record, err);
}

/* There may be hundreds in an event: they are read by hand. */
static enum err_code read_triple(const json_t *triple, struct probe_record *record,
                                 struct err *err)
{
    record->place = json_string_value(json_array_get(triple, 0));
    record->in = json_string_value(json_array_get(triple, 1));
    record->out = json_string_value(json_array_get(triple, 2));
    if (json_array_size(triple) != RECORD_FIELDS || !record->place || !record->in ||
        !record->out) {
        return err_set(err, ERR_PROTOCOL, "must be an array of place, in and out");
    }
    if (!trace_place_valid(record->place)) {
        return err_set(err, ERR_PROTOCOL, "place " PLACE_WANTED, TRACE_PLACE_MAX);
    }
    if (!in_is_hex(record->in, DIGEST_DIGITS) || !in_is_hex(record->out, DIGEST_DIGITS)) {
        return err_set(err, ERR_PROTOCOL, "%s must be %d hex digits in lower case",
                       in_is_hex(record->in, DIGEST_DIGITS) ? "out" : "in",
                       DIGEST_DIGITS);
    }
    return ERR_OK;
}

enum err_code probes_event_read(const json_t *event, probe_record_cb *on_record,
                                void *arg, struct err *err)
{
    struct probe_record record = { 0 };
    json_t *triple;
    size_t i;

    if (in_read_wire(&probes_shape, event, &record, err) != ERR_OK) {
        return err->code;
    }
    json_array_foreach(json_object_get(event, "records"), i, triple)
    {
        if (read_triple(triple, &record, err) != ERR_OK) {
            return err_wrap(err, "records/%zu", i);
        }
        on_record(arg, &record);
    }
    return ERR_OK;
}

#define AT(field)   IN_AT(struct tensor_event, field)
#define SIZE(field) #field, IN_INT, AT(field), .most = INT64_MAX
static const char *const roles[] = { "in", "out", NULL };
static const struct in_member extent = { NULL, IN_INT, .most = INT64_MAX };
static const struct in_member tensor_members[] = {
    { ITERATION },
    { STEP },
    { "place", PLACE },
    { "role", IN_TEXT, .names = roles },
    { SIZE(index) },
    { "name", IN_TEXT, AT(name) },
    { "dtype", IN_TEXT, AT(dtype) },
    { "shape", IN_ARRAY, AT(shape), .item = &extent },
    { SIZE(bytes_total) },
    { SIZE(captured_bytes) },
    { SIZE(offset) },
    { "data", IN_TEXT, AT(data), .most = DATA_MAX },
};
static const struct in_shape tensor_shape = IN_SHAPE(tensor_members, NULL);
#undef AT

enum err_code tensor_event_read(const json_t *event, struct tensor_event *ret_tensor,
                                struct err *err)
{
    struct tensor_event t = { 0 };

    if (in_read_wire(&tensor_shape, event, &t, err) != ERR_OK) {
        return err->code;
    }
    if (t.offset > t.captured_bytes || t.captured_bytes > t.bytes_total) {
        return err_set(err, ERR_PROTOCOL,
                       "tensor %lld from %lld, %lld of %lld bytes: impossible",
                       (long long)t.index, (long long)t.offset,
                       (long long)t.captured_bytes, (long long)t.bytes_total);
    }
    t.is_out = strcmp(in_text(event, "role"), "out") == 0;
    *ret_tensor = t;
    return ERR_OK;
}

static double real(const json_t *event, const char *key)
{
    const json_t *value = json_object_get(event, key);

    return json_is_string(value) ? strtod(json_string_value(value), NULL)
                                 : json_number_value(value);
}

/* JSON has no number for these. */
static void check_real(struct in_reader *reader, const json_t *value)
{
    static const char *const names[] = { "nan", "inf", "-inf" };
    const char *text = json_string_value(value);
    bool known = json_is_number(value);

    for (int i = 0; text && i < COUNT_OF(names); i++) {
        known |= strcmp(text, names[i]) == 0;
    }
    if (!known) {
        in_refuse(reader, NULL, "is neither a number nor \"nan\", \"inf\" or \"-inf\"");
    }
}

#define AT(field)   IN_AT(struct check_event, field)
#define REAL(field) #field, IN_JSON, .check = check_real
static const char *const check_results[] = { "passed", "failed", "given_up", "known",
                                             NULL };
static const struct in_member check_members[] = {
    { "result", IN_TEXT, AT(result), .names = check_results },
};
static const struct in_member given_up_members[] = {
    { "cause", IN_TEXT, AT(cause), .most = CASE_TITLE_SIZE - 1 },
};
static const struct in_member compared_members[] = {
    { "i", IN_INT, AT(iteration) },
    { "digest", IN_HEX, AT(digest), .most = DIGEST_DIGITS },
    { "weight_sum", IN_HEX, AT(weight_sum), .most = BITS_DIGITS },
    { "output", IN_TEXT, AT(output) },
    { "index", IN_INT, AT(index), .most = INT64_MAX },
    { REAL(got) },
    { REAL(expected) },
    { REAL(bound) },
    { REAL(share) },
};
#undef AT
static const struct in_shape check_shape = IN_SHAPE(check_members, NULL);
static const struct in_shape given_up_shape = IN_SHAPE(given_up_members, NULL);
static const struct in_shape compared_shape = IN_SHAPE(compared_members, NULL);

/* The worker's own rule: a NaN and an infinity are out of every bound. */
static bool is_within(const struct check_event *c)
{
    return isfinite(c->bound) && c->bound >= 0 && isfinite(c->got) &&
           fabs(c->got - c->expected) <= c->bound;
}

enum err_code check_event_read(const json_t *event, struct check_event *ret_check,
                               struct err *err)
{
    struct check_event c = { 0 };
    bool compared;
    bool passed;

    if (in_read_wire(&check_shape, event, &c, err) != ERR_OK) {
        return err->code;
    }
    passed = strcmp(c.result, "passed") == 0;
    compared = passed || strcmp(c.result, "failed") == 0;
    if (strcmp(c.result, "given_up") == 0 &&
        in_read_wire(&given_up_shape, event, &c, err) != ERR_OK) {
        return err->code;
    }
    if (compared && in_read_wire(&compared_shape, event, &c, err) != ERR_OK) {
        return err->code;
    }
    c.got = real(event, "got");
    c.expected = real(event, "expected");
    c.bound = real(event, "bound");
    c.share = real(event, "share");
    if (compared && (c.share >= 0 && c.share <= 1) != passed) {
        return err_set(err, ERR_PROTOCOL, "%s with %g of the bound", c.result, c.share);
    }
    if (compared && is_within(&c) != passed) {
        return err_set(err, ERR_PROTOCOL, "%s with %g, the reference %g and the bound %g",
                       c.result, c.got, c.expected, c.bound);
    }
    *ret_check = c;
    return ERR_OK;
}

#define AT(field) IN_AT(struct end_event, field)
static const struct in_member end_members[] = {
    { "outcome", IN_TEXT, AT(outcome) },
    { "cause", IN_TEXT, AT(cause), .flags = IN_NULLABLE },
    { "iterations", IN_INT, AT(iterations) },
    { "elements", IN_INT, AT(elements) },
    { "bytes_hashed", IN_INT, AT(bytes_hashed) },
    { "device", IN_TEXT, AT(device) },
    { "input_digest", IN_HEX, AT(input_digest), .most = DIGEST_DIGITS },
    { "probes_dropped", IN_INT, AT(probes_dropped), .flags = IN_OPTIONAL,
      .most = INT64_C(1) << 53 },
    { "libraries", IN_ARRAY, AT(libraries), .flags = IN_OPTIONAL, .item = &library },
    { TELEMETRY },
};
static const struct in_shape end_shape = IN_SHAPE(end_members, NULL);
#undef AT

enum err_code end_event_read(const json_t *event, struct end_event *ret_end,
                             struct err *err)
{
    *ret_end = (struct end_event){ 0 };
    return in_read_wire(&end_shape, event, ret_end, err);
}
