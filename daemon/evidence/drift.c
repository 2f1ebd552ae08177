#include "daemon/evidence/drift.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/evidence/classes.h"

static const struct {
    const char *name, *words;
} kinds[DRIFT_KIND_COUNT] = {
    [DRIFT_VARIES_NOW] = { "varies_now", "vary now" },
    [DRIFT_DISAGREE_NOW] = { "devices_disagree_now", "have devices that disagree now" },
    [DRIFT_FAILS_NOW] = { "fails_now", "fail now" },
    [DRIFT_BITS] = { "bits_changed", "changed bits" },
    [DRIFT_ALGORITHM] = { "algorithm_changed", "have another algorithm" },
    [DRIFT_COST] = { "cost_changed", "have another cost" },
    [DRIFT_VERDICT] = { "verdict_changed", "have another verdict" },
    [DRIFT_UNKNOWN] = { "cannot_be_told_yet", "cannot be told yet" },
    [DRIFT_DISAPPEARED] = { "disappeared", "disappeared" },
    [DRIFT_APPEARED] = { "appeared", "appeared" },
    [DRIFT_VARIES] = { "varies", "vary before and after" },
    [DRIFT_NEITHER] = { "computed_on_neither_side", "are computed on neither side" },
    [DRIFT_SAME] = { "same_bits", "same bits" },
};

const char *drift_kind_name(enum drift_kind kind)
{
    return kinds[kind].name;
}

const char *drift_kind_words(enum drift_kind kind)
{
    return kinds[kind].words;
}

__attribute__((format(printf, 3, 4))) static void
say(struct drift_case *c, enum drift_kind kind, const char *format, ...)
{
    va_list args;

    c->kind = kind;
    va_start(args, format);
    vsnprintf(c->reason, sizeof c->reason, format, args);
    va_end(args);
}

static bool is_out(const struct drift_side *side)
{
    return side->verdict == VERDICT_FAILING || side->verdict == VERDICT_UNSUPPORTED;
}

static bool varies(const struct drift_side *side)
{
    return side->distinct_digests > 1;
}

/* What is measured on one side only.  What has failed everywhere is no measurement. */
static void judge_one_sided(struct drift_case *c)
{
    const struct drift_side *to = &c->to;
    const struct drift_side *from = &c->from;
    bool since = from->runs > 0 || to->cell == 0; /* the side that lacks it */
    enum drift_reach reach = since ? to->reach : from->reach;

    if (from->cell == 0 && reach != DRIFT_RUNNABLE) {
        say(c, DRIFT_APPEARED, "%s now; the environment before did not measure it",
            verdict_name(to->verdict));
    } else if (to->cell == 0 && reach == DRIFT_NO_CASE) {
        say(c, DRIFT_DISAPPEARED, "measured before; no device has this case now");
    } else {
        c->lacks_from = !since && reach == DRIFT_RUNNABLE;
        c->lacks_to = since && reach == DRIFT_RUNNABLE;
        say(c, DRIFT_UNKNOWN, "not measured %s%s", since ? "since" : "before",
            reach == DRIFT_RUNNABLE ? ""
                                    : "; no device that has the environment is online");
    }
}

/* Fewer processes than it takes to see that a digest repeats. */
static bool is_too_few(const struct drift_side *side)
{
    return side->runs < VERDICT_MIN_RUNS && !varies(side);
}

static void judge_too_few(struct drift_case *c)
{
    bool from = is_too_few(&c->from);
    bool to = is_too_few(&c->to);

    c->lacks_from = from && c->from.reach == DRIFT_RUNNABLE;
    c->lacks_to = to && c->to.reach == DRIFT_RUNNABLE;
    say(c, DRIFT_UNKNOWN,
        "%" PRId64 " run%s before and %" PRId64 " since; it takes %d of each",
        c->from.runs, c->from.runs == 1 ? "" : "s", c->to.runs, VERDICT_MIN_RUNS);
}

static void judge_bits(struct drift_case *c)
{
    const struct drift_side *from = &c->from;
    const struct drift_side *to = &c->to;

    c->bits_told = true;
    c->bits_same = strcmp(from->digest, to->digest) == 0;
    c->proven = c->bits_same && from->verdict == VERDICT_REPRODUCIBLE &&
                to->verdict == VERDICT_REPRODUCIBLE;
    if (!c->bits_same) {
        say(c, DRIFT_BITS,
            "digest %.8s in %" PRId64 " runs before, %.8s in %" PRId64 " runs now",
            from->digest, from->runs, to->digest, to->runs);
    } else if (c->algorithm_changed) {
        say(c, DRIFT_ALGORITHM, "%.120s before, %.120s now; the same bits",
            from->algorithm, to->algorithm);
    } else if (c->cost_changed) {
        say(c, DRIFT_COST, "%.2f times as long; the same bits", c->cost.median);
    } else if (from->verdict != to->verdict) {
        say(c, DRIFT_VERDICT, "%s before, %s now; the same bits",
            verdict_name(from->verdict), verdict_name(to->verdict));
    } else {
        say(c, DRIFT_SAME, "digest %.8s in %" PRId64 " runs before and %" PRId64 " now%s",
            to->digest, from->runs, to->runs,
            c->proven ? "" : "; not proven reproducible");
    }
}

