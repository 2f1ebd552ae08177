/* Webhooks as they are given, and what they are sent. */
#include "daemon/webhooks/webhook.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/array.h"
#include "daemon/base/mem.h"

#define SECRET "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

static void take_fault(void *arg, const struct in_fault *fault)
{
    snprintf(arg, 200, "%s: %s", fault->pointer, fault->reason);
}

static bool read_text(const char *text, struct webhook *w, char said[200])
{
    json_t *json = json_loads(text, 0, NULL);
    bool good;

    assert_non_null(json);
    said[0] = '\0';
    good = webhook_read(json, w, take_fault, said);
    json_decref(json);
    return good;
}

static void test_what_is_given(void **state)
{
    static const struct {
        const char *text, *says;
    } wrong[] = {
        { "{\"url\":\"http://a/\"}", "/name: is missing" },
        { "{\"name\":\"a\",\"url\":\"a\"}", "/url: must begin with http" },
        { "{\"name\":\"a\",\"url\":\"http://a/\",\"types\":[]}", "/types" },
        { "{\"name\":\"a\",\"url\":\"http://a/\",\"types\":[\"job.done\"]}",
          "/types/0: there is no type 'job.done'" },
        { "{\"name\":\"a\",\"url\":\"http://a/\",\"secret\":\"x\"}", "/secret: must be" },
        { "{\"name\":\"a\",\"url\":\"http://a/\",\"secret_file\":\"x\"}",
          "/secret_file" },
        { "{\"name\":\"a\",\"url\":\"http://a/\",\"timeout_ms\":99}", "/timeout_ms" },
    };
    char said[200];
    struct webhook w;

    (void)state;
    for (int i = 0; i < COUNT_OF(wrong); i++) {
        if (read_text(wrong[i].text, &w, said) || !strstr(said, wrong[i].says)) {
            fail_msg("%s: %s", wrong[i].text, said);
        }
    }
    assert_true(read_text("{\"name\":\"a\",\"url\":\"https://a/\"}", &w, said));
    assert_int_equal(w.types, webhook_types_usual());
    assert_int_equal(w.retry_ms, WEBHOOK_RETRY_MS);
    assert_int_equal(w.timeout_ms, WEBHOOK_TIMEOUT_MS);
    assert_string_equal(w.secret, "");
    assert_true(
        read_text("{\"name\":\"a\",\"url\":\"http://a/\",\"types\":[\"job.finished\","
                  "\"dev.reprod.cell.changed\"],\"secret\":\"" SECRET "\"}",
                  &w, said));
    assert_int_equal(w.types, 1U << WEBHOOK_JOB_FINISHED | 1U << WEBHOOK_CELL_CHANGED |
                                  1U << WEBHOOK_TEST);
    assert_string_equal(w.secret, SECRET);
    assert_false(w.configured);
}

static enum err_code read_configured(const char *format, const char *file,
                                     struct webhook *w, struct err *err)
{
    char *text = xasprintf("{\"name\":\"a\",\"url\":\"http://a/\"%s%s%s}", format, file,
                           file[0] ? "\"" : "");
    json_t *json = json_loads(text, 0, NULL);
    enum err_code code;

    assert_non_null(json);
    code = webhook_read_configured(json, "c.json: /webhooks/0", w, err);
    json_decref(json);
    free(text);
    return code;
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void test_those_of_the_configuration(void **state)
{
    char path[] = "/tmp/reprod-secret-XXXXXX";
    struct webhook w;
    struct err err;
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    write_file(path, SECRET "\r\nanother line");
    assert_int_equal(read_configured(",\"secret_file\":\"", path, &w, &err), ERR_OK);
    assert_string_equal(w.secret, SECRET);
    assert_true(w.configured);
    write_file(path, "");
    assert_int_equal(read_configured(",\"secret_file\":\"", path, &w, &err), ERR_INVALID);
    write_file(path, "whsec_short\n");
    assert_int_equal(read_configured(",\"secret_file\":\"", path, &w, &err), ERR_INVALID);
    assert_null(strstr(err.message, "whsec_short"));
    remove(path);
    assert_int_equal(read_configured(",\"secret_file\":\"", path, &w, &err), ERR_IO);
    assert_int_equal(read_configured("", "", &w, &err), ERR_INVALID);
    assert_non_null(strstr(err.message, "c.json: /webhooks/0: must have either"));
    assert_int_equal(
        read_configured(",\"secret\":\"" SECRET "\",\"secret_file\":\"", path, &w, &err),
        ERR_INVALID);
    assert_int_equal(read_configured(",\"secret\":\"" SECRET "\"", "", &w, &err), ERR_OK);
    assert_int_equal(read_configured(",\"sercet\":1", "", &w, &err), ERR_INVALID);
}

static void test_types(void **state)
{
    char text[WEBHOOK_TYPES_SIZE], hint[NEAREST_HINT_SIZE];

    (void)state;
    for (int i = 0; i < WEBHOOK_TYPES; i++) {
        assert_int_equal(
            webhook_type_parse(webhook_type_name((enum webhook_type)i), hint), i);
        assert_string_equal(hint, "");
    }
    webhook_types_text((1U << WEBHOOK_TYPES) - 1, text);
    assert_int_equal(webhook_types_parse(text), (1U << WEBHOOK_TYPES) - 1);
    webhook_types_text(0, text);
    assert_string_equal(text, "");
    assert_int_equal(webhook_types_parse("of.another.time host.back"),
                     1U << WEBHOOK_HOST_BACK);
    assert_int_equal(webhook_type_parse("host.bakc", hint), WEBHOOK_TYPES);
    assert_non_null(strstr(hint, "host.back"));
    assert_int_equal(delivery_state_parse("dead"), DELIVERY_DEAD);
    assert_int_equal(delivery_state_parse("alive"), DELIVERY_STATES);
}

static void test_a_cloud_event(void **state)
{
    struct cloud_event event = { .id = "7-8-job",
                                 .source = "reprod://h:1",
                                 .subject = "jobs/\"J\"",
                                 .data = "{\"a\":1}",
                                 .type = WEBHOOK_JOB_FINISHED,
                                 .at_ms = INT64_C(1445412480000) };
    struct buf body;
    char *large = xcalloc(1, CLOUD_EVENT_DATA_MOST + 2);

    (void)state;
    cloud_event_body(&event, &body);
    assert_string_equal(body.data,
                        "{\"specversion\":\"1.0\",\"id\":\"7-8-job\",\"source\":"
                        "\"reprod://h:1\",\"type\":\"dev.reprod.job.finished\",\"time\":"
                        "\"2015-10-21T07:28:00.000Z\",\"subject\":\"jobs/\\\"J\\\"\","
                        "\"datacontenttype\":\"application/json\",\"data\":{\"a\":1}}");
    buf_release(&body);
    memset(large, ' ', CLOUD_EVENT_DATA_MOST + 1);
    event.data = large;
    cloud_event_body(&event, &body);
    assert_non_null(strstr(body.data, "\"data\":{\"too_large\":65537}}"));
    buf_release(&body);
    free(large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_given),
        cmocka_unit_test(test_those_of_the_configuration),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_a_cloud_event),
    };

    return cmocka_run_group_tests_name("webhooks", tests, NULL, NULL);
}
