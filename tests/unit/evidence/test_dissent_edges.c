/* What is rarely seen of devices that disagree: several conditions, hosts that differ
 * with themselves, camps beside devices that vary. */
#include "daemon/evidence/dissent.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 24 };
#define LOADED "{\"contention\":4}"

struct rows {
    struct dissent_row rows[ROWS];
    int count;
};

/* A row of RUNS runs, MODE_RUNS of which show MODE alone. */
static void add(struct rows *r, const char *device, const char *host, const char *options,
                int64_t runs, const char *mode, int64_t mode_runs)
{
    r->rows[r->count++] = (struct dissent_row){ .device = device,
                                                .host = host,
                                                .options = options,
                                                .runs = runs,
                                                .iterations = 2 * runs,
                                                .varied = mode_runs < runs,
                                                .mode = mode,
                                                .mode_runs = mode_runs };
}

/* No row shows the majority's digest, unless it is its mode. */
static struct dissent judge(struct rows *r)
{
    dissent_majorities(r->rows, r->count);
    for (int i = 0; i < r->count; i++) {
        if (r->rows[i].majority_runs < 0) {
            r->rows[i].majority_runs = 0;
        }
    }
    return dissent_judge(r->rows, r->count);
}

static const char *const devices[] = { "a", "b", "c", "d", "e", "f", "g", "h" };

static void test_a_state_that_is_none(void **state)
{
    (void)state;
    assert_int_equal(dissent_state_parse("undecided"), DISSENT_UNDECIDED);
    assert_int_equal(dissent_state_parse("perfect"), DISSENT_NONE);
    assert_int_equal(dissent_state_parse(""), DISSENT_NONE);
}

/* So many runs that the likelihood of any rate is less than a double can be. */
static void test_many_runs_have_finite_evidence(void **state)
{
    double alike = dissent_evidence(5000, 10000, 35000, 70000, 1, 8);
    double apart = dissent_evidence(5000, 10000, 3500, 70000, 1, 8);

    (void)state;
    assert_true(isfinite(alike) && alike < 0);
    assert_true(isfinite(apart) && apart > 100);
}

/* Who is named under one load is named under every one, and counts once. */
static void test_a_name_is_of_the_device(void **state)
{
    struct rows r = { .count = 0 };
    struct dissent d;

    (void)state;
    for (int i = 0; i < 8; i++) {
        add(&r, devices[i], "x", "", 9, i == 3 ? "bb" : "aa", 9);
    }
    add(&r, "d", "x", LOADED, 9, "aa", 9);
    add(&r, "e", "x", LOADED, 9, "aa", 9);
    d = judge(&r);
    assert_int_equal(d.state, DISSENT_DISAGREE);
    assert_int_equal(d.devices, 8);
    assert_int_equal(d.dissenters, 1);
    assert_int_equal(d.agreeing, 7);
    assert_int_equal(d.agreeing_runs, 7 * 9 + 9);
    assert_string_equal(d.digest, "aa");
    for (int i = 0; i < r.count; i++) {
        assert_int_equal(r.rows[i].mark, strcmp(r.rows[i].device, "d") == 0
                                             ? DISSENT_DISSENTS
                                             : DISSENT_AGREES);
    }
}

/* One of eight devices was measured under load, and varies there only: either the
 * workload or the device may be why.  A second one that varies there, too, tells. */
static void test_a_device_alone_under_its_conditions(void **state)
{
    struct rows r = { .count = 0 };
    struct dissent d;

    (void)state;
    for (int i = 0; i < 8; i++) {
        add(&r, devices[i], "x", "", 6, "aa", 6);
    }
    add(&r, "c", "x", LOADED, 6, "bb", 1);
    d = judge(&r);
    assert_int_equal(d.state, DISSENT_UNDECIDED);
    assert_int_equal(d.agreeing, 7);
    assert_string_equal(d.words,
                        "6 runs of c depart, under conditions under which no other device"
                        " was measured; whether the workload varies or this device"
                        " computes wrong cannot be told yet");
    for (int i = 0; i < r.count; i++) {
        assert_false(r.rows[i].wanted); /* more of its runs would tell nothing */
    }
    add(&r, "d", "x", LOADED, 6, "cc", 1);
    assert_int_equal(judge(&r).state, DISSENT_VARIES);
}

