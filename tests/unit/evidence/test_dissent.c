/* Who is named, and who never is: single cases, and fleets of which the truth is known.
 */
#include "daemon/evidence/dissent.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/array.h"

enum { DEVICES = 12, RUNS = 200, FLEETS = 1000 };

/* A cell of a fleet: which digest each run of each device gave (0: the right one). */
struct fleet {
    int devices, hosts;
    int host_of[DEVICES];
    int runs[DEVICES];
    int digests[DEVICES][RUNS];
    int most[DEVICES], most_runs[DEVICES]; /* as of the last look, of so many runs */
    int looked[DEVICES];
    char ids[DEVICES][16], names[DEVICES][16], modes[DEVICES][DIGEST_TEXT_SIZE];
    struct dissent_row rows[DEVICES];
    struct dissent dissent;
};

static uint64_t seed;

static double drawn(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (double)(seed >> 11) / 9007199254740992.0;
}

static int pick(int count)
{
    return (int)(drawn() * count);
}

static void seeded(int fleet, int salt)
{
    seed = 0x9e3779b97f4a7c15u * (uint64_t)(fleet + 1) + (uint64_t)salt * 7919;
    for (int i = 0; i < 8; i++) {
        drawn();
    }
}

/* As many devices on each host, as far as they go. */
static void make(struct fleet *f, int devices, int hosts)
{
    memset(f, 0, sizeof *f);
    f->devices = devices;
    f->hosts = hosts;
    for (int i = 0; i < devices; i++) {
        f->host_of[i] = i % hosts;
        snprintf(f->ids[i], sizeof f->ids[i], "GPU-%02d", i);
        snprintf(f->names[i], sizeof f->names[i], "host-%d", f->host_of[i]);
    }
}

static void run(struct fleet *f, int device, int digest)
{
    assert_true(f->runs[device] < RUNS);
    f->digests[device][f->runs[device]++] = digest;
}

static int shown(const struct fleet *f, int device, int digest)
{
    int runs = 0;

    for (int r = 0; r < f->runs[device]; r++) {
        runs += f->digests[device][r] == digest;
    }
    return runs;
}

static int number_of(const char *digest)
{
    char number[9];

    snprintf(number, sizeof number, "%.8s", digest);
    return (int)strtol(number, NULL, 16);
}

/* Counts only grow, so what was most frequent is overtaken by what was new since. */
static void find_mode(struct fleet *f, int i)
{
    f->most_runs[i] = f->looked[i] ? shown(f, i, f->most[i]) : 0;
    for (int r = f->looked[i]; r < f->runs[i]; r++) {
        int digest = f->digests[i][r];
        int runs = shown(f, i, digest);

        if (runs > f->most_runs[i] || (runs == f->most_runs[i] && digest < f->most[i])) {
            f->most[i] = digest;
            f->most_runs[i] = runs;
        }
    }
    if (f->looked[i] < f->runs[i]) {
        snprintf(f->modes[i], sizeof f->modes[i], "%08x%024d", (unsigned)f->most[i], 0);
    }
    f->looked[i] = f->runs[i];
}

/* Looks at what the fleet has measured so far, devices in some order. */
static void look(struct fleet *f)
{
    int count = 0;

    for (int i = f->devices - 1; i >= 0; i--) {
        struct dissent_row *row = &f->rows[count];

        if (f->runs[i] == 0) {
            continue;
        }
        find_mode(f, i);
        *row = (struct dissent_row){
            .device = f->ids[i],
            .host = f->names[i],
            .options = "",
            .runs = f->runs[i],
            .iterations = 2 * f->runs[i],
            .varied = f->most_runs[i] < f->runs[i],
            .mode = f->modes[i],
            .mode_runs = f->most_runs[i],
        };
        count++;
    }
    dissent_majorities(f->rows, count);
    for (int i = 0; i < count; i++) {
        struct dissent_row *row = &f->rows[i];

        if (row->majority_runs < 0) {
            row->majority_runs = shown(f, (int)strtol(row->device + 4, NULL, 10),
                                       number_of(row->majority));
        }
    }
    f->dissent = dissent_judge(f->rows, count);
}

