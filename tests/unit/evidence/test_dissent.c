/* Who is named, and who never is: fleets of which the truth is known, and the figures
 * that this rests on. */
#include "tests/unit/evidence/dissent_fixture.h"

#include <math.h>

#include "daemon/base/array.h"

enum { FLEETS = 1000 };

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_evidence_is_rare_under_one_rate),
        cmocka_unit_test(test_how_soon_a_device_is_named),
        cmocka_unit_test(test_what_is_certain),
        cmocka_unit_test(test_what_is_open),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