/* Likewise where it shows one digest, but another one than all without load. */
static void test_a_device_alone_that_shows_another_digest(void **state)
{
    struct rows r = { .count = 0 };

    (void)state;
    add(&r, "c", "x", LOADED, 1, "bb", 1);
    for (int i = 0; i < 8; i++) {
        add(&r, devices[i], "x", "", 6, "aa", 6);
    }
    assert_string_equal(judge(&r).words,
                        "1 run of c departs, under conditions under which no other device"
                        " was measured; whether the workload varies or this device"
                        " computes wrong cannot be told yet");
    assert_int_equal(judge(&r).state, DISSENT_UNDECIDED);
    add(&r, "d", "x", LOADED, 6, "bb", 6); /* so it is the load */
    assert_int_equal(judge(&r).state, DISSENT_NONE);

    r.count = 0; /* two devices, neither under the other's conditions */
    add(&r, "c", "x", "", 6, "aa", 6);
    add(&r, "d", "x", LOADED, 6, "bb", 6);
    assert_int_equal(judge(&r).state, DISSENT_UNDECIDED);

    r.count = 0; /* one device: what else could it be */
    add(&r, "c", "x", "", 6, "aa", 6);
    add(&r, "c", "x", LOADED, 6, "bb", 6);
    assert_int_equal(judge(&r).state, DISSENT_NONE);
}

/* Two devices, each of which alone is in its state. */
static void test_devices_alone_under_their_conditions(void **state)
{
    static const char *const states[] = { "{\"vbios\":\"97\"}", "{\"vbios\":\"98\"}" };
    struct rows r = { .count = 0 };

    (void)state;
    for (int i = 0; i < 8; i++) {
        add(&r, devices[i], "x", "", 6, "aa", 6);
        r.rows[i].state = i < 2 ? states[i] : NULL;
        r.rows[i].mode = i < 2 ? "bb" : "aa";
    }
    assert_string_equal(
        judge(&r).words,
        "12 runs depart, on a, b, each alone in its state (VBIOS, ECC mode, clocks);"
        " whether the workload varies or devices compute wrong cannot be told yet");
    assert_int_equal(judge(&r).state, DISSENT_UNDECIDED);
    r.count = 0; /* one device, in two states */
    for (int i = 0; i < 8; i++) {
        add(&r, devices[i < 2 ? 0 : i], "x", "", 6, i < 2 ? "bb" : "aa", 6);
        r.rows[i].state = i < 2 ? states[i] : NULL;
    }
    assert_string_equal(
        judge(&r).words,
        "12 runs of a depart, in a state (VBIOS, ECC mode, clocks) in which no other"
        " device was measured; whether the workload varies or this device computes wrong"
        " cannot be told yet");
    r.count = 0; /* and was asked otherwise than the others */
    for (int i = 0; i < 8; i++) {
        add(&r, devices[i < 2 ? 0 : i], "x", i < 2 ? "c" : "", 6, i < 2 ? "bb" : "aa", 6);
        r.rows[i].state = i < 2 ? states[i] : NULL;
    }
    assert_string_equal(
        judge(&r).words,
        "12 runs of a depart, under conditions under which no other device"
        " was measured; whether the workload varies or this device"
        " computes wrong cannot be told yet");
}

/* The first by name come first, whichever conditions they had. */
static void test_names_are_in_order_over_conditions(void **state)
{
    struct rows r = { .count = 0 };
    struct dissent d;

    (void)state;
    for (int i = 0; i < 8; i++) {
        add(&r, devices[i], "x", "", 5, "aa", i == 6 ? 4 : 5);
        add(&r, devices[i], "x", LOADED, 5, "aa", i == 1 ? 4 : 5);
    }
    d = judge(&r);
    assert_int_equal(d.state, DISSENT_UNDECIDED);
    assert_string_equal(d.words,
                        "2 of 80 runs depart, on b, g; whether the workload "
                        "varies or devices compute wrong cannot be told yet");
}

/* Devices of one host vary, and are most devices, but not most hosts.  Those that agree
 * with themselves disagree; that follows no line between hosts, since all depart. */
