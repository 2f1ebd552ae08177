/* Probes record what was asked for, once each, as lines that say what happened; and what
 * they cost is no part of the time of the computation. */
#include "workloads/worker/probes.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "workloads/shared/probing.h"
#include "workloads/worker/backend.h"
#include "workloads/worker/run.h"

enum { N = 1000, LARGE = PROBES_TENSOR_MAX / 4 + 1 };

static float x[N], y[N];
static float large[LARGE];
static struct backend counting;
static int hashed;
static FILE *events;
static struct probes probes;
static struct run run;

static struct digest counting_digest(struct run *r, const struct tensor *tensor)
{
    hashed++;
    return backend_linked(stderr)->digest(r, tensor);
}

static double one_ms(struct run *r)
{
    (void)r;
    return 1;
}

static int begin(void **state)
{
    (void)state;
    counting = *backend_linked(stderr);
    counting.digest = counting_digest;
    counting.timer_stop = one_ms;
    hashed = 0;
    events = tmpfile();
    run = (struct run){ .threads = 1, .backend = &counting, .probes = &probes };
    for (int i = 0; i < N; i++) {
        x[i] = (float)i;
        y[i] = (float)-i;
    }
    return events ? 0 : -1;
}

static int finish(void **state)
{
    (void)state;
    fclose(events);
    return 0;
}

static void ask(struct probes_request request)
{
    if (request.last_step == 0) {
        request.last_step = INT64_MAX;
    }
    probes_init(&probes, &request, fileno(events));
}

/* Everything that was written, as an array of objects; caller frees. */
static json_t *written(void)
{
    static char line[EMIT_LINE_MAX + 1];
    json_t *lines = json_array();
    probes_flush(&probes);
    rewind(events);
    while (fgets(line, sizeof line, events)) {
        json_t *event = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(event);
        json_array_append_new(lines, event);
    }
    return lines;
}

static const char *field(const json_t *lines, size_t line, size_t record, size_t part)
{
    json_t *records = json_object_get(json_array_get(lines, line), "records");
    return json_string_value(json_array_get(json_array_get(records, record), part));
}

static json_int_t number(const json_t *lines, size_t line, const char *key)
{
    json_t *value = json_object_get(json_array_get(lines, line), key);
    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

static size_t record_count(const json_t *lines)
{
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(lines); i++) {
        count += json_array_size(json_object_get(json_array_get(lines, i), "records"));
    }
    return count;
}

static void assert_digest(const char *hex, struct digest digest)
{
    char wanted[DIGEST_HEX_SIZE];
    digest_hex(digest, wanted);
    assert_string_equal(hex, wanted);
}

static struct digest digest_of(const float *data)
{
    int64_t shape[] = { N };
    return digest_tensor(data, DTYPE_FLOAT32, sizeof(float), 1, shape, 1);
}

static const struct probe_value value_x = { DTYPE_FLOAT32, N, x, "x" };
static const struct probe_value value_y = { DTYPE_FLOAT32, N, y, NULL };

static void step_record(int64_t step)
{
    if (run_probing(&run, step)) {
        run_probe(&run, step, "data/batch", NULL, 0, &value_x, 1);
        run_probe(&run, step, "conv/forward", &value_x, 1, &value_y, 1);
    }
}

static void test_nothing_is_wanted(void **state)
{
    (void)state;
    run.probes = NULL;
    assert_false(run_probing(&run, 0));
    run_probe(&run, 0, "a", NULL, 0, &value_x, 1);
    assert_int_equal(hashed, 0);
    assert_false(probes_wanted(&(struct probes_request){ .every = 0 }));
    assert_true(probes_wanted(&(struct probes_request){ .every = 1 }));
    assert_true(probes_wanted(&(struct probes_request){ .capture = true }));
}

static void test_records_of_a_step_are_a_line(void **state)
{
    json_t *lines;
    const struct probe_value both[] = { value_x, value_y };
    struct digest parts[] = { digest_of(x), digest_of(y) };

    (void)state;
    ask((struct probes_request){ .every = 1 });
    run.iteration = 3;
    step_record(0);
    run_probe(&run, 0, "both", both, 2, NULL, 0);
    step_record(1);
    lines = written();
    assert_int_equal(json_array_size(lines), 2);
    assert_int_equal(number(lines, 0, "i"), 3);
    assert_int_equal(number(lines, 0, "step"), 0);
    assert_int_equal(number(lines, 1, "step"), 1);
    assert_int_equal(record_count(lines), 5);
    assert_string_equal(field(lines, 0, 0, 0), "data/batch");
    assert_string_equal(field(lines, 0, 0, 1), "00000000000000000000000000000000");
    assert_digest(field(lines, 0, 0, 2), digest_of(x));
    assert_string_equal(field(lines, 0, 1, 0), "conv/forward");
    assert_digest(field(lines, 0, 1, 1), digest_of(x));
    assert_digest(field(lines, 0, 1, 2), digest_of(y));
    assert_digest(field(lines, 0, 2, 1), digest_combine(parts, 2));
    assert_string_equal(field(lines, 0, 2, 2), "00000000000000000000000000000000");
    json_decref(lines);
}

