/* Pages of another service's runs: what is read of them, and what is wrong with those
 * that are refused. */
#include "daemon/peers/peer_page.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "daemon/base/array.h"
#include "daemon/base/mem.h"
#include "daemon/peers/peers.h"

#define FIRST    "01M8CETA000000000000000001"
#define SECOND   "01M8CETA000000000000000002"
#define THIRD    "01M8CETA000000000000000003"
#define DIGEST_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define DIGEST_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define INPUTS   "00112233445566778899aabbccddeeff"
#define NOW_MS   INT64_C(1795714600000)

/* A run with which nothing is wrong. */
static const char run_text[] =
    "{\"id\":\"" SECOND "\",\"damaged\":false,\"job\":\"" FIRST
    "\",\"item\":1,"
    "\"job_created_ms\":1000,\"asked\":3,\"workload\":\"conv_wgrad\",\"version\":2,"
    "\"variant\":\"ordered\",\"size\":\"small\",\"dtype\":\"float32\",\"seed\":\"7\","
    "\"item_seed\":\"7\",\"challenge\":false,\"control\":false,\"kind\":\"race\","
    "\"no_control\":\"\",\"unseeded\":false,\"subject\":\"library\","
    "\"subject_name\":\"cuDNN\",\"stack\":\"cuda\",\"options\":\"\",\"host\":\"gpu-001\","
    "\"boot_id\":\"b\",\"device\":\"cpu:gpu-001\",\"backend\":\"cpu\",\"model\":\"m\","
    "\"attributes\":{\"b\":1,\"a\":2},\"device_state\":\"\",\"device_state_since\":\"\","
    "\"intent_ms\":2000,\"started_ms\":2001,\"finished_ms\":3000,"
    "\"outcome\":\"completed\",\"cause\":\"\",\"circumstances\":\"\","
    "\"environment\":{\"worker_build\":\"3f2a\",\"model\":\"m\",\"backend\":\"cpu\","
    "\"threads\":2},\"iterations\":3,\"digests\":[{\"digest\":\"" DIGEST_A
    "\",\"iterations\":2,\"first_iteration\":0},{\"digest\":\"" DIGEST_B
    "\",\"iterations\":1,\"first_iteration\":2}],\"input_digest\":\"" INPUTS
    "\","
    "\"weight_sum\":\"c0234c2400000000\",\"loss\":\"\",\"algorithm\":\"tree\","
    "\"claim\":\"\",\"min_ns\":1,\"median_ns\":2,\"max_ns\":3,\"elements\":64,"
    "\"bytes_hashed\":768,\"device_read_back\":\"cpu:gpu-001\",\"wall_ns\":5000000,"
    "\"max_rss_kb\":7,\"check\":{\"state\":\"passed\",\"digest\":\"" DIGEST_A
    "\",\"share_ppm\":1000,\"words\":\"w\"}}";

static json_t *parsed(const char *text)
{
    json_error_t error;
    json_t *json = json_loads(text, 0, &error);

    if (!json) {
        fail_msg("%s: %s", text, error.text);
    }
    return json;
}

/* The run with what CHANGES has, in a page. */
static json_t *page_with(const char *changes)
{
    json_t *run = parsed(run_text), *changed = parsed(changes);
    json_t *page;

    json_object_update(run, changed);
    json_decref(changed);
    page = json_pack("{s:i,s:s,s:s,s:s,s:s,s:b,s:n,s:i,s:i,s:[o]}", "format", PEER_FORMAT,
                     "reprod", "1.2.3", "service", "2531b17cd9c9f92d", "since", FIRST,
                     "cursor", SECOND, "more", 0, "waits_for", "folded", 0, "of_peers", 0,
                     "items", run);
    assert_non_null(page);
    return page;
}