static const struct dissent_row *row_of(const struct fleet *f, int device)
{
    for (int i = 0; i < f->devices; i++) {
        if (f->rows[i].device && strcmp(f->rows[i].device, f->ids[device]) == 0) {
            return &f->rows[i];
        }
    }
    return NULL;
}

static bool is_named(const struct fleet *f, int device)
{
    const struct dissent_row *row = row_of(f, device);

    return row && row->mark == DISSENT_DISSENTS;
}

/* What is true of a fleet. */
struct truth {
    const char *what;
    int devices, hosts, runs;
    bool wrong[DEVICES];
    double rate;   /* of the runs of a wrong device */
    int from;      /* the first run that it is wrong in */
    bool another;  /* each wrong run another digest; else always the same */
    bool own;      /* the same digest for each device; else for all */
    double varies; /* of the runs of all devices */
    bool two;      /* then one other digest; else each run another */
    enum dissent_state end;
    int named; /* how many at the end, in each fleet */
};

static int digest_of(const struct truth *t, int device, int r)
{
    if (t->wrong[device] && r >= t->from && drawn() < t->rate) {
        return t->another ? 1000 + pick(1 << 28) : t->own ? 10 + device : 1;
    }
    if (drawn() < t->varies) {
        return t->two ? 2 : 1000 + pick(1 << 28);
    }
    return 0;
}

static void check_look(const struct truth *t, const struct fleet *f)
{
    bool wrong = false;

    for (int i = 0; i < f->devices; i++) {
        if (is_named(f, i) && !t->wrong[i]) {
            fail_msg("%s: %s is healthy: %s", t->what, f->ids[i], f->dissent.words);
        }
        wrong |= t->wrong[i];
    }
    if (t->varies == 0 &&
        (f->dissent.state == DISSENT_VARIES || f->dissent.state == DISSENT_BOTH)) {
        fail_msg("%s: it does not vary", t->what);
    }
    if (!wrong && (f->dissent.state == DISSENT_DISAGREE || f->dissent.dissenters > 0)) {
        fail_msg("%s: devices do not disagree: %s", t->what, f->dissent.words);
    }
}

/* Rounds of one run a device, in any order; from the second on it looks at each run.
 * Then as many further runs as are wanted, up to MORE a device. */
static void measure(const struct truth *t, struct fleet *f, int more)
{
    int asked[DEVICES] = { 0 };

    make(f, t->devices, t->hosts);
    for (int r = 0; r < t->runs; r++) {
        int first = pick(t->devices);

        for (int i = 0; i < t->devices; i++) {
            int device = (first + i * 7) % t->devices;

            run(f, device, digest_of(t, device, f->runs[device]));
            if (r > 0) {
                look(f);
                check_look(t, f);
            }
        }
    }
    for (bool again = true; again;) {
        again = false;
        for (int i = 0; i < t->devices; i++) {
            if (row_of(f, i)->wanted && asked[i] < more) {
                asked[i]++;
                again = true;
                run(f, i, digest_of(t, i, f->runs[i]));
            }
        }
        look(f);
        check_look(t, f);
    }
}

static void expect_truth(const struct truth *t, int fleets)
{
    static struct fleet f;
    int right = 0;

    assert_true(t->devices % 7 != 0 && t->devices <= DEVICES);
    for (int n = 0; n < fleets; n++) {
        seeded(n, t->devices * 31 + t->runs);
        measure(t, &f, 20);
        right += f.dissent.dissenters == t->named &&
                 (f.dissent.state == t->end ||
                  (t->varies > 0 && f.dissent.state == DISSENT_BOTH));
    }
    if (right < fleets) {
        fail_msg("%s: %d of %d; the last: %s, %d named: %s", t->what, right, fleets,
                 dissent_state_name(f.dissent.state), f.dissent.dissenters,
                 f.dissent.words);
    }
}

