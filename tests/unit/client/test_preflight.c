/* reprod preflight: what a device passes by, and that everything else is not passed; what
 * is said of it to Kubernetes. */
#include "daemon/client/preflight_judge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/base/array.h"
#include "daemon/base/json_in.h"
#include "daemon/client/baseline.h"
#include "daemon/client/preflight_say.h"
#include "tests/unit/client/preflight_case.h"

enum { DEVICES_MAX = 4, RUNS = 2 };

/* What one device showed. */
struct device {
    const char *digest;  /* NULL: it has no run */
    const char *state;   /* NULL: "agrees" */
    const char *verdict; /* NULL: "reproducible" */
    const char *outcome; /* of its second run; NULL: "completed" */
    bool varied, out_of_bound, used, is_cpu;
    const char *gpu; /* its "gpu_uuid"; NULL: not known */
};

struct scene {
    struct device devices[DEVICES_MAX];
    int count;
    int elsewhere; /* so many of them, the last, are of another machine */
    const char *agreement, *reason;
    const char *baseline; /* its digest; NULL: there is none */
    int others;           /* devices of the baseline that are not here; G0 is one more */
    const char *baseline_error, *baseline_gpu;
    int gpus;
    bool only_control;
    bool slices;       /* its devices are MIG-0, … instead of G0, … */
    bool other_driver; /* the baseline is of another environment */
};

static const char *or_else(const char *text, const char *otherwise)
{
    return text ? text : otherwise;
}

static void add_runs(json_t *runs, int seq, const struct device *d)
{
    for (int i = 0; i < RUNS && d->digest; i++) {
        const char *outcome = i == 1 ? or_else(d->outcome, "completed") : "completed";

        json_array_append_new(
            runs, json_pack("{s:s, s:i, s:i, s:s, s:s, s:n, s:{s:s}}", "job", "J", "item",
                            seq, "cell", 7, "outcome", outcome, "cause",
                            strcmp(outcome, "completed") == 0 ? "" : "why", "challenge",
                            "check", "state", d->out_of_bound ? "failed" : "passed"));
    }
    /* Of another job, and one that was asked with another seed. */
    json_array_append_new(runs, json_pack("{s:s, s:i, s:s}", "job", "I", "item", seq,
                                          "outcome", "crashed"));
    json_array_append_new(runs, json_pack("{s:s, s:i, s:s, s:{}}", "job", "J", "item",
                                          seq, "outcome", "crashed", "challenge"));
}

static json_t *row_of(const char *id, const struct device *d)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:b, s:i, s:i, s:[{s:s}]}", "device", id,
                     "state", or_else(d->state, "agrees"), "verdict",
                     or_else(d->verdict, "reproducible"), "class", d->digest,
                     "self_consistent", !d->varied, "runs", RUNS, "distinct_digests",
                     d->varied ? 2 : 1, "digests", "digest", d->digest);
}

static json_t *baseline_of(const struct scene *scene)
{
    return scene->baseline
               ? json_pack("{s:[{" CASE_FORMAT ", s:s, s:s, s:i, s:[s], s:s?}]}", "cases",
                           CASE, "environment", scene->other_driver ? "f" : "e", "digest",
                           scene->baseline, "devices", scene->others + 1, "names", "G0",
                           "gpu", scene->baseline_gpu)
               : NULL;
}