static enum err_code read_json(json_t *json, struct peer_page *ret_page, struct err *err)
{
    char *text = json_dumps(json, JSON_COMPACT);
    enum err_code code =
        peer_page_read(text, strlen(text), "east", FIRST, NOW_MS, ret_page, err);

    free(text);
    json_decref(json);
    return code;
}

static void test_a_run_is_read_whole(void **state)
{
    struct peer_page page;
    struct err err;
    const struct peer_run *run;

    (void)state;
    assert_int_equal(read_json(page_with("{}"), &page, &err), ERR_OK);
    assert_int_equal(page.count, 1);
    run = page.runs;
    assert_int_equal(run->refusal, PEER_TAKEN);
    assert_string_equal(run->run.device, "cpu:east/gpu-001");
    assert_string_equal(run->run.device_read_back, "cpu:east/gpu-001");
    assert_string_equal(run->device.id, "cpu:east/gpu-001");
    assert_string_equal(run->device.host, "east/gpu-001");
    assert_string_equal(run->run.stack, "east:cuda");
    assert_string_equal(run->run.key.workload, "conv_wgrad");
    assert_int_equal(run->run.key.version, 2);
    assert_int_equal(run->run.key.seed, 7);
    assert_int_equal(run->run.subject, SUBJECT_LIBRARY);
    assert_int_equal(run->run.distinct_digests, 2);
    assert_string_equal(run->run.digest, DIGEST_A);
    assert_int_equal(run->run.check.state, CHECK_PASSED);
    assert_string_equal(run->attributes, "{\"a\":2,\"b\":1}");
    assert_string_equal(run->environment,
                        "{\"backend\":\"cpu\",\"model\":\"m\","
                        "\"threads\":2,\"worker_build\":\"3f2a\"}");
    assert_string_equal(run->environment_title,
                        "cpu \xc2\xb7 m \xc2\xb7 2 threads "
                        "\xc2\xb7 worker 3f2a");
    assert_int_equal(strlen(run->run.environment), 32);
    peer_page_release(&page);
}

static void test_a_device_with_a_uuid_is_the_same_everywhere(void **state)
{
    static const struct {
        const char *id, *as;
    } ids[] = {
        { "GPU-0a1b2c3d-0000-1111-2222-333344445555",
          "GPU-0a1b2c3d-0000-1111-2222-333344445555" },
        { "MIG-0a1b2c3d-0000-1111-2222-333344445555",
          "MIG-0a1b2c3d-0000-1111-2222-333344445555" },
        { "GPU-03", "east/GPU-03" },
        { "GPU-0a1b2c3d-0000-1111-2222-3333444455556",
          "east/GPU-0a1b2c3d-0000-1111-2222-3333444455556" },
        { "GPU-0a1b2c3d-0000-1111-2222_333344445555",
          "east/GPU-0a1b2c3d-0000-1111-2222_333344445555" },
        { "cpu:x", "cpu:east/x" },
    };

    (void)state;
    for (int i = 0; i < COUNT_OF(ids); i++) {
        char *changes = xasprintf("{\"device\":\"%s\",\"device_read_back\":\"%s\"}",
                                  ids[i].id, ids[i].id);
        struct peer_page page;
        struct err err;

        assert_int_equal(read_json(page_with(changes), &page, &err), ERR_OK);
        assert_string_equal(page.runs[0].run.device, ids[i].as);
        assert_string_equal(page.runs[0].run.device_read_back, ids[i].as);
        peer_page_release(&page);
        free(changes);
    }
}

static void test_a_command_keeps_the_name_of_its_service(void **state)
{
    struct peer_page page;
    struct err err;

    (void)state;
    assert_int_equal(read_json(page_with("{\"stack\":\"external-cuda\","
                                         "\"workload\":\"resnet\"}"),
                               &page, &err),
                     ERR_OK);
    assert_string_equal(page.runs[0].run.stack, "external-cuda");
    assert_string_equal(page.runs[0].run.key.workload, "east/resnet");
    peer_page_release(&page);
}