static void judge_varying(struct drift_case *c)
{
    const struct drift_side *from = &c->from;
    const struct drift_side *to = &c->to;

    if (!varies(from)) {
        say(c,
            c->is_control                             ? DRIFT_VERDICT
            : to->verdict == VERDICT_VARIES           ? DRIFT_VARIES_NOW
            : to->verdict == VERDICT_DEVICES_DISAGREE ? DRIFT_DISAGREE_NOW
                                                      : DRIFT_UNKNOWN,
            "one digest in %" PRId64 " runs before, %" PRId64 " in %" PRId64
            " runs now (%s)",
            from->runs, to->distinct_digests, to->runs, verdict_name(to->verdict));
    } else if (!varies(to)) {
        say(c, DRIFT_VERDICT,
            "%" PRId64 " digests in %" PRId64 " runs before, one in %" PRId64
            " runs now (%s)",
            from->distinct_digests, from->runs, to->runs, verdict_name(to->verdict));
    } else if (c->algorithm_changed) {
        say(c, DRIFT_ALGORITHM, "%.120s before, %.120s now; it varies with both",
            from->algorithm, to->algorithm);
    } else if (c->cost_changed) {
        say(c, DRIFT_COST, "%.2f times as long; it varies before and after",
            c->cost.median);
    } else if (from->verdict != to->verdict) {
        say(c, DRIFT_VERDICT, "%s before, %s now", verdict_name(from->verdict),
            verdict_name(to->verdict));
    } else {
        say(c, DRIFT_VARIES,
            "%" PRId64 " digests in %" PRId64 " runs before, %" PRId64 " in %" PRId64
            " now: no bits to compare",
            from->distinct_digests, from->runs, to->distinct_digests, to->runs);
    }
}

/* Beyond noise: the middle halves are apart, by more than a histogram's bucket explains,
 * and so is the order of all runs with an error of less than 1 % (times_shift). */
static void judge_cost(struct drift_case *c)
{
    static const double least = 0.05;
    static const double two_sided = 2.576; /* of the normal distribution, 1 % */

    c->cost = times_cost(&c->to.times, &c->from.times);
    c->cost_changed = c->cost.known && fabs(c->shift) >= two_sided &&
                      (c->cost.low > 1 || c->cost.high < 1) &&
                      fabs(c->cost.median - 1) >= least;
}

void drift_judge(struct drift_case *c)
{
    const struct drift_side *from = &c->from;
    const struct drift_side *to = &c->to;

    c->bits_told = c->bits_same = c->proven = c->lacks_from = c->lacks_to = false;
    judge_cost(c);
    c->algorithm_changed = from->algorithms == 1 && to->algorithms == 1 &&
                           strcmp(from->algorithm, to->algorithm) != 0;
    if (from->damaged || to->damaged) {
        say(c, DRIFT_UNKNOWN,
            "its row in the database is not what was stored: see /readyz and the log");
    } else if (from->contested || to->contested) {
        say(c, DRIFT_UNKNOWN, "its inputs are contested: see /v1/inputs");
    } else if (is_out(from) && is_out(to)) {
        say(c, DRIFT_NEITHER, "%s before, %s now", verdict_name(from->verdict),
            verdict_name(to->verdict));
    } else if (is_out(to) && from->runs > 0) {
        say(c, DRIFT_FAILS_NOW, "%s before, %s now", verdict_name(from->verdict),
            verdict_name(to->verdict));
    } else if (is_out(from) && to->runs > 0) {
        say(c, DRIFT_VERDICT, "%s before, %s now", verdict_name(from->verdict),
            verdict_name(to->verdict));
    } else if (from->runs == 0 || to->runs == 0) {
        judge_one_sided(c);
    } else if (is_too_few(from) || is_too_few(to)) {
        judge_too_few(c);
    } else if (varies(from) || varies(to)) {
        judge_varying(c);
    } else {
        judge_bits(c);
    }
}

/* Order, groups, counts. */

static int compare_groups(const struct drift_case *a, const struct drift_case *b)
{
    int order = (int)a->kind - (int)b->kind;

    order = order ? order : strcmp(a->key.workload, b->key.workload);
    order = order ? order : (int)a->subject - (int)b->subject;
    order = order ? order : strcmp(a->subject_name, b->subject_name);
    order = order ? order : strcmp(a->from.algorithm, b->from.algorithm);
    return order ? order : strcmp(a->to.algorithm, b->to.algorithm);
}