static void test_a_buffer_is_hashed_once_in_a_stretch(void **state)
{
    json_t *lines;

    (void)state;
    ask((struct probes_request){ .every = 1 });
    step_record(0);
    assert_int_equal(hashed, 2);
    x[7] = 8;
    step_record(1);
    assert_int_equal(hashed, 4);
    lines = written();
    assert_string_not_equal(field(lines, 0, 0, 2), field(lines, 1, 0, 2));
    assert_digest(field(lines, 1, 0, 2), digest_of(x));
    json_decref(lines);
}

static int hashed_at_once;

static void counting_digests(struct run *r, const struct tensor *tensors, int count,
                             struct digest *ret_digests)
{
    hashed_at_once += count;
    backend_linked(stderr)->digests(r, tensors, count, ret_digests);
}

static void table_record(int64_t step)
{
    enum { X = 1, Y };
    const struct probe_value values[] = { [X] = value_x, [Y] = value_y };
    static const struct place places[] = {
        { "data/batch", { 0 }, { X } },
        { "conv/forward", { X }, { Y } },
    };
    if (run_probing(&run, step)) {
        places_probe(&run, step, values, places, 2);
    }
}

static void test_tables(void **state)
{
    json_t *lines;

    (void)state;
    hashed_at_once = 0;
    ask((struct probes_request){ .every = 1, .names = "data/*" });
    counting.digests = counting_digests;
    table_record(0);
    assert_int_equal(hashed_at_once, 1); /* y is not needed */
    probes.request.names = NULL;
    table_record(1);
    assert_int_equal(hashed_at_once, 3);
    assert_int_equal(hashed, 0);
    counting.digests = NULL;
    table_record(1);
    assert_int_equal(hashed, 2);
    lines = written();
    assert_int_equal(json_array_size(lines), 2);
    assert_int_equal(record_count(lines), 5);
    assert_digest(field(lines, 0, 0, 2), digest_of(x));
    for (size_t i = 0; i < 4; i += 2) {
        assert_string_equal(field(lines, 1, i, 0), "data/batch");
        assert_digest(field(lines, 1, i, 2), digest_of(x));
        assert_digest(field(lines, 1, i + 1, 1), digest_of(x));
        assert_digest(field(lines, 1, i + 1, 2), digest_of(y));
    }
    json_decref(lines);
}

static void test_density_names_and_steps(void **state)
{
    json_t *lines;

    (void)state;
    ask((struct probes_request){
        .every = 3, .first_step = 4, .last_step = 11, .names = "conv*" });
    for (int64_t step = 0; step < 20; step++) {
        assert_int_equal(run_probing(&run, step), step == 6 || step == 9);
        step_record(step);
    }
    /* What is not asked for is not hashed either. */
    assert_int_equal(hashed, 4);
    lines = written();
    assert_int_equal(record_count(lines), 2);
    assert_int_equal(number(lines, 0, "step"), 6);
    assert_string_equal(field(lines, 0, 0, 0), "conv/forward");
    json_decref(lines);
}

static void test_time_stands_still(void **state)
{
    (void)state;
    ask((struct probes_request){ .every = 1 });
    step_record(0);
    /* One millisecond before each record, and three after the last. */
    assert_true(probes_iteration_end(&run, 3) == 5);
    assert_true(probes_iteration_end(&run, 3) == 3);
}

static struct tensor tensor_of(const char *name, void *data)
{
    return (struct tensor){
        .name = name, .dtype = DTYPE_FLOAT32, .rank = 1, .shape = { N }, .data = data
    };
}

static void test_outputs_are_the_last_places(void **state)
{
    json_t *lines;

    (void)state;
    ask((struct probes_request){ .every = 1 });
    run.inputs[run.input_count++] = tensor_of("x", x);
    run.outputs[run.output_count++] = tensor_of("y", y);
    for (run.iteration = 0; run.iteration < 2; run.iteration++) {
        step_record(0);
        step_record(1);
        probes_iteration_end(&run, 0);
    }
    lines = written();
    assert_int_equal(json_array_size(lines), 4);
    assert_int_equal(number(lines, 1, "step"), 1);
    assert_string_equal(field(lines, 1, 2, 0), "output/y");
    assert_digest(field(lines, 1, 2, 1), digest_of(x));
    assert_digest(field(lines, 1, 2, 2), digest_of(y));
    /* x is an input: it was hashed once, y in each of three stretches. */
    assert_int_equal(hashed, 1 + 2 * 3);
    json_decref(lines);
}

static void test_long_steps_have_several_lines(void **state)
{
    char place[PROBES_PLACE_MAX + 1];
    json_t *lines;

    (void)state;
    memset(place, '"', PROBES_PLACE_MAX);
    place[PROBES_PLACE_MAX] = '\0';
    ask((struct probes_request){ .every = 1 });
    for (int i = 0; i < 1000; i++) {
        run_probe(&run, 0, place, NULL, 0, &value_x, 1);
    }
    lines = written();
    assert_true(json_array_size(lines) > 1);
    assert_int_equal(record_count(lines), 1000);
    json_decref(lines);
}