static json_t *judged(const struct scene *scene)
{
    json_t *devices = json_array(), *items = json_array(), *runs = json_array(),
           *rows = json_array(), *used = json_array(), *elsewhere = json_array(), *cells,
           *report;
    json_t *baseline = baseline_of(scene);

    for (int i = 0; i < scene->count; i++) {
        const struct device *d = &scene->devices[i];
        char id[16];

        snprintf(id, sizeof id, "%s%d", scene->slices ? "MIG-" : "G", i);
        json_array_append_new(i < scene->count - scene->elsewhere ? devices : elsewhere,
                              json_pack("{s:s, s:s, s:s, s:{s:s*}}", "id", id, "model",
                                        "m", "backend", d->is_cpu ? "cpu" : "cuda",
                                        "attributes", "gpu_uuid", d->gpu));
        json_array_append_new(
            items, json_pack("{" CASE_FORMAT ", s:i, s:s, s:s, s:i, s:b}", CASE, "seq", i,
                             "job", "J", "device", id, "runs_wanted", RUNS, "is_control",
                             scene->only_control));
        add_runs(runs, i, d);
        if (d->digest) {
            json_array_append_new(rows, row_of(id, d));
        }
        if (d->used) {
            json_array_append_new(used, json_string(id));
        }
    }
    cells = json_pack(
        "[{s:i, s:s, " CASE_FORMAT ", s:s, s:s, s:{s:s}, s:o}]", "id", 7, "environment",
        "e", CASE, "agreement", or_else(scene->agreement, "none"), "reason",
        or_else(scene->reason, "because"), "check", "worst", "y[3]", "devices", rows);
    assert_non_null(cells);
    report = preflight_judge(&(struct preflight_seen){ devices, items, runs, cells, used,
                                                       baseline, scene->baseline_error,
                                                       NULL, scene->gpus });
    assert_non_null(report);
    json_decref(elsewhere);
    json_decref(devices);
    json_decref(items);
    json_decref(runs);
    json_decref(cells);
    json_decref(used);
    json_decref(baseline);
    return report;
}

/* The machine's verdict is VERDICT, and that of each device the letter of VERDICTS;
 * CAUSE is a part of the cause of the last device, or of the machine. */
static void expect(const struct scene *scene, const char *verdict, const char *verdicts,
                   const char *cause)
{
    json_t *report = judged(scene);
    const json_t *devices = json_object_get(report, "devices"), *device;
    char letters[DEVICES_MAX + 1] = "";
    const char *said = "";
    size_t i;

    json_array_foreach(devices, i, device)
    {
        letters[i] = in_text_or_empty(device, "verdict")[0];
        said = in_text_or_empty(device, "cause");
        assert_int_equal(json_is_object(json_object_get(device, "equals")),
                         letters[i] == 'p');
    }
    assert_string_equal(in_text_or_empty(report, "verdict"), verdict);
    assert_string_equal(letters, verdicts);
    if (!strstr(said, cause) && !strstr(in_text_or_empty(report, "cause"), cause)) {
        fail_msg("'%s' is not in '%s', nor in '%s'", cause, said,
                 in_text_or_empty(report, "cause"));
    }
    json_decref(report);
}

#define A                                                                                \
    {                                                                                    \
        .digest = "a"                                                                    \
    }
#define THREE_A A, A, A

static void test_equals_pass(void **state)
{
    (void)state;
    expect(&(struct scene){ .devices = { A, A }, .count = 2 }, "passed", "pp",
           "1 case gave the bits of its equals");
    expect(&(struct scene){ .devices = { A }, .count = 1, .baseline = "a", .others = 1 },
           "passed", "p", "1 of 1 device passed");
    expect(&(struct scene){ .devices = { A, A }, .count = 2, .gpus = 2 }, "passed", "pp",
           "2 of 2");
}

static void test_without_an_equal_nothing_passes(void **state)
{
    (void)state;
    expect(&(struct scene){ .devices = { A }, .count = 1 }, "unverified", "u",
           "no equal of it is here, and there is no baseline");
    /* What the service knows of another machine. */
    expect(&(struct scene){ .devices = { A, A }, .count = 2, .elsewhere = 1 },
           "unverified", "u", "no equal of it is here");
    /* The baseline was measured on this device itself. */
    expect(&(struct scene){ .devices = { A }, .count = 1, .baseline = "a" }, "unverified",
           "u", "and the baseline has none");
}