/* A run that failed shows nothing but that. */
static void test_only_completed_runs_show_results(void **state)
{
    struct peer_page page;
    struct err err;

    (void)state;
    assert_int_equal(read_json(page_with("{\"outcome\":\"crashed\",\"cause\":\"SIGSEGV\","
                                         "\"environment\":null,\"started_ms\":0,"
                                         "\"device_read_back\":\"unknown\"}"),
                               &page, &err),
                     ERR_OK);
    assert_int_equal(page.runs[0].refusal, PEER_TAKEN);
    assert_int_equal(page.runs[0].run.outcome, OUTCOME_CRASHED);
    assert_int_equal(page.runs[0].digest_count, 0);
    assert_string_equal(page.runs[0].run.digest, "");
    assert_int_equal(page.runs[0].run.elements, 0);
    assert_int_equal(page.runs[0].run.check.state, CHECK_ASKED);
    assert_string_equal(page.runs[0].run.check.digest, "");
    assert_string_equal(page.runs[0].run.device_read_back, "unknown");
    assert_null(page.runs[0].environment);
    peer_page_release(&page);
    assert_int_equal(
        read_json(page_with("{\"outcome\":\"crashed\",\"cause\":\"SIGSEGV\","
                            "\"check\":{\"state\":\"cut_off\",\"digest\":\"\","
                            "\"share_ppm\":0,\"words\":\"\"}}"),
                  &page, &err),
        ERR_OK);
    assert_int_equal(page.runs[0].run.check.state, CHECK_CUT_OFF);
    peer_page_release(&page);
}

#define CHECKED(state, digest, share)                                                    \
    "{\"check\":{\"state\":\"" state "\",\"digest\":\"" digest "\",\"share_ppm\":" share \
    ",\"words\":\"\"}}"
#define DIGESTS(list) "{\"digests\":[" list "]}"
#define DIGEST(digest, iterations, first)                                                \
    "{\"digest\":\"" digest "\",\"iterations\":" iterations                              \
    ",\"first_iteration\":" first "}"

