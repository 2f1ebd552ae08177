#include "daemon/evidence/drift.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

__attribute__((format(printf, 2, 3))) static void add(struct drift_case *c,
                                                      const char *format, ...)
{
    size_t length = strlen(c->reason);
    va_list args;

    va_start(args, format);
    vsnprintf(c->reason + length, sizeof c->reason - length, format, args);
    va_end(args);
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

/* Its devices agree on no digest. */
static bool has_no_bits(const struct drift_side *side)
{
    return side->digest[0] == '\0';
}

static bool varies(const struct drift_side *side)
{
    return side->verdict == VERDICT_VARIES;
}

/* Words beside what happened. */

static const char *verb(int count, const char *one, const char *many)
{
    return count == 1 ? one : many;
}

static void add_dissent(struct drift_case *c)
{
    const struct drift_side *from = &c->from;
    const struct drift_side *to = &c->to;

    if (from->dissenters && to->dissenters &&
        strcmp(from->dissenting, to->dissenting) == 0) {
        add(c, "; %s %s before and now", to->dissenting,
            verb(to->dissenters, "disagrees", "disagree"));
        return;
    }
    if (from->dissenters) {
        add(c, "; %s disagreed before", from->dissenting);
    }
    if (to->dissenters) {
        add(c, "; %s %s now", to->dissenting,
            verb(to->dissenters, "disagrees", "disagree"));
    }
}

/* Where devices changed, and that is not what was said. */
static void add_changed_devices(struct drift_case *c)
{
    if (c->changed > 0) {
        add(c, "; %s %s other bits since (%d of %d devices)", c->changed_names,
            verb(c->changed, "shows", "show"), c->changed, c->told);
    }
}

static void add_conditions(struct drift_case *c)
{
    if (c->conditions[0]) {
        add(c, "; with %s, before and now", c->conditions);
    }
}

static void add_common(struct drift_case *c)
{
    if (c->common_agreeing == 0) {
        add(c, "; no device%s was measured in both",
            c->common ? " that agrees with its equals" : "");
    }
}

/* " of the 7 devices that agree", where others do not. */
static const char *of_agreeing(const struct drift_side *side, char ret_text[48])
{
    ret_text[0] = '\0';
    if (side->dissenters) {
        snprintf(ret_text, 48, " of the %d device%s that agree%s", side->devices,
                 side->devices == 1 ? "" : "s", side->devices == 1 ? "s" : "");
    }
    return ret_text;
}

/* What is measured on one side only.  What has failed everywhere is no measurement. */
static void judge_one_sided(struct drift_case *c)
{
    const struct drift_side *to = &c->to;
    const struct drift_side *from = &c->from;
    bool since = from->runs > 0 || to->cell == 0; /* the side that lacks it */
    enum drift_reach reach = since ? to->reach : from->reach;

    if (!since && c->skipped) {
        say(c, DRIFT_UNKNOWN,
            "not measured between the change before and this one, but before both");
    } else if (since && c->until) {
        say(c, DRIFT_UNKNOWN, "not measured before the next change");
    } else if (from->cell == 0 && reach != DRIFT_RUNNABLE) {
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

/* Whether a job can request these conditions and no more. */
static bool can_request(const struct run_options *options)
{
    return options->probes == 0 && options->capture[0] == '\0';
}

/* Under other conditions, other bits are no news of what changed between the sides. */
static void judge_apart(struct drift_case *c)
{
    const struct drift_side *from = &c->from;
    const struct drift_side *to = &c->to;

    c->lacks_to = to->reach == DRIFT_RUNNABLE && can_request(&from->first);
    c->lacks_from =
        !c->lacks_to && from->reach == DRIFT_RUNNABLE && can_request(&to->first);
    c->wanted = c->lacks_to     ? from->first.circumstances
                : c->lacks_from ? to->first.circumstances
                                : c->wanted;
    say(c, DRIFT_UNKNOWN,
        "measured under other conditions: before %s, now %s; runs under equal ones would "
        "tell",
        from->conditions, to->conditions);
}

/* Fewer processes than it takes to see that a digest repeats. */
static bool is_too_few(const struct drift_side *side)
{
    return side->compared_runs < VERDICT_MIN_RUNS && !has_no_bits(side);
}

static void judge_too_few(struct drift_case *c)
{
    bool from = is_too_few(&c->from);
    bool to = is_too_few(&c->to);

    c->lacks_from = from && c->from.reach == DRIFT_RUNNABLE;
    c->lacks_to = to && c->to.reach == DRIFT_RUNNABLE;
    say(c, DRIFT_UNKNOWN,
        "%" PRId64 " run%s before and %" PRId64 " since; it takes %d of each",
        c->from.compared_runs, c->from.compared_runs == 1 ? "" : "s", c->to.compared_runs,
        VERDICT_MIN_RUNS);
    add_conditions(c);
}

static void lacks_healthy(struct drift_case *c)
{
    const struct drift_side *from = &c->from;
    const struct drift_side *to = &c->to;

    c->lacks_from =
        from->suspects_only && from->reach == DRIFT_RUNNABLE && !from->place_suspect;
    c->lacks_to = to->suspects_only && to->reach == DRIFT_RUNNABLE && !to->place_suspect;
}

/* A device that is wrong shows other bits whatever changed. */
static bool is_suspect(const struct drift_case *c)
{
    return (c->from.suspects_only || c->to.suspects_only) && !(c->since && c->common > 0);
}

static void judge_suspects(struct drift_case *c)
{
    bool now = c->to.suspects_only;
    const struct drift_side *side = now ? &c->to : &c->from;

    lacks_healthy(c);
    say(c, DRIFT_UNKNOWN,
        "digest %.8s before, %.8s now; but all that was measured %s, %s, disagrees with "
        "its equals there",
        c->from.digest, c->to.digest, now ? "now" : "before", side->suspects);
    add_common(c);
}

/* Both sides have a digest, and it is not the same one. */
static void judge_changed(struct drift_case *c)
{
    const struct drift_side *from = &c->from;
    const struct drift_side *to = &c->to;
    char before[48], now[48];

    if (is_suspect(c)) {
        judge_suspects(c);
        return;
    }
    c->bits_told = true;
    say(c, DRIFT_BITS,
        "digest %.8s in %" PRId64 " runs%s before, %.8s in %" PRId64 " runs%s now",
        from->digest, from->compared_runs, of_agreeing(from, before), to->digest,
        to->compared_runs, of_agreeing(to, now));
    add_dissent(c);
    add_conditions(c);
    add_common(c);
}

static void say_same(struct drift_case *c)
{
    const struct drift_side *from = &c->from;
    const struct drift_side *to = &c->to;
    char before[48], now[48];

    if (c->newly_dissenting) {
        say(c, DRIFT_DISAGREE_NOW, "the same bits, digest %.8s%s, before and now%s",
            to->digest, of_agreeing(from, before), of_agreeing(to, now));
    } else if (c->algorithm_changed) {
        say(c, DRIFT_ALGORITHM, "%.120s before, %.120s now; the same bits",
            from->algorithm, to->algorithm);
    } else if (c->cost_changed) {
        say(c, DRIFT_COST, "%.2f times as long; the same bits", c->cost.median);
    } else if (from->verdict != to->verdict) {
        say(c, DRIFT_VERDICT, "%s before, %s now; the same bits",
            verdict_name(from->verdict), verdict_name(to->verdict));
    } else {
        say(c, DRIFT_SAME,
            "digest %.8s in %" PRId64 " runs%s before and %" PRId64 "%s now%s",
            to->digest, from->compared_runs, of_agreeing(from, before), to->compared_runs,
            of_agreeing(to, now), c->proven ? "" : "; not proven reproducible");
    }
}

static void judge_same(struct drift_case *c)
{
    c->bits_told = c->bits_same = true;
    c->proven =
        c->from.verdict == VERDICT_REPRODUCIBLE && c->to.verdict == VERDICT_REPRODUCIBLE;
    say_same(c);
    add_dissent(c);
    add_changed_devices(c);
    add_conditions(c);
}

/* Where devices agree on no digest, each one is compared with itself.  False: that tells
 * nothing, or not of all of them. */
static bool judge_each_device(struct drift_case *c)
{
    bool most = 2 * c->told > c->to.devices + c->to.dissenters;

    if (!most || varies(&c->from) || varies(&c->to) ||
        (c->changed > 0 && c->changed < c->told)) {
        return false;
    }
    c->bits_told = true;
    c->bits_same = c->changed == 0;
    say(c,
        !c->bits_same                      ? DRIFT_BITS
        : c->from.verdict != c->to.verdict ? DRIFT_VERDICT
                                           : DRIFT_SAME,
        "each of %d devices that were measured before and now shows %s; %s before, %s "
        "now",
        c->told, c->bits_same ? "its bits of before" : "other bits",
        verdict_name(c->from.verdict), verdict_name(c->to.verdict));
    return true;
}

static void judge_turned(struct drift_case *c)
{
    const struct drift_side *from = &c->from;
    const struct drift_side *to = &c->to;

    say(c,
        c->is_control                             ? DRIFT_VERDICT
        : to->verdict == VERDICT_VARIES           ? DRIFT_VARIES_NOW
        : to->verdict == VERDICT_DEVICES_DISAGREE ? DRIFT_DISAGREE_NOW
                                                  : DRIFT_UNKNOWN,
        "one digest in %" PRId64 " runs before, %" PRId64 " in %" PRId64 " runs now (%s)",
        from->compared_runs, to->distinct_digests, to->runs, verdict_name(to->verdict));
}

/* What neither varied nor agreed before and now: which devices are right is not known. */
static void judge_disagreeing(struct drift_case *c)
{
    bool decided = c->from.verdict == VERDICT_DEVICES_DISAGREE &&
                   c->to.verdict == VERDICT_DEVICES_DISAGREE;

    if (decided && c->changed > 0) {
        c->bits_told = true;
        say(c, DRIFT_BITS, "devices disagree before and now");
        return;
    }
    say(c, DRIFT_UNKNOWN,
        "%" PRId64 " digests in %" PRId64 " runs before (%s), %" PRId64 " in %" PRId64
        " now (%s), and no digest that devices agree on",
        c->from.distinct_digests, c->from.runs, verdict_name(c->from.verdict),
        c->to.distinct_digests, c->to.runs, verdict_name(c->to.verdict));
}

static void judge_both_varying(struct drift_case *c)
{
    const struct drift_side *from = &c->from;
    const struct drift_side *to = &c->to;

    if (c->algorithm_changed) {
        say(c, DRIFT_ALGORITHM, "%.120s before, %.120s now; it varies with both",
            from->algorithm, to->algorithm);
    } else if (c->cost_changed) {
        say(c, DRIFT_COST, "%.2f times as long; it varies before and after",
            c->cost.median);
    } else {
        say(c, DRIFT_VARIES,
            "%" PRId64 " digests in %" PRId64 " runs before, %" PRId64 " in %" PRId64
            " now: no bits to compare",
            from->distinct_digests, from->runs, to->distinct_digests, to->runs);
    }
}

/* One side at least has no digest that its devices agree on. */
static void judge_without_bits(struct drift_case *c)
{
    const struct drift_side *from = &c->from;
    const struct drift_side *to = &c->to;

    if (judge_each_device(c)) {
        add_dissent(c);
        add_conditions(c);
        return;
    }
    if (!has_no_bits(from)) {
        judge_turned(c);
    } else if (!has_no_bits(to)) {
        say(c, DRIFT_VERDICT,
            "%" PRId64 " digests in %" PRId64 " runs before (%s), one in %" PRId64
            " runs now (%s)",
            from->distinct_digests, from->runs, verdict_name(from->verdict),
            to->compared_runs, verdict_name(to->verdict));
    } else if (varies(from) && varies(to)) {
        judge_both_varying(c);
    } else if (varies(from) || varies(to)) {
        say(c, DRIFT_VERDICT, "%s before, %s now", verdict_name(from->verdict),
            verdict_name(to->verdict));
    } else {
        judge_disagreeing(c);
    }
    add_dissent(c);
    add_changed_devices(c);
    add_conditions(c);
}

/* Beyond noise: the middle halves are apart, by more than a histogram's bucket explains,
 * and so is the order of all runs with an error of less than 1 % (times_shift). */
static void judge_cost(struct drift_case *c)
{
    static const double least = 0.05;
    static const double two_sided = 2.576; /* of the normal distribution, 1 % */

    c->cost = times_cost(&c->to.times, &c->from.times, c->least_ns);
    c->cost_changed = c->cost.known && fabs(c->shift) >= two_sided &&
                      (c->cost.low > 1 || c->cost.high < 1) &&
                      fabs(c->cost.median - 1) >= least;
}

void drift_judge(struct drift_case *c)
{
    const struct drift_side *from = &c->from;
    const struct drift_side *to = &c->to;

    c->bits_told = c->bits_same = c->proven = c->lacks_from = c->lacks_to = false;
    c->wanted = (struct run_circumstances){ .contention = 0 };
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
    } else if (c->apart) {
        judge_apart(c);
    } else if (is_too_few(from) || is_too_few(to)) {
        judge_too_few(c);
    } else if (has_no_bits(from) || has_no_bits(to)) {
        judge_without_bits(c);
    } else if (strcmp(from->digest, to->digest) != 0) {
        judge_changed(c);
    } else {
        judge_same(c);
    }
}