/* What is wrong with a GPU is so on all of its slices. */
static void test_slices_of_one_gpu_are_no_equals(void **state)
{
    const struct device of_g = { .digest = "a", .gpu = "GPU-g" },
                        of_h = { .digest = "a", .gpu = "GPU-h" };

    (void)state;
    expect(&(struct scene){ .devices = { of_g, of_g }, .count = 2, .slices = true },
           "unverified", "uu", "no equal of it is here");
    expect(&(struct scene){ .devices = { of_g, of_h, of_g }, .count = 3, .slices = true },
           "passed", "ppp", "3 of 3");
    expect(&(struct scene){ .devices = { A, of_h }, .count = 2, .slices = true },
           "unverified", "uu", "no equal of it is here");
    /* Nor of those that it had when the baseline was measured. */
    expect(&(struct scene){ .devices = { of_g },
                            .count = 1,
                            .slices = true,
                            .baseline = "a",
                            .others = 1,
                            .baseline_gpu = "GPU-g" },
           "unverified", "u", "the baseline has none");
    expect(&(struct scene){ .devices = { of_g },
                            .count = 1,
                            .slices = true,
                            .baseline = "a",
                            .baseline_gpu = "GPU-h" },
           "passed", "p", "1 of 1");
    expect(
        &(struct scene){
            .devices = { A }, .count = 1, .slices = true, .baseline = "a", .others = 5 },
        "unverified", "u", "the baseline has none");
}

static void test_a_baseline_of_another_environment(void **state)
{
    (void)state;
    expect(
        &(struct scene){
            .devices = { A, A }, .count = 2, .baseline = "a", .other_driver = true },
        "unverified", "pp", "the baseline has no case in the environment of G1");
}

static void test_what_was_not_measured_does_not_pass(void **state)
{
    (void)state;
    expect(&(struct scene){ .count = 0 }, "failed", "", "there is no device to measure");
    expect(&(struct scene){ .devices = { { .digest = NULL } }, .count = 1 }, "failed",
           "f", "0 of 2 runs completed: there was no time for more");
    expect(&(struct scene){ .devices = { A, A, { .digest = "a", .outcome = "crashed" } },
                            .count = 3 },
           "unverified", "ppu", "1 of 2 runs completed: crashed: why");
    expect(&(struct scene){ .devices = { A, A, { .digest = "a", .outcome = "" } },
                            .count = 3 },
           "unverified", "ppu", "it did not end");
    expect(&(struct scene){ .devices = { A, A }, .count = 2, .only_control = true },
           "unverified", "uu", "nothing was measured on it");
    expect(&(struct scene){ .devices = { A, A, { .used = true } }, .count = 3 },
           "unverified", "ppu", "others use it");
}

static void test_a_control_that_did_not_vary(void **state)
{
    const struct device unproven = { .digest = "a", .verdict = "inconclusive" };

    (void)state;
    expect(&(struct scene){ .devices = { unproven, unproven },
                            .count = 2,
                            .reason = "the control did not vary" },
           "unverified", "uu", "the control did not vary");
}

static void test_other_bits(void **state)
{
    const struct device b = { .digest = "b", .state = "dissents" };
    const struct device departs = { .digest = "a",
                                    .state = "departs",
                                    .verdict = "inconclusive" };
    struct device other = departs;

    (void)state;
    other.digest = "b";
    expect(&(struct scene){ .devices = { THREE_A, b }, .count = 4 }, "dissents", "pppd",
           "it gives other bits than its equals");
    expect(&(struct scene){ .devices = { departs, other }, .count = 2 }, "dissents", "dd",
           "which of them are wrong cannot be told");
    /* The baseline knows which. */
    expect(
        &(struct scene){
            .devices = { departs, other }, .count = 2, .baseline = "a", .others = 5 },
        "dissents", "ud", "it gives b, and the baseline has a of 6 devices");
    expect(&(struct scene){ .devices = { A, A }, .count = 2, .baseline = "b" },
           "dissents", "dd", "it gives a, and the baseline has b of 1 device");
}

static void test_what_differs_from_itself(void **state)
{
    const struct device varied = {
        .digest = "a", .varied = true, .state = "departs", .verdict = "varies"
    };

    (void)state;
    expect(&(struct scene){ .devices = { varied }, .count = 1, .agreement = "varies" },
           "dissents", "d", "2 digests in 2 runs");
    expect(&(struct scene){ .devices = { varied, varied },
                            .count = 2,
                            .agreement = "varies" },
           "unverified", "uu", "the workload, not a device");
    expect(&(struct scene){ .devices = { A, A, varied },
                            .count = 3,
                            .agreement = "undecided" },
           "dissents", "ppd", "2 digests in 2 runs");
}