static void test_records_are_bounded(void **state)
{
    json_t *lines;

    (void)state;
    ask((struct probes_request){ .every = 1 });
    probes.records = PROBES_RECORDS_MAX - 1;
    step_record(0);
    step_record(1);
    assert_int_equal(probes.dropped, 3);
    lines = written();
    assert_int_equal(record_count(lines), 1);
    json_decref(lines);
}

static size_t base64_decode(const char *text, unsigned char *ret_bytes)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t count = 0, length = strlen(text);
    assert_int_equal(length % 4, 0);
    for (size_t i = 0; i < length; i += 4) {
        unsigned group = 0;
        size_t bytes = 3;
        for (size_t k = 0; k < 4; k++) {
            const char *digit = strchr(digits, text[i + k]);
            bytes -= text[i + k] == '=';
            group = group << 6 | (digit ? (unsigned)(digit - digits) : 0);
        }
        for (size_t k = 0; k < bytes; k++) {
            ret_bytes[count++] = (unsigned char)(group >> (16 - 8 * k));
        }
    }
    return count;
}

static size_t decoded(const json_t *event, unsigned char *ret_bytes)
{
    return base64_decode(json_string_value(json_object_get(event, "data")), ret_bytes);
}

static void test_capture(void **state)
{
    static unsigned char bytes[PROBES_CHUNK + 3];
    json_t *lines;

    (void)state;
    ask((struct probes_request){ .capture = true,
                                 .capture_iteration = 1,
                                 .capture_step = 2,
                                 .capture_place = "conv/forward" });
    for (run.iteration = 0; run.iteration < 3; run.iteration++) {
        for (int64_t step = 0; step < 4; step++) {
            step_record(step);
            step_record(step); /* it is captured once */
        }
    }
    lines = written();
    assert_int_equal(json_array_size(lines), 3);
    assert_int_equal(record_count(lines), 1);
    for (size_t i = 1; i < 3; i++) {
        const json_t *event = json_array_get(lines, i);
        const char *role = json_string_value(json_object_get(event, "role"));
        assert_string_equal(role, i == 1 ? "in" : "out");
        assert_int_equal(number(lines, i, "i"), 1);
        assert_int_equal(number(lines, i, "step"), 2);
        assert_int_equal(number(lines, i, "bytes_total"), sizeof x);
        assert_int_equal(number(lines, i, "captured_bytes"), sizeof x);
        assert_int_equal(decoded(event, bytes), sizeof x);
        assert_memory_equal(bytes, i == 1 ? x : y, sizeof x);
    }
    json_decref(lines);
}

static void test_capture_is_bounded(void **state)
{
    static unsigned char bytes[PROBES_CHUNK + 3];
    struct probe_value values[6];
    json_t *lines;
    int64_t total, of_first, of_out;

    (void)state;
    for (int i = 0; i < 6; i++) {
        values[i] = (struct probe_value){ DTYPE_FLOAT32, LARGE, large, NULL };
    }
    large[0] = 1;
    ask((struct probes_request){ .capture = true, .capture_place = "p" });
    run_probe(&run, 0, "p", values, 6, values, 1);
    lines = written();
    total = 0;
    of_first = 0;
    of_out = 0;
    for (size_t i = 1; i < json_array_size(lines); i++) {
        const json_t *event = json_array_get(lines, i);
        const char *role = json_string_value(json_object_get(event, "role"));
        size_t count = decoded(event, bytes);
        total += (int64_t)count;
        assert_int_equal(number(lines, i, "bytes_total"), sizeof large);
        if (strcmp(role, "out") == 0) {
            of_out += (int64_t)count;
        } else if (number(lines, i, "index") == 0) {
            assert_int_equal(number(lines, i, "offset"), of_first);
            of_first += (int64_t)count;
        } else if (number(lines, i, "index") >= 3) {
            assert_int_equal(number(lines, i, "captured_bytes"), 0);
        }
    }
    assert_int_equal(of_first, PROBES_TENSOR_MAX);
    assert_int_equal(of_out, PROBES_TENSOR_MAX); /* what it read left it its room */
    assert_int_equal(total, PROBES_CAPTURED_MAX);
    json_decref(lines);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, finish)
    const struct CMUnitTest tests[] = {
        TEST(test_nothing_is_wanted),
        TEST(test_records_of_a_step_are_a_line),
        TEST(test_a_buffer_is_hashed_once_in_a_stretch),
        TEST(test_tables),
        TEST(test_density_names_and_steps),
        TEST(test_time_stands_still),
        TEST(test_outputs_are_the_last_places),
        TEST(test_long_steps_have_several_lines),
        TEST(test_records_are_bounded),
        TEST(test_capture),
        TEST(test_capture_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
