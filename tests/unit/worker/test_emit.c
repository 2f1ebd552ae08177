/* What emit writes is one line of JSON that reads back as what was said. */
#include "workloads/worker/emit.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

static struct emit emit;

/* What the last line was, of at most 64 KiB, read from a pipe big enough to hold it. */
static char read_back[2 * EMIT_LINE_MAX];
static int pipe_ends[2];

static int open_pipe(void **state)
{
    (void)state;
    assert_int_equal(pipe2(pipe_ends, O_CLOEXEC), 0);
    assert_true(fcntl(pipe_ends[1], F_SETPIPE_SZ, 2 * EMIT_LINE_MAX) >= EMIT_LINE_MAX);
    emit_init(&emit, pipe_ends[1]);
    return 0;
}

static int close_pipe(void **state)
{
    (void)state;
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    return 0;
}

static const char *finish(void)
{
    ssize_t length;

    assert_int_equal(emit_end(&emit), 0);
    length = read(pipe_ends[0], read_back, sizeof read_back - 1);
    assert_true(length > 0);
    read_back[length] = '\0';
    return read_back;
}

static void test_every_kind(void **state)
{
    (void)state;
    emit_begin(&emit);
    emit_string(&emit, "event", "iteration");
    emit_string(&emit, "none", NULL);
    emit_int(&emit, "low", INT64_MIN);
    emit_bool(&emit, "yes", true);
    emit_bits(&emit, "one", 1.0);
    emit_bits(&emit, "minus_zero", -0.0);
    emit_digest(&emit, "digest", (struct digest){ 1, 0xabcdef });
    emit_fixed(&emit, "ms", 12.3456789, 3);
    emit_fixed(&emit, "no_number", NAN, 3);
    emit_array(&emit, "list");
    emit_int(&emit, NULL, 1);
    emit_string(&emit, NULL, "[{");
    emit_object(&emit, NULL);
    emit_object_end(&emit);
    emit_object(&emit, NULL);
    emit_int(&emit, "a", 1);
    emit_object_end(&emit);
    emit_array_end(&emit);
    emit_null(&emit, "last");
    assert_string_equal(
        finish(),
        "{\"event\":\"iteration\",\"none\":null,\"low\":-9223372036854775808,"
        "\"yes\":true,\"one\":\"3ff0000000000000\",\"minus_zero\":\"8000000000000000\","
        "\"digest\":\"00000000000000010000000000abcdef\",\"ms\":12.346,"
        "\"no_number\":null,\"list\":[1,\"[{\",{},{\"a\":1}],\"last\":null}\n");
}

static void test_every_byte_is_escaped_or_legal(void **state)
{
    char text[128];
    const char *line;
    json_t *object;

    (void)state;
    for (int i = 1; i < 128; i++) {
        text[i - 1] = (char)i;
    }
    text[127] = '\0';
    emit_begin(&emit);
    emit_string(&emit, text, text);
    line = finish();
    assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
    object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(object);
    assert_string_equal(json_string_value(json_object_get(object, text)), text);
    json_decref(object);
}

static void expect_text(const char *bytes, const char *wanted)
{
    json_t *object;

    emit_begin(&emit);
    emit_string(&emit, "s", bytes);
    object = json_loads(finish(), JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(object);
    assert_string_equal(json_string_value(json_object_get(object, "s")), wanted);
    json_decref(object);
}

#define BAD "\xef\xbf\xbd" /* U+FFFD */

static void test_utf8(void **state)
{
    (void)state;
    expect_text("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "é € 😀");
    expect_text("\x80", BAD);
    expect_text(
        "a\xff"
        "b",
        "a" BAD "b");
    expect_text("\xc0\xaf", BAD BAD);                 /* overlong '/' */
    expect_text("\xe0\x80\xaf", BAD BAD BAD);         /* overlong, 3 bytes */
    expect_text("\xed\xa0\x80", BAD BAD BAD);         /* a surrogate */
    expect_text("\xf4\x90\x80\x80", BAD BAD BAD BAD); /* above U+10FFFF */
    expect_text("\xe2\x82", BAD BAD);                 /* cut off by the end */
    expect_text("\xf0\x9f\x98", BAD BAD BAD);
    expect_text("\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf");
}

static void test_doubles_read_back(void **state)
{
    static const double values[] = { 0.1, 1e300, 5e-324, -2.5, 1.0 / 3 };

    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        json_t *object;

        emit_begin(&emit);
        emit_double(&emit, "d", values[i]);
        object = json_loads(finish(), 0, NULL);
        assert_true(json_number_value(json_object_get(object, "d")) == values[i]);
        json_decref(object);
    }
    emit_begin(&emit);
    emit_double(&emit, "a", NAN);
    emit_double(&emit, "b", -INFINITY);
    assert_string_equal(finish(), "{\"a\":\"nan\",\"b\":\"-inf\"}\n");
}

/* Fills the line so that, closed and with its newline, it has LENGTH bytes. */
static int end_line_of(size_t length)
{
    static char text[EMIT_LINE_MAX + 1];
    size_t frame = strlen("{\"s\":\"\"}\n");
    memset(text, 'x', length - frame);
    text[length - frame] = '\0';
    emit_begin(&emit);
    emit_string(&emit, "s", text);
    return emit_end(&emit);
}

static void test_length_limit(void **state)
{
    (void)state;
    assert_int_equal(end_line_of(EMIT_LINE_MAX), 0);
    assert_int_equal(read(pipe_ends[0], read_back, sizeof read_back), EMIT_LINE_MAX);
    assert_int_equal(end_line_of(EMIT_LINE_MAX + 1), EMSGSIZE);
    emit_begin(&emit);
    emit_int(&emit, "after", 1);
    assert_string_equal(finish(), "{\"after\":1}\n");
}

static void test_reader_gone(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    close(pipe_ends[0]);
    emit_begin(&emit);
    assert_int_equal(emit_end(&emit), EPIPE);
    pipe_ends[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void test_closed_descriptor(void **state)
{
    (void)state;
    emit_init(&emit, -1);
    emit_begin(&emit);
    assert_int_equal(emit_end(&emit), EBADF);
}

static void *drain(void *state)
{
    size_t *total = state;
    ssize_t count;
    while ((count = read(pipe_ends[0], read_back, 1000)) > 0) {
        *total += (size_t)count;
    }
    return NULL;
}

/* A pipe that takes a little at a time and does not block: the line still gets through.
 */
static void test_short_writes(void **state)
{
    pthread_t reader;
    size_t total = 0;

    (void)state;
    assert_true(fcntl(pipe_ends[1], F_SETPIPE_SZ, 4096) >= 4096);
    assert_int_equal(fcntl(pipe_ends[1], F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(pthread_create(&reader, NULL, drain, &total), 0);
    assert_int_equal(end_line_of(60000), 0);
    close(pipe_ends[1]);
    pthread_join(reader, NULL);
    assert_int_equal(total, 60000);
    pipe_ends[1] = open("/dev/null", O_WRONLY | O_CLOEXEC);
}

#define PIPED(test) cmocka_unit_test_setup_teardown(test, open_pipe, close_pipe)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PIPED(test_every_kind),
        PIPED(test_every_byte_is_escaped_or_legal),
        PIPED(test_utf8),
        PIPED(test_doubles_read_back),
        PIPED(test_length_limit),
        PIPED(test_reader_gone),
        PIPED(test_closed_descriptor),
        PIPED(test_short_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