static const struct truth certain[] = {
    { "one device always wrong",
      8,
      2,
      5,
      { [3] = true },
      1,
      0,
      false,
      false,
      0,
      false,
      DISSENT_DISAGREE,
      1 },
    { "three runs a device",
      8,
      2,
      3,
      { [3] = true },
      1,
      0,
      false,
      false,
      0,
      false,
      DISSENT_DISAGREE,
      1 },
    { "each run another digest",
      8,
      2,
      5,
      { [0] = true },
      1,
      0,
      true,
      false,
      0,
      false,
      DISSENT_DISAGREE,
      1 },
    { "each device a host",
      8,
      8,
      5,
      { [7] = true },
      1,
      0,
      false,
      false,
      0,
      false,
      DISSENT_DISAGREE,
      1 },
    { "wrong half-way",
      8,
      2,
      20,
      { [5] = true },
      1,
      10,
      false,
      false,
      0,
      false,
      DISSENT_DISAGREE,
      1 },
    { "wrong half-way, three devices",
      3,
      3,
      30,
      { [1] = true },
      1,
      15,
      true,
      false,
      0,
      false,
      DISSENT_DISAGREE,
      1 },
    { "two causes",
      8,
      2,
      8,
      { [1] = true, [4] = true },
      1,
      0,
      false,
      true,
      0,
      false,
      DISSENT_DISAGREE,
      2 },
    { "two causes of one host",
      8,
      4,
      8,
      { [1] = true, [5] = true },
      1,
      0,
      true,
      true,
      0,
      false,
      DISSENT_DISAGREE,
      2 },
    { "a wrong host of four",
      8,
      4,
      5,
      { [1] = true, [5] = true },
      1,
      0,
      false,
      false,
      0,
      false,
      DISSENT_DISAGREE,
      2 },
    { "a wrong host of two",
      8,
      2,
      5,
      { [0] = true, [2] = true, [4] = true, [6] = true },
      1,
      0,
      false,
      false,
      0,
      false,
      DISSENT_DISAGREE,
      0 },
    { "four against four across hosts",
      8,
      2,
      5,
      { [0] = true, [1] = true, [2] = true, [3] = true },
      1,
      0,
      false,
      false,
      0,
      false,
      DISSENT_DISAGREE,
      0 },
    { "two devices",
      2,
      2,
      15,
      { [1] = true },
      1,
      0,
      false,
      false,
      0,
      false,
      DISSENT_DISAGREE,
      0 },
    { "it varies often",
      8,
      2,
      5,
      { false },
      0,
      0,
      false,
      false,
      0.9,
      false,
      DISSENT_VARIES,
      0 },
    { "it varies rarely beside a wrong device",
      8,
      2,
      12,
      { [2] = true },
      1,
      0,
      false,
      false,
      0.01,
      false,
      DISSENT_DISAGREE,
      1 },
    { "nothing", 8, 2, 5, { false }, 0, 0, false, false, 0, false, DISSENT_NONE, 0 },
};

static void test_what_is_certain(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT_OF(certain); i++) {
        expect_truth(&certain[i], FLEETS);
    }
}

/* Nobody who is healthy is named, and nothing is called what it is not, at any look; how
 * it ends is open. */
static const struct truth open_ended[] = {
    { .what = "one run in a thousand",
      .devices = 8,
      .hosts = 2,
      .runs = 60,
      .wrong = { [3] = true },
      .rate = 0.001,
      .another = true },
    { .what = "one run in ten",
      .devices = 8,
      .hosts = 2,
      .runs = 30,
      .wrong = { [3] = true },
      .rate = 0.1 },
    { .what = "a host of two with other digests each run",
      .devices = 8,
      .hosts = 2,
      .runs = 8,
      .wrong = { [0] = true, [2] = true, [4] = true, [6] = true },
      .rate = 1,
      .another = true },
    { .what = "it varies in one run of 8",
      .devices = 8,
      .hosts = 2,
      .runs = 6,
      .varies = 0.125 },
    { .what = "it varies in one run of 100",
      .devices = 8,
      .hosts = 2,
      .runs = 40,
      .varies = 0.01 },
    { .what = "two digests, one run of 8",
      .devices = 8,
      .hosts = 2,
      .runs = 6,
      .varies = 0.125,
      .two = true },
    { .what = "two digests, one run of 100",
      .devices = 8,
      .hosts = 2,
      .runs = 40,
      .varies = 0.01,
      .two = true },
    { .what = "two digests, every other run",
      .devices = 8,
      .hosts = 2,
      .runs = 6,
      .varies = 0.5,
      .two = true },
    { .what = "three devices, one run of 3",
      .devices = 3,
      .hosts = 3,
      .runs = 8,
      .varies = 0.33,
      .two = true },
    { .what = "it varies, and a device is often wrong",
      .devices = 8,
      .hosts = 2,
      .runs = 8,
      .wrong = { [6] = true },
      .rate = 0.5,
      .varies = 0.2 },
};