static void test_what_is_wrong_with_a_run_refuses_it(void **state)
{
    static const struct {
        const char *changes;
        enum peer_refusal refusal;
        const char *words; /* a part */
    } wrong[] = {
        { "{\"damaged\":true}", PEER_DAMAGED, "not what was stored" },
        { "{\"job\":\"x\"}", PEER_MALFORMED, "job" },
        { "{\"workload\":\"\"}", PEER_MALFORMED, "workload" },
        { "{\"version\":\"1\"}", PEER_MALFORMED, "version" },
        { "{\"seed\":\"-1\"}", PEER_MALFORMED, "seed" },
        { "{\"seed\":\"8\"}", PEER_MALFORMED, "another seed" },
        { "{\"challenge\":true}", PEER_MALFORMED, "the seed of its item" },
        { "{\"kind\":\"luck\"}", PEER_MALFORMED, "kind" },
        { "{\"subject\":\"oracle\"}", PEER_MALFORMED, "subject" },
        { "{\"subject\":\"model\"}", PEER_MALFORMED, "name" },
        { "{\"options\":\"{ }\"}", PEER_MALFORMED, "options" },
        { "{\"outcome\":\"reproducible\"}", PEER_MALFORMED, "outcome" },
        { "{\"outcome\":\"crashed\"}", PEER_MALFORMED, "without a cause" },
        { "{\"circumstances\":\"{}\"}", PEER_MALFORMED, "circumstances" },
        { "{\"environment\":{\"backend\":\"cpu\"}}", PEER_MALFORMED, "model" },
        { "{\"environment\":{\"backend\":\"cuda\",\"model\":\"m\",\"worker_build\":\"b\"}"
          "}",
          PEER_MALFORMED, "another backend" },
        { "{\"environment\":{\"backend\":\"cpu\",\"model\":\"m\",\"worker_build\":\"b\","
          "\"x\":[]}}",
          PEER_MALFORMED, "text or a whole number" },
        { "{\"intent_ms\":4000}", PEER_MALFORMED, "before it began" },
        { CHECKED("hoped", "", "0"), PEER_MALFORMED, "check" },
        { CHECKED("passed", "x", "0"), PEER_MALFORMED, "digest" },
        { "{\"weight_sum\":\"1\"}", PEER_MALFORMED, "weight_sum" },
        { "{\"iterations\":2}", PEER_NO_PROOF, "2 of 3 iterations" },
        { "{\"elements\":0}", PEER_NO_PROOF, "0 elements" },
        { "{\"bytes_hashed\":100}", PEER_NO_PROOF, "100 bytes" },
        { "{\"bytes_hashed\":9000000000000000}", PEER_NO_PROOF, "nothing hashes" },
        /* Sums over runs would be no numbers any more. */
        { "{\"bytes_hashed\":9000000000000000000}", PEER_MALFORMED, "bytes_hashed" },
        { "{\"median_ns\":9000000000000000000}", PEER_MALFORMED, "median_ns" },
        { "{\"wall_ns\":9000000000000000000}", PEER_MALFORMED, "wall_ns" },
        { "{\"intent_ms\":0}", PEER_MALFORMED, "intent_ms" },
        { "{\"stack\":\"cuda/conv_wgrad\"}", PEER_MALFORMED, "stack has a '/'" },
        { "{\"device_state\":\"x\"}", PEER_MALFORMED, "no state" },
        { "{\"device_state\":\"[1]\"}", PEER_MALFORMED, "no state" },
        { "{\"device_state\":\"{\\\"vbios\\\":[]}\"}", PEER_MALFORMED, "no state" },
        { "{\"device_state\":\"{\\\"vbios\\\":{}}\"}", PEER_MALFORMED, "no state" },
        { "{\"device_state\":\"{\\\"vbios\\\":1}\",\"elements\":0}", PEER_NO_PROOF, "" },
        { "{\"device_state_since\":\"x\"}", PEER_MALFORMED,
          "device_state_since is no id" },
        /* Our own ids would be behind it from then on. */
        { "{\"job\":\"7ZZZZZZZZZZZZZZZZZZZZZZZZZ\"}", PEER_MALFORMED, "before its job" },
        { "{\"job\":\"" SECOND "\"}", PEER_MALFORMED, "before its job" },
        { "{\"device_read_back\":\"cpu:x\"}", PEER_NO_PROOF, "its device is" },
        { "{\"input_digest\":\"\"}", PEER_NO_PROOF, "inputs" },
        { "{\"weight_sum\":\"\"}", PEER_NO_PROOF, "weight sum" },
        { "{\"environment\":null}", PEER_NO_PROOF, "environment" },
        { "{\"min_ns\":9}", PEER_NO_PROOF, "times" },
        { DIGESTS(""), PEER_NO_PROOF, "0 digests" },
        { DIGESTS(DIGEST(DIGEST_A, "2", "0")), PEER_NO_PROOF, "2 iterations" },
        { DIGESTS(DIGEST(DIGEST_A, "3", "1")), PEER_NO_PROOF, "3 iterations" },
        { DIGESTS(DIGEST(DIGEST_A, "3", "3")), PEER_NO_PROOF, "order" },
        { DIGESTS(DIGEST(DIGEST_A, "2", "0") "," DIGEST(DIGEST_A, "1", "2")),
          PEER_NO_PROOF, "twice" },
        { DIGESTS(DIGEST(DIGEST_A, "2", "2") "," DIGEST(DIGEST_B, "1", "0")),
          PEER_NO_PROOF, "order" },
        { DIGESTS(DIGEST("00000000000000000000000000000000", "3", "0")), PEER_NO_PROOF,
          "zeros" },
        { CHECKED("passed", "cccccccccccccccccccccccccccccccc", "0"), PEER_NO_PROOF,
          "no iteration" },
        { CHECKED("passed", DIGEST_A, "1000001"), PEER_NO_PROOF, "beyond its bound" },
        { CHECKED("cut_off", "", "0"), PEER_NO_PROOF, "did not end" },
        { "{\"options\":\"{\\\"contention\\\":4}\"}", PEER_NO_PROOF, "circumstances" },
        { "{\"circumstances\":\"{\\\"memory_poison\\\":\\\"deadbeef\\\"}\"}",
          PEER_NO_PROOF, "circumstances" },
        { "{\"stack\":\"123456789012345678901234567890123456789012345678901234567890\"}",
          PEER_TOO_LONG, "more than 63 bytes" },
    };

    (void)state;
    for (int i = 0; i < COUNT_OF(wrong); i++) {
        struct peer_page page;
        struct err err;

        assert_int_equal(read_json(page_with(wrong[i].changes), &page, &err), ERR_OK);
        assert_int_equal(page.count, 1);
        if (page.runs[0].refusal != wrong[i].refusal ||
            !strstr(page.runs[0].words, wrong[i].words)) {
            fail_msg("%s: %s, %s", wrong[i].changes,
                     page.runs[0].refusal ? peer_refusal_name(page.runs[0].refusal)
                                          : "taken",
                     page.runs[0].words);
        }
        assert_string_equal(page.runs[0].run.id, SECOND);
        peer_page_release(&page);
    }
}