static int compare_cases(const void *a, const void *b)
{
    const struct drift_case *left = a;
    const struct drift_case *right = b;
    int order = compare_groups(left, right);

    return order ? order : classes_compare_keys(&left->key, &right->key);
}

void drift_sort(struct drift_case *cases, int count)
{
    if (count > 0) {
        qsort(cases, (size_t)count, sizeof *cases, compare_cases);
    }
}

bool drift_same_group(const struct drift_case *a, const struct drift_case *b)
{
    return compare_groups(a, b) == 0;
}

static int by_number(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;

    return left < right ? -1 : left > right;
}

/* The median of the ratios above 1, or below. */
static double median_ratio(const struct drift_case *cases, int count, bool above,
                           int *ret_count)
{
    double *ratios = xcalloc((size_t)count + 1, sizeof *ratios);
    int n = 0;
    double median;

    for (int i = 0; i < count; i++) {
        if (cases[i].cost_changed && (cases[i].cost.median > 1) == above) {
            ratios[n++] = cases[i].cost.median;
        }
    }
    qsort(ratios, (size_t)n, sizeof *ratios, by_number);
    median = n ? ratios[(n - 1) / 2] : 1;
    free(ratios);
    *ret_count = n;
    return median;
}

struct drift_counts drift_count(const struct drift_case *cases, int count)
{
    struct drift_counts counts = { .same_bits = 0 };

    for (int i = 0; i < count; i++) {
        counts.kinds[cases[i].kind]++;
        counts.same_bits += cases[i].bits_told && cases[i].bits_same;
        counts.proven += cases[i].proven;
    }
    counts.dearer_median = median_ratio(cases, count, true, &counts.dearer);
    counts.cheaper_median = median_ratio(cases, count, false, &counts.cheaper);
    return counts;
}

struct line {
    char *text;
    size_t size, length;
};

__attribute__((format(printf, 2, 3))) static void add(struct line *line,
                                                      const char *format, ...)
{
    va_list args;
    int written;

    va_start(args, format);
    written =
        vsnprintf(line->text + line->length, line->size - line->length, format, args);
    va_end(args);
    line->length += (size_t)written;
    if (line->length >= line->size) {
        line->length = line->size - 1;
    }
}

enum { NAMED_MAX = 3 };

/* ": conv_wgrad algo_1, ctc_loss ordered and 2 more" */
static void name_cases(struct line *line, const struct drift_case *cases, int count,
                       enum drift_kind kind)
{
    const struct case_key *last = NULL;
    int named = 0;
    int more = 0;

    for (int i = 0; i < count; i++) {
        const struct case_key *key = &cases[i].key;

        if (cases[i].kind != kind ||
            (last && strcmp(last->workload, key->workload) == 0 &&
             strcmp(last->variant, key->variant) == 0)) {
            continue; /* another size, dtype or seed of it */
        }
        last = key;
        if (named < NAMED_MAX) {
            add(line, "%s%s %s", named ? ", " : ": ", key->workload, key->variant);
            named++;
        } else {
            more++;
        }
    }
    if (more) {
        add(line, " and %d more", more);
    }
}

void drift_headline(const struct drift_case *cases, int count,
                    char ret_text[DRIFT_HEADLINE_SIZE])
{
    static const enum drift_kind named[] = { DRIFT_BITS, DRIFT_VARIES_NOW,
                                             DRIFT_DISAGREE_NOW, DRIFT_FAILS_NOW,
                                             DRIFT_ALGORITHM };
    static const enum drift_kind counted[] = { DRIFT_VERDICT, DRIFT_DISAPPEARED,
                                               DRIFT_APPEARED, DRIFT_UNKNOWN };
    struct drift_counts counts = drift_count(cases, count);
    struct line line = { ret_text, DRIFT_HEADLINE_SIZE, 0 };

    add(&line, "%d case%s same bits", counts.same_bits, counts.same_bits == 1 ? "" : "s");
    if (counts.proven < counts.same_bits) {
        add(&line, " (%d of them not proven reproducible)",
            counts.same_bits - counts.proven);
    }
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) {
        if (counts.kinds[named[i]]) {
            add(&line, "; %d %s", counts.kinds[named[i]],
                named[i] == DRIFT_BITS ? "changed" : drift_kind_words(named[i]));
            name_cases(&line, cases, count, named[i]);
        }
    }
    if (counts.dearer) {
        add(&line, "; %d cost more (median +%.0f %%)", counts.dearer,
            100 * (counts.dearer_median - 1));
    }
    if (counts.cheaper) {
        add(&line, "; %d cost less (median -%.0f %%)", counts.cheaper,
            100 * (1 - counts.cheaper_median));
    }
    for (size_t i = 0; i < sizeof counted / sizeof counted[0]; i++) {
        if (counts.kinds[counted[i]]) {
            add(&line, "; %d %s", counts.kinds[counted[i]], drift_kind_words(counted[i]));
        }
    }
}