static void test_camps_beside_a_host_that_varies(void **state)
{
    struct rows r = { .count = 0 };
    struct dissent d;

    (void)state;
    add(&r, "a", "host-1", "", 20, "bb", 20);
    add(&r, "b", "host-0", "", 3, "aa", 2);
    add(&r, "c", "host-0", "", 3, "aa", 2);
    add(&r, "d", "host-0", "", 3, "aa", 2);
    add(&r, "e", "host-2", "", 20, "cc", 20);
    add(&r, "a", "host-1", LOADED, 3, "bb", 3);
    d = judge(&r);
    assert_int_equal(d.state, DISSENT_DISAGREE);
    assert_false(d.hosts_differ);
    assert_int_equal(d.dissenters, 0);
    assert_int_equal(d.agreeing, 0);
    assert_string_equal(d.words, "1 of 5 devices say bb (a), 1 say cc (e): no majority");
}

/* Each device of a host gives another digest each run: the host may be the cause. */
static void test_a_host_that_differs_with_itself(void **state)
{
    struct rows r = { .count = 0 };
    struct dissent d;

    (void)state;
    for (int i = 0; i < 8; i++) {
        add(&r, devices[i], i < 3 ? "host-1" : "host-0", "", 20, i < 3 ? "bb" : "aa",
            i < 3 ? 1 : 20);
    }
    d = judge(&r);
    assert_int_equal(d.state, DISSENT_DISAGREE);
    assert_true(d.hosts_differ);
    assert_int_equal(d.dissenters, 0);
    assert_int_equal(d.agreeing, 5);
    assert_string_equal(d.words,
                        "all devices of some hosts depart, and differ with "
                        "themselves, too: hosts differ");
}

/* Likewise where the other host varies rarely, so no device agrees with itself. */
static void test_hosts_that_differ_and_vary(void **state)
{
    struct rows r = { .count = 0 };
    struct dissent d;

    (void)state;
    for (int i = 0; i < 8; i++) {
        add(&r, devices[i], i < 3 ? "host-1" : "host-0", "", 40, i < 3 ? "bb" : "aa",
            i < 3 ? 1 : 39);
    }
    d = judge(&r);
    assert_int_equal(d.state, DISSENT_BOTH);
    assert_true(d.hosts_differ);
    assert_int_equal(d.dissenters, 0);
    assert_string_equal(d.words,
                        "all devices of some hosts depart, and differ with "
                        "themselves, too: hosts differ");
}

/* Devices that were flashed are compared with each other.  Those that have been measured
 * under what they had before can have no further run so. */
static void test_a_flash(void **state)
{
    struct rows r = { .count = 0 };
    struct dissent d;

    (void)state;
    for (int i = 0; i < 8; i++) {
        add(&r, devices[i], "x", "", 5, i == 2 ? "cc" : "aa", 5);
        r.rows[i].past = i < 2;
    }
    add(&r, "a", "x", "", 9, "bb", 9);
    r.rows[8].state = "{\"vbios\":\"97\"}";
    d = judge(&r);
    assert_int_equal(d.state, DISSENT_UNDECIDED);
    assert_int_equal(d.dissenters, 0);
    for (int i = 0; i < r.count; i++) {
        assert_true(!r.rows[i].wanted || !r.rows[i].past);
    }
    add(&r, "b", "x", "", 9, "bb", 9);
    add(&r, "d", "x", "", 9, "bb", 9);
    add(&r, "e", "x", "", 9, "dd", 9);
    add(&r, "f", "x", "", 9, "bb", 9);
    for (int i = 0; i < r.count; i++) {
        r.rows[i].state = strcmp(r.rows[i].mode, "aa") && strcmp(r.rows[i].mode, "cc")
                              ? "{\"vbios\":\"97\"}"
                              : NULL;
    }
    d = judge(&r);
    assert_int_equal(d.state, DISSENT_DISAGREE);
    assert_int_equal(d.dissenters, 1);
    assert_non_null(strstr(d.words, "1 of 8 devices dissents: e (9 of 14 runs)"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_state_that_is_none),
        cmocka_unit_test(test_many_runs_have_finite_evidence),
        cmocka_unit_test(test_a_name_is_of_the_device),
        cmocka_unit_test(test_a_device_alone_under_its_conditions),
        cmocka_unit_test(test_a_device_alone_that_shows_another_digest),
        cmocka_unit_test(test_devices_alone_under_their_conditions),
        cmocka_unit_test(test_names_are_in_order_over_conditions),
        cmocka_unit_test(test_a_flash),
        cmocka_unit_test(test_camps_beside_a_host_that_varies),
        cmocka_unit_test(test_a_host_that_differs_with_itself),
        cmocka_unit_test(test_hosts_that_differ_and_vary),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