static void test_what_was_drawn_may_be_anything_that_was_asked_for(void **state)
{
    struct peer_page page;
    struct err err;

    (void)state;
    assert_int_equal(
        read_json(
            page_with("{\"options\":\"{\\\"memory-poison\\\":\\\"random\\\"}\","
                      "\"circumstances\":\"{\\\"memory_poison\\\":\\\"deadbeef\\\"}\"}"),
            &page, &err),
        ERR_OK);
    assert_string_equal(page.runs[0].words, "");
    peer_page_release(&page);
}

static void set(json_t *page, const char *name, json_t *value)
{
    json_object_set_new(page, name, value);
}

static void expect_error(json_t *json, enum err_code code, const char *words)
{
    struct peer_page page;
    struct err err = { .message = "" };

    if (read_json(json, &page, &err) != code || !strstr(err.message, words)) {
        fail_msg("%s: %s", words, err.message);
    }
    peer_page_release(&page);
}

static void test_what_is_no_page_is_refused_whole(void **state)
{
    static const char *const texts[] = { "", "{", "[]", "{}", "hello", "{\"format\":1}" };
    json_t *page;
    struct peer_page read;
    struct err err;

    (void)state;
    for (int i = 0; i < COUNT_OF(texts); i++) {
        assert_int_equal(peer_page_read(texts[i], strlen(texts[i]), "east", FIRST, NOW_MS,
                                        &read, &err),
                         ERR_PROTOCOL);
        peer_page_release(&read);
    }
    page = page_with("{}");
    set(page, "format", json_integer(2));
    set(page, "cursor", json_null()); /* nothing else of it is looked at */
    expect_error(page, ERR_UNSUPPORTED, "format 2");
    page = page_with("{}");
    set(page, "since", json_string(SECOND));
    expect_error(page, ERR_PROTOCOL, "asked since");
    page = page_with("{}");
    set(page, "cursor", json_string(PEER_CURSOR_FIRST));
    expect_error(page, ERR_PROTOCOL, "goes back");
    page = page_with("{}");
    set(page, "cursor", json_string(FIRST));
    set(page, "more", json_true());
    expect_error(page, ERR_PROTOCOL, "goes back");
    expect_error(page_with("{\"id\":7}"), ERR_PROTOCOL, "has no id");
    expect_error(page_with("{\"id\":\"" FIRST "\"}"), ERR_PROTOCOL, "out of order");
    expect_error(page_with("{\"id\":\"" THIRD "\"}"), ERR_PROTOCOL, "out of order");
    page = page_with("{}");
    json_array_append(json_object_get(page, "items"),
                      json_array_get(json_object_get(page, "items"), 0));
    expect_error(page, ERR_PROTOCOL, "out of order");
}