static void test_out_of_bound(void **state)
{
    struct scene scene = {
        .devices = { { .digest = "a", .out_of_bound = true, .verdict = "failing" } },
        .count = 1
    };

    (void)state;
    expect(&scene, "dissents", "d", "out of bound of the float64 reference: y[3]");
    scene.only_control = true;
    expect(&scene, "dissents", "d", "out of bound of the float64 reference: y[3]");
}

static void test_what_the_machine_lacks(void **state)
{
    const struct device b = { .digest = "b", .state = "dissents" };

    (void)state;
    expect(&(struct scene){ .devices = { A, A }, .count = 2, .gpus = 8 }, "failed", "pp",
           "8 GPUs are expected, 2 can be measured");
    expect(&(struct scene){ .devices = { THREE_A, b }, .count = 4, .gpus = 8 },
           "dissents", "pppd", "1 of 4 devices dissents");
    expect(&(struct scene){ .devices = { A, A }, .count = 2, .baseline_error = "gone" },
           "unverified", "pp", "the baseline is not known: gone");
    /* A text of elsewhere that was cut. */
    expect(&(struct scene){ .devices = { A, A }, .count = 2, .baseline_error = "g\xc3" },
           "unverified", "pp", "the baseline is not known: g");
}

static void test_the_last_answer_counts(void **state)
{
    json_t *devices =
        json_pack("[{s:s, s:s, s:s}]", "id", "G0", "model", "m", "backend", "cuda");
    json_t *items = json_array(), *runs = json_array(), *report;

    (void)state;
    for (int i = 0; i < 2; i++) {
        json_array_append_new(items, json_pack("{" CASE_FORMAT ", s:i, s:s, s:s, s:i}",
                                               CASE, "seq", 0, "job", i ? "J" : "I",
                                               "device", "G0", "runs_wanted", 1));
    }
    json_array_append_new(runs, json_pack("{s:s, s:i, s:s, s:s}", "job", "J", "item", 0,
                                          "outcome", "timeout", "cause", "last"));
    report = preflight_judge(
        &(struct preflight_seen){ .devices = devices, .items = items, .runs = runs });
    assert_string_equal(
        in_text_or_empty(json_array_get(json_object_get(report, "devices"), 0), "cause"),
        "w ordered: 0 of 1 runs completed: timeout: last");
    json_decref(report);
    json_decref(devices);
    json_decref(items);
    json_decref(runs);
}

static const struct preflight_facts FACTS = { "node-7", "1.2.3", 1.25, 1774000000123 };

static void test_the_line(void **state)
{
    json_t *report = judged(&(struct scene){ .devices = { A, A }, .count = 2 });
    char *line = preflight_line(report, &FACTS);
    const char *begins =
        "{\"schema\":\"reprod.preflight/1\",\"node\":\"node-7\","
        "\"verdict\":\"passed\",";

    (void)state;
    assert_memory_equal(line, begins, strlen(begins));
    assert_non_null(
        strstr(line, "\"seconds\":1.25,\"version\":\"1.2.3\",\"at\":\"2026-03-"));
    assert_null(strchr(line, '\n'));
    free(line);
    line =
        preflight_line(report, &(struct preflight_facts){ .node = "a\xff", "1", 1, 1 });
    assert_non_null(strstr(line, "\"node\":\"a\\\\xff\",\"verdict\":\"passed\""));
    free(line);
    json_decref(report);
}

/* The condition's STATUS and REASON, and whether it has that since SINCE. */
static void expect_condition(const struct scene *scene, const json_t *node,
                             const char *status, const char *reason, const char *since)
{
    json_t *report = judged(scene), *patch = preflight_condition(report, node, &FACTS);
    const json_t *conditions =
        json_object_get(json_object_get(patch, "status"), "conditions");
    const json_t *one = json_array_get(conditions, 0);

    assert_int_equal(json_array_size(conditions), 1);
    assert_string_equal(in_text_or_empty(one, "type"), "GpuNumericsOK");
    assert_string_equal(in_text_or_empty(one, "status"), status);
    assert_string_equal(in_text_or_empty(one, "reason"), reason);
    assert_string_equal(in_text_or_empty(one, "lastHeartbeatTime"),
                        "2026-03-20T09:46:40Z");
    assert_string_equal(in_text_or_empty(one, "lastTransitionTime"), since);
    json_decref(patch);
    json_decref(report);
}

