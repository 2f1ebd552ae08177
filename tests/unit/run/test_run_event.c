/* Events of probes are read whole and exactly, or refused with what is wrong. */
#include "daemon/run/run_event.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define A "00112233445566778899aabbccddeeff"
#define B "ffeeddccbbaa99887766554433221100"
#define LONG                                                                             \
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" \
    "xxxxxx"

static json_t *parse(const char *text)
{
    json_t *json = json_loads(text, 0, NULL);
    if (!json) {
        fail_msg("not JSON: %s", text);
    }
    return json;
}

static struct probe_record seen[8];
static int seen_count;

static void see(void *arg, const struct probe_record *record)
{
    (void)arg;
    seen[seen_count++] = *record;
}

static void test_good_events(void **state)
{
    struct probe_record record;
    struct err err;
    json_t *one = parse("{\"event\":\"probe\",\"step\":7,\"name\":\"a/b\",\"in\":\"" A
                        "\",\"out\":\"" B "\"}");
    json_t *many =
        parse("{\"event\":\"probes\",\"i\":2,\"step\":9,\"records\":[[\"a\",\"" A
              "\",\"" B "\"],[\"\xc3\xa9\",\"" B "\",\"" A "\"]]}");

    (void)state;
    assert_int_equal(probe_event_read(one, &record, &err), ERR_OK);
    assert_int_equal(record.iteration, 0);
    assert_int_equal(record.step, 7);
    assert_string_equal(record.place, "a/b");
    assert_string_equal(record.in, A);
    assert_string_equal(record.out, B);
    seen_count = 0;
    assert_int_equal(probes_event_read(many, see, NULL, &err), ERR_OK);
    assert_int_equal(seen_count, 2);
    assert_int_equal(seen[1].iteration, 2);
    assert_int_equal(seen[1].step, 9);
    assert_string_equal(seen[1].place, "\xc3\xa9");
    assert_string_equal(seen[1].in, B);
    json_decref(one);
    json_decref(many);
}

struct bad {
    const char *event, *wanted;
};