/* What is still to come is waited for: it would never grow old. */
static void test_nothing_is_of_the_future(void **state)
{
    static const char *const little[] = {
        "{\"finished_ms\":1795714600001}",
        "{\"started_ms\":1795714600001}",
        "{\"job_created_ms\":1795714600001}",
        "{\"finished_ms\":1795714610000}",
    };
    static const char *const far[] = {
        "{\"finished_ms\":1795714610001}",
        "{\"started_ms\":1795714610001}",
        "{\"job_created_ms\":1795714610001}",
    };
    json_t *page = page_with("{}");
    struct peer_page read;
    struct err err;

    (void)state;
    set(page, "cursor", json_string("7ZZZZZZZZZZZZZZZZZZZZZZZZZ"));
    expect_error(page, ERR_BUSY, "still to come");
    for (int i = 0; i < COUNT_OF(far); i++) {
        expect_error(page_with(far[i]), ERR_BUSY, "still to come");
    }
    for (int i = 0; i < COUNT_OF(little); i++) {
        page = page_with(little[i]);
        set(page, "of_peers", json_integer(3));
        assert_int_equal(read_json(page, &read, &err), ERR_OK);
        assert_int_equal(read.count + read.of_peers, 0);
        assert_string_equal(read.cursor, FIRST);
        assert_string_equal(read.waits_for, SECOND);
        peer_page_release(&read);
    }
}

/* Those before it are taken; a gap is counted once, with the whole page. */
static void test_a_page_ends_before_what_is_to_come(void **state)
{
    json_t *page = page_with("{}");
    json_t *later = json_deep_copy(json_array_get(json_object_get(page, "items"), 0));
    struct peer_page read;
    struct err err;

    (void)state;
    set(later, "id", json_string(THIRD));
    set(later, "finished_ms", json_integer(NOW_MS + 1));
    json_array_append_new(json_object_get(page, "items"), later);
    set(page, "cursor", json_string(THIRD));
    set(page, "more", json_true());
    assert_int_equal(read_json(json_deep_copy(page), &read, &err), ERR_OK);
    assert_int_equal(read.count, 1);
    assert_string_equal(read.cursor, SECOND);
    assert_string_equal(read.waits_for, THIRD);
    assert_false(read.more);
    assert_true(read.cut);
    peer_page_release(&read);
    set(page, "folded", json_integer(1));
    expect_error(page, ERR_BUSY, "still to come");
}

static void test_each_failure_waits_twice_as_long(void **state)
{
    int64_t ms = 0;

    (void)state;
    assert_int_equal(ms = peers_backoff(ms), 1000);
    assert_int_equal(ms = peers_backoff(ms), 2000);
    for (int i = 0; i < 100; i++) {
        ms = peers_backoff(ms);
    }
    assert_int_equal(ms, 600000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_run_is_read_whole),
        cmocka_unit_test(test_a_device_with_a_uuid_is_the_same_everywhere),
        cmocka_unit_test(test_a_command_keeps_the_name_of_its_service),
        cmocka_unit_test(test_only_completed_runs_show_results),
        cmocka_unit_test(test_what_is_wrong_with_a_run_refuses_it),
        cmocka_unit_test(test_what_was_drawn_may_be_anything_that_was_asked_for),
        cmocka_unit_test(test_what_is_no_page_is_refused_whole),
        cmocka_unit_test(test_nothing_is_of_the_future),
        cmocka_unit_test(test_a_page_ends_before_what_is_to_come),
        cmocka_unit_test(test_each_failure_waits_twice_as_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