static void test_the_condition(void **state)
{
    static const char before[] = "2026-01-01T00:00:00Z", now[] = "2026-03-20T09:46:40Z";
    const struct scene good = { .devices = { A, A }, .count = 2 },
                       alone = { .devices = { A }, .count = 1 },
                       bad = { .devices = { THREE_A,
                                            { .digest = "b", .state = "dissents" } },
                               .count = 4 },
                       none = { .count = 0 },
                       cpu = { .devices = { { .digest = "a", .is_cpu = true } },
                               .count = 1,
                               .baseline = "a",
                               .others = 1 };
    json_t *node =
        json_pack("{s:{s:[{s:s, s:s, s:s}, {s:s, s:s, s:s}]}}", "status", "conditions",
                  "type", "Ready", "status", "False", "lastTransitionTime", now, "type",
                  "GpuNumericsOK", "status", "True", "lastTransitionTime", before);

    (void)state;
    expect_condition(&good, NULL, "True", "BitsOfItsEquals", now);
    expect_condition(&good, node, "True", "BitsOfItsEquals", before);
    expect_condition(&bad, node, "False", "DeviceDissents", now);
    expect_condition(&alone, node, "Unknown", "Unverified", now);
    expect_condition(&none, node, "Unknown", "CannotMeasure", now);
    /* What a CPU computes says nothing of GPUs. */
    expect_condition(&cpu, node, "Unknown", "NoGpu", now);
    json_decref(node);
}

static void test_what_others_use_changes_no_condition(void **state)
{
    json_t *patch;
    json_t *report =
        judged(&(struct scene){ .devices = { A, A, { .used = true } }, .count = 3 });

    (void)state;
    assert_null(preflight_condition(report, NULL, &FACTS));
    json_decref(report);
    report = judged(&(struct scene){
        .devices = { { .digest = "a", .outcome = "crashed" }, { .used = true } },
        .count = 2 });
    patch = preflight_condition(report, NULL, &FACTS);
    assert_non_null(patch);
    json_decref(patch);
    json_decref(report);
}

static void test_the_events(void **state)
{
    json_t *report = judged(&(struct scene){
        .devices = { THREE_A, { .digest = "b", .state = "dissents" } }, .count = 4 });
    json_t *events = preflight_events(report, &FACTS);
    const json_t *list = json_object_get(events, "events");
    const json_t *last = json_array_get(list, 3);

    (void)state;
    assert_int_equal(json_array_size(list), 4);
    assert_true(json_is_true(json_object_get(json_array_get(list, 0), "isHealthy")));
    assert_true(json_is_false(json_object_get(last, "isHealthy")));
    assert_true(json_is_false(json_object_get(last, "isFatal")));
    assert_string_equal(in_text_or_empty(last, "processingStrategy"), "STORE_ONLY");
    assert_string_equal(
        in_text_or_empty(json_array_get(json_object_get(last, "entitiesImpacted"), 0),
                         "entityValue"),
        "G3");
    json_decref(events);
    json_decref(report);
    /* What is not known is not healthy, and nothing else either. */
    report = judged(&(struct scene){ .devices = { A }, .count = 1 });
    events = preflight_events(report, &FACTS);
    assert_int_equal(json_array_size(json_object_get(events, "events")), 0);
    json_decref(events);
    json_decref(report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_pass),
        cmocka_unit_test(test_without_an_equal_nothing_passes),
        cmocka_unit_test(test_slices_of_one_gpu_are_no_equals),
        cmocka_unit_test(test_a_baseline_of_another_environment),
        cmocka_unit_test(test_what_was_not_measured_does_not_pass),
        cmocka_unit_test(test_a_control_that_did_not_vary),
        cmocka_unit_test(test_other_bits),
        cmocka_unit_test(test_what_differs_from_itself),
        cmocka_unit_test(test_out_of_bound),
        cmocka_unit_test(test_what_the_machine_lacks),
        cmocka_unit_test(test_the_last_answer_counts),
        cmocka_unit_test(test_the_line),
        cmocka_unit_test(test_the_condition),
        cmocka_unit_test(test_what_others_use_changes_no_condition),
        cmocka_unit_test(test_the_events),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