static void test_what_is_open(void **state)
{
    static struct fleet f;

    (void)state;
    for (int i = 0; i < COUNT_OF(open_ended); i++) {
        for (int n = 0; n < FLEETS; n++) {
            seeded(n, 100 + i);
            measure(&open_ended[i], &f, 20);
        }
    }
}

/* What the test rests on: of all that one common rate can give, E comes to 1 at most,
 * summed over the devices that it may be about. */
static void test_evidence_is_rare_under_one_rate(void **state)
{
    (void)state;
    for (int runs = 1; runs <= 12; runs += 1 + runs / 3) {
        for (int others = 2; others <= 30; others += 7) {
            for (double p = 0.01; p < 1; p += 0.07) {
                double sum = 0;

                for (int b = 0; b <= runs; b++) {
                    for (int c = 0; c <= others; c++) {
                        double ways = lgamma(runs + 1.0) - lgamma(b + 1.0) -
                                      lgamma(runs - b + 1.0) + lgamma(others + 1.0) -
                                      lgamma(c + 1.0) - lgamma(others - c + 1.0);
                        double log_p =
                            ways + (b + c) * log(p) + (runs + others - b - c) * log1p(-p);

                        sum += exp(log_p +
                                   M_LN10 * dissent_evidence(b, runs, c, others, 1, 8));
                    }
                }
                assert_true(8 * sum <= 1);
            }
        }
    }
}

/* The figures of the header. */
static void test_how_soon_a_device_is_named(void **state)
{
    const double enough = log10(DISSENT_EVIDENCE);

    (void)state;
    assert_true(dissent_evidence(6, 6, 0, 35, 1, 8) < enough);
    assert_true(dissent_evidence(7, 7, 0, 35, 1, 8) >= enough);
    assert_true(dissent_evidence(2, 2, 0, 3 * 3999, 1, 4000) < enough);
    assert_true(dissent_evidence(3, 3, 0, 3 * 3999, 1, 4000) >= enough);
    assert_true(dissent_evidence(1, 5, 0, 35, 1, 8) < 0);
    assert_true(dissent_evidence(3, 1000, 0, 7000, 1, 8) < enough);
    assert_true(dissent_evidence(12, 12000, 0, 84000, 1, 8) >= enough);
}

/* SPEC: for each device its digests, one letter a run; B is the only wrong one. */
static struct dissent judged(struct fleet *f, int hosts, const char *const *specs,
                             int devices)
{
    make(f, devices, hosts);
    for (int i = 0; i < devices; i++) {
        for (const char *c = specs[i]; *c; c++) {
            run(f, i, *c - 'A');
        }
    }
    look(f);
    return f->dissent;
}

static void test_one_departure_says_nothing(void **state)
{
    static const char *const specs[] = { "AAAAA", "AAAAA", "AABAA", "AAAAA",
                                         "AAAAA", "AAAAA", "AAAAA", "AAAAA" };
    static struct fleet f;
    struct dissent d = judged(&f, 2, specs, COUNT_OF(specs));

    (void)state;
    assert_int_equal(d.state, DISSENT_UNDECIDED);
    assert_int_equal(d.dissenters, 0);
    assert_int_equal(d.agreeing, 7);
    assert_string_equal(d.words,
                        "1 of 40 runs departs, on GPU-02; whether the workload "
                        "varies or this device computes wrong cannot be told yet");
    assert_true(row_of(&f, 2)->wanted);
    assert_int_equal(row_of(&f, 2)->mark, DISSENT_DEPARTS);
}