static void test_bad_events(void **state)
{
    static const struct bad bad[] = {
        { "{\"i\":0,\"step\":0}", "records is missing" },
        { "{\"step\":0,\"records\":[]}", "i is missing" },
        { "{\"i\":0,\"step\":0,\"records\":{}}", "records must be an array" },
        { "{\"i\":-1,\"step\":0,\"records\":[]}",
          "i must be a whole number from 0 to 2147483647" },
        { "{\"i\":2147483648,\"step\":0,\"records\":[]}",
          "i must be a whole number from 0 to 2147483647" },
        { "{\"i\":0,\"step\":-1,\"records\":[]}", "step must be a whole number from 0" },
        { "{\"i\":0,\"step\":0.5,\"records\":[]}", "step must be a whole number from 0" },
        { "{\"i\":0,\"step\":0,\"records\":[1]}", "records/0: must be an array" },
        { "{\"i\":0,\"step\":0,\"records\":[[\"a\",\"" A "\"]]}",
          "records/0: must be an array of place" },
        { "{\"i\":0,\"step\":0,\"records\":[[\"a\",\"" A "\",\"" B "\",1]]}",
          "must be an array" },
        { "{\"i\":0,\"step\":0,\"records\":[[\"a\",\"" A "\",\"" B "\"],[\"a\",\"" A
          "\",\"x\"]]}",
          "records/1: out must be 32 hex" },
        { "{\"i\":0,\"step\":0,\"records\":[[\"a\",\"x\",\"" B "\"]]}",
          "records/0: in must be 32 hex" },
        { "{\"i\":0,\"step\":0,\"records\":[[7,\"" A "\",\"" B "\"]]}",
          "records/0: must be an array of place" },
        { "{\"i\":0,\"step\":0,\"records\":[[\"a\",null,\"" B "\"]]}",
          "records/0: must be an array of place" },
        { "{\"i\":0,\"step\":0,\"records\":[[\"a\",\"" A "\",[]]]}",
          "records/0: must be an array of place" },
        { "{\"i\":0,\"step\":0,\"records\":[[\"\",\"" A "\",\"" B "\"]]}",
          "1 to 128 bytes" },
        { "{\"i\":0,\"step\":0,\"records\":[[\"" LONG LONG "\",\"" A "\",\"" B "\"]]}",
          "must have 1 to 128 bytes" },
        { "{\"i\":0,\"step\":0,\"records\":[[\"a\\n\",\"" A "\",\"" B "\"]]}",
          "control" },
        { "{\"i\":0,\"step\":0,\"records\":[[\"a\\u202e\",\"" A "\",\"" B "\"]]}",
          "control" },
        { "{\"i\":0,\"step\":0,\"records\":[[\"a\\u0085\",\"" A "\",\"" B "\"]]}",
          "control" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        json_t *event = parse(bad[i].event);
        struct err err;

        seen_count = 0;
        if (probes_event_read(event, see, NULL, &err) != ERR_PROTOCOL) {
            fail_msg("accepted: %s", bad[i].event);
        }
        if (!strstr(err.message, bad[i].wanted)) {
            fail_msg("%s: wanted '%s' in '%s'", bad[i].event, bad[i].wanted, err.message);
        }
        json_decref(event);
    }
}

static const char tensor_text[] =
    "{\"event\":\"tensor\",\"i\":1,\"step\":2,\"place\":\"p\",\"role\":\"out\","
    "\"index\":0,\"name\":\"\",\"dtype\":\"float32\",\"shape\":[2],\"bytes_total\":8,"
    "\"captured_bytes\":8,\"offset\":0,\"data\":\"AAAAAAAAAAA=\"}";

static void test_the_title_names_the_framework(void **state)
{
    json_t *facts = parse(
        "{\"backend\":\"cpu\",\"model\":\"EPYC\",\"threads\":2,"
        "\"numpy\":\"1.26.4\",\"torch\":\"2.4.1\",\"python\":\"3.11\","
        "\"worker_build\":\"0123456789\"}");
    char *title = run_environment_title(facts);

    (void)state;
    assert_string_equal(title,
                        "cpu \xc2\xb7 EPYC \xc2\xb7 2 threads \xc2\xb7 PyTorch 2.4.1"
                        " \xc2\xb7 NumPy 1.26.4 \xc2\xb7 worker 01234567");
    free(title);
    json_decref(facts);
}

static void test_the_title_names_changed_files(void **state)
{
    static const struct {
        const char *facts, *title;
    } cases[] = {
        { "{\"numpy\":\"2.4.6\",\"numpy_files_changed\":\"0f\"}",
          "NumPy 2.4.6 \xc2\xb7 with changed files" },
        { "{\"numpy\":\"2.4.6\",\"numpy_files_changed_not\":\"0f\"}", "NumPy 2.4.6" },
        { "{\"numpy\":\"2.4.6\",\"_files_changed\":\"0f\"}", "NumPy 2.4.6" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *facts = parse(cases[i].facts);
        char *title = run_environment_title(facts);

        assert_string_equal(title, cases[i].title);
        free(title);
        json_decref(facts);
    }
}

static void test_tensors(void **state)
{
    static const struct {
        const char *key, *value, *wanted;
    } bad[] = {
        { "role", "\"both\"", "role must be in or out" },
        { "shape", "[-1]", "shape/0" },
        { "shape", "2", "shape" },
        { "offset", "9", "impossible" },
        { "captured_bytes", "9", "impossible" },
        { "index", "-1", "index must be a whole number from 0" },
        { "place", "\"\"", "1 to 128 bytes" },
        { "data", "null", "data must be a text" },
        { "step", "-3", "step must be" },
    };
    json_t *event = parse(tensor_text);
    struct tensor_event tensor;
    struct err err;

    (void)state;
    assert_int_equal(tensor_event_read(event, &tensor, &err), ERR_OK);
    assert_true(tensor.is_out);
    assert_int_equal(tensor.iteration, 1);
    assert_int_equal(tensor.bytes_total, 8);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        json_t *changed = json_copy(event);

        json_object_set_new(changed, bad[i].key,
                            json_loads(bad[i].value, JSON_DECODE_ANY, NULL));
        assert_int_equal(tensor_event_read(changed, &tensor, &err), ERR_PROTOCOL);
        if (!strstr(err.message, bad[i].wanted)) {
            fail_msg("%s: wanted '%s' in '%s'", bad[i].key, bad[i].wanted, err.message);
        }
        json_decref(changed);
    }
    json_decref(event);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_events),
        cmocka_unit_test(test_bad_events),
        cmocka_unit_test(test_the_title_names_the_framework),
        cmocka_unit_test(test_the_title_names_changed_files),
        cmocka_unit_test(test_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