static void test_words_of_a_dissenter(void **state)
{
    static const char *const specs[] = { "AAAAA", "AAAAA", "BBBBBBBB", "AAAAA",
                                         "AAAAA", "AAAAA", "AAAAA",    "AAAAA" };
    static struct fleet f;
    struct dissent d = judged(&f, 2, specs, COUNT_OF(specs));

    (void)state;
    assert_int_equal(d.state, DISSENT_DISAGREE);
    assert_string_equal(d.words, "1 of 8 devices dissents: GPU-02 (8 of 8 runs)");
    assert_int_equal(d.agreeing, 7);
    assert_int_equal(d.agreeing_runs, 35);
    assert_string_equal(d.digest, "00000000000000000000000000000000");
    for (int i = 0; i < 8; i++) {
        assert_false(row_of(&f, i)->wanted);
    }
}

static void test_camps_along_hosts(void **state)
{
    static const char *const even[] = { "AAAAA", "BBBBB", "AAAAA", "BBBBB",
                                        "AAAAA", "BBBBB", "AAAAA", "BBBBB" };
    static const char *const two[] = { "AAAAAAA", "BBBBBBBB" };
    static const char *const most_of_one[] = { "AAAAAAAA", "BBBBBBBB", "AAAAAAAA",
                                               "AAAAAAAA", "AAAAAAAA", "AAAAAAAA" };
    static struct fleet f;
    struct dissent d = judged(&f, 2, even, COUNT_OF(even));

    (void)state;
    assert_int_equal(d.state, DISSENT_DISAGREE);
    assert_true(d.hosts_differ);
    assert_int_equal(d.dissenters, 0);
    assert_string_equal(d.words,
                        "4 of 8 devices say 00000000 (host-0), 4 say 00000001 "
                        "(host-1): hosts differ");
    d = judged(&f, 1, two, COUNT_OF(two));
    assert_int_equal(d.dissenters, 0);
    /* A device alone on its host is its host. */
    make(&f, 6, 6);
    for (int i = 0; i < 6; i++) {
        for (const char *c = most_of_one[i]; *c; c++) {
            run(&f, i, *c - 'A');
        }
        snprintf(f.names[i], sizeof f.names[i], i == 1 ? "host-1" : "host-0");
    }
    look(&f);
    assert_int_equal(f.dissent.dissenters, 0);
    assert_true(f.dissent.hosts_differ);
    for (int i = 0; i < 6; i++) {
        snprintf(f.names[i], sizeof f.names[i], "host-%c", (char)('0' + i));
    }
    look(&f);
    assert_int_equal(f.dissent.dissenters, 1);
    assert_true(is_named(&f, 1));
}

/* A digest that shows only under load says nothing of the device that had the load. */
static void test_conditions_are_apart(void **state)
{
    struct dissent_row rows[10];
    struct dissent d;

    (void)state;
    for (int i = 0; i < 8; i++) {
        static const char *const names[] = { "a", "b", "c", "d", "e", "f", "g", "h" };

        rows[i] = (struct dissent_row){ .device = names[i],
                                        .host = "x",
                                        .options = "",
                                        .runs = 9,
                                        .mode = "aa",
                                        .mode_runs = 9 };
    }
    rows[8] = rows[3];
    rows[8].options = "{\"contention\":4}";
    rows[8].mode = "bb";
    rows[9] = rows[8]; /* of one device alone it could not be told */
    rows[9].device = "e";
    dissent_majorities(rows, 10);
    d = dissent_judge(rows, 10);
    assert_int_equal(d.state, DISSENT_NONE);
    assert_int_equal(d.devices, 8);
    assert_int_equal(d.agreeing, 8);
    assert_string_equal(d.digest, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_evidence_is_rare_under_one_rate),
        cmocka_unit_test(test_how_soon_a_device_is_named),
        cmocka_unit_test(test_one_departure_says_nothing),
        cmocka_unit_test(test_words_of_a_dissenter),
        cmocka_unit_test(test_camps_along_hosts),
        cmocka_unit_test(test_conditions_are_apart),
        cmocka_unit_test(test_what_is_certain),
        cmocka_unit_test(test_what_is_open),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
