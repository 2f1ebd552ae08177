#include "daemon/evidence/verdict.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/buf.h"
#include "daemon/base/mem.h"
#include "daemon/base/text.h"
#include "daemon/jobs/options.h"

enum {
    ALGORITHMS_TEXT_SIZE = 48,
    BESIDE_TEXT_SIZE = 80,
    CONTENTION_TEXT_SIZE = 64,
    CONDITIONS_TEXT_SIZE = 48,
    VOUCHED_TEXT_SIZE = 128
};

static const char *const names[VERDICT_COUNT] = {
    [VERDICT_UNMEASURED] = "unmeasured",
    [VERDICT_REPRODUCIBLE] = "reproducible",
    [VERDICT_VARIES] = "varies",
    [VERDICT_INCONCLUSIVE] = "inconclusive",
    [VERDICT_UNSUPPORTED] = "unsupported",
    [VERDICT_FAILING] = "failing",
    [VERDICT_DEVICES_DISAGREE] = "devices_disagree",
    [VERDICT_STALE] = "stale",
};

const char *const control_kinds[] = { "race", "entropy", "choice", "poison", NULL };

const char *verdict_name(enum verdict verdict)
{
    return names[verdict];
}

int verdict_parse(const char *name, enum verdict *ret_verdict)
{
    for (int i = 0; i < VERDICT_COUNT; i++) {
        if (strcmp(name, names[i]) == 0) {
            *ret_verdict = (enum verdict)i;
            return 0;
        }
    }
    return -1;
}

__attribute__((format(printf, 2, 3))) static struct judgement
judgement(enum verdict verdict, const char *format, ...)
{
    struct judgement j = { .verdict = verdict };
    va_list args;

    va_start(args, format);
    vsnprintf(j.reason, sizeof j.reason, format, args);
    va_end(args);
    return j;
}

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

static int64_t failures(const struct evidence *e)
{
    int64_t n = 0;

    for (int i = 0; i < OUTCOME_COUNT; i++) {
        n += outcome_is_failure((enum outcome)i) ? e->runs[i] : 0;
    }
    return n;
}

static struct judgement judge_failing(const struct evidence *e)
{
    return judgement(VERDICT_FAILING,
                     "%" PRId64 " crashed, %" PRId64 " timed out, %" PRId64
                     " out of memory, %" PRId64 " invalid; %" PRId64
                     " completed since the last failure (%d needed)",
                     e->runs[OUTCOME_CRASHED], e->runs[OUTCOME_TIMEOUT],
                     e->runs[OUTCOME_OUT_OF_MEMORY], e->runs[OUTCOME_INVALID],
                     e->completed_since_failure, VERDICT_HEALING_RUNS);
}

/* ", 5 of the runs under contention"; "" when none was. */
static const char *contention_text(const struct evidence *e,
                                   char ret_text[CONTENTION_TEXT_SIZE])
{
    ret_text[0] = '\0';
    if (e->contended > 0) {
        snprintf(ret_text, CONTENTION_TEXT_SIZE,
                 ", %" PRId64 " of the runs under contention", e->contended);
    }
    return ret_text;
}

/* "with contention 4, probes 1" of {"contention":4,"probes":1}, or "in plain runs".  Cut
 * where it is long, never right behind a comma: stored reasons have it so. */
static const char *conditions_text(const char *conditions,
                                   char ret_text[CONDITIONS_TEXT_SIZE])
{
    struct run_options options;
    struct buf words = BUF_INIT;

    if (!conditions[0]) {
        return "in plain runs";
    }
    run_options_read(conditions, &options);
    buf_puts(&words, "with ");
    run_options_words(&options, &words);
    copy_text(ret_text, CONDITIONS_TEXT_SIZE, words.data);
    if (words.length >= CONDITIONS_TEXT_SIZE - 1 &&
        ret_text[CONDITIONS_TEXT_SIZE - 3] != ',') {
        ret_text[CONDITIONS_TEXT_SIZE - 2] = '\0';
    }
    buf_release(&words);
    return ret_text;
}

static const char *why_unchecked(const struct checks *checks)
{
    return checks->given_up > 0     ? "which this host gave up"
           : checks->cut_off > 0    ? "which its process did not survive"
           : checks->unanswered > 0 ? "which its worker or agent is too old to do"
                                    : "which its next run is asked to do";
}

/* Nobody compared the one digest with the reference. */
static struct judgement judge_unchecked(const struct evidence *e)
{
    int64_t runs = e->runs[OUTCOME_COMPLETED];

    return judgement(VERDICT_INCONCLUSIVE,
                     "1 digest in %" PRId64 " run%s / %" PRId64
                     " iteration%s, not compared with the float64 reference, %s",
                     runs, plural(runs), e->iterations, plural(e->iterations),
                     why_unchecked(&e->checks));
}

/* What the challenges C show of a command that is known to be ignoring its inputs. */
static struct judgement judge_ignored(const char *who, const struct challenges *c)
{
    if (c->unchanged > 0) {
        return judgement(VERDICT_INCONCLUSIVE,
                         "%s answers without its inputs: with another seed, run %s "
                         "computed from the same ones",
                         who, c->run);
    }
    return judgement(VERDICT_INCONCLUSIVE,
                     "%s answers without its inputs: with another seed, run %s gave the "
                     "same digest, as did %" PRId64 " of %" PRId64 " such runs",
                     who, c->run, c->repeated, c->repeated + c->passed);
}

static const char *why_unchallenged(const struct challenges *c)
{
    return c->repeated > 0 ? "gave the same digest so far, which may be a coincidence"
           : c->failed > 0 ? "has no result so far"
                           : "was not tried yet, which a job does";
}

/* Nobody saw another seed make another digest. */
static struct judgement judge_unchallenged(const struct evidence *e)
{
    int64_t runs = e->runs[OUTCOME_COMPLETED];

    if (e->unseeded) {
        return judgement(VERDICT_INCONCLUSIVE,
                         "1 digest in %" PRId64 " run%s / %" PRId64
                         " iteration%s, but its command declares that it has no seeded "
                         "inputs, so nothing shows that it computes from any",
                         runs, plural(runs), e->iterations, plural(e->iterations));
    }
    return judgement(VERDICT_INCONCLUSIVE,
                     "1 digest in %" PRId64 " run%s / %" PRId64
                     " iteration%s, but not challenged: another seed %s",
                     runs, plural(runs), e->iterations, plural(e->iterations),
                     why_unchallenged(&e->challenges));
}

/* The control varied, and it is not known that it computes from its inputs. */
static struct judgement judge_unchallenged_control(const struct control *c)
{
    if (challenges_ignored(&c->challenges)) {
        return judge_ignored("the control varied, but it", &c->challenges);
    }
    return judgement(VERDICT_INCONCLUSIVE,
                     "the control varied, but it was not challenged: another seed %s",
                     why_unchallenged(&c->challenges));
}

/* What the control lacks to vouch for the judged variant. */
static struct judgement judge_unvouched(const struct evidence *e, const struct control *c)
{
    int64_t runs = e->runs[OUTCOME_COMPLETED];
    char text[CONDITIONS_TEXT_SIZE];

    if (c->no_control) {
        return judgement(VERDICT_INCONCLUSIVE,
                         "1 digest in %" PRId64 " run%s / %" PRId64
                         " iteration%s, but no control that could have varied: %.140s",
                         runs, plural(runs), e->iterations, plural(e->iterations),
                         c->no_control);
    }
    if (c->runs == 0) {
        return judgement(VERDICT_INCONCLUSIVE,
                         "the control was not measured for this case here");
    }
    if (!c->differed) {
        return judgement(VERDICT_INCONCLUSIVE,
                         VERDICT_CONTROL_SILENT " in %" PRId64 " run%s", c->runs,
                         plural(c->runs));
    }
    if (!c->right && c->is_command) {
        return judge_unchallenged_control(c);
    }
    if (!c->right) {
        return c->checks.failed > 0
                   ? judgement(VERDICT_INCONCLUSIVE,
                               "the control varied, but it is out of bound of the "
                               "float64 reference: %.160s",
                               c->checks.failed_words)
                   : judgement(VERDICT_INCONCLUSIVE,
                               "the control varied, but %s compared with the float64 "
                               "reference, %s",
                               c->checks.digests_passed > 0
                                   ? "only one of its digests was"
                                   : "was not",
                               why_unchecked(&c->checks));
    }
    if (!c->varied) {
        return judgement(
            VERDICT_INCONCLUSIVE,
            "the control differed only between devices or between runs asked "
            "for otherwise, never among runs alike on one device");
    }
    return judgement(VERDICT_INCONCLUSIVE,
                     "the control varied %s, and this variant completed %" PRId64
                     " run%s so: at least %d are needed",
                     conditions_text(c->conditions, text), c->own_runs,
                     plural(c->own_runs), VERDICT_MIN_RUNS);
}

/* How many runs had the conditions under which the control varied, where these are not
 * plain runs. */
static const char *vouched_text(const struct control *c, char ret_text[VOUCHED_TEXT_SIZE])
{
    char text[CONDITIONS_TEXT_SIZE];

    ret_text[0] = '\0';
    if (c->conditions[0]) {
        snprintf(ret_text, VOUCHED_TEXT_SIZE,
                 "; the control varied %s, as %" PRId64 " of these runs were asked for",
                 conditions_text(c->conditions, text), c->own_runs);
    }
    return ret_text;
}

/* ", with 2 algorithms"; "" where all runs used the same: the choice does not show in the
 * bits, and is not known to be the same next time. */
static const char *algorithms_text(const struct evidence *e,
                                   char ret_text[ALGORITHMS_TEXT_SIZE])
{
    ret_text[0] = '\0';
    if (e->algorithms > 1) {
        snprintf(ret_text, ALGORITHMS_TEXT_SIZE, ", with %" PRId64 " algorithms",
                 e->algorithms);
    }
    return ret_text;
}

bool verdict_waits(enum verdict verdict, const char *reason)
{
    return verdict == VERDICT_INCONCLUSIVE &&
           strncmp(reason, VERDICT_CONTROL_UNDECIDED,
                   sizeof VERDICT_CONTROL_UNDECIDED - 1) == 0;
}

static bool is_undecided(const struct control *c)
{
    return !c->no_control && !c->varied && c->undecided;
}

static bool has_vouched(const struct control *c)
{
    return !c->no_control && c->right && c->varied && c->own_runs >= VERDICT_MIN_RUNS;
}

/* One digest in all completed runs, of which there is at least one. */
static struct judgement judge_one_digest(const struct evidence *e,
                                         const struct control *c)
{
    int64_t runs = e->runs[OUTCOME_COMPLETED];
    char text[CONTENTION_TEXT_SIZE];
    char algorithms[ALGORITHMS_TEXT_SIZE];
    char vouched[VOUCHED_TEXT_SIZE];
    char bound[TEXT_NUMBER_SIZE];

    if (c->is_control) {
        return judgement(VERDICT_INCONCLUSIVE,
                         VERDICT_CONTROL_SILENT ": 1 digest in %" PRId64
                                                " run%s / %" PRId64 " iteration%s",
                         runs, plural(runs), e->iterations, plural(e->iterations));
    }
    if (runs < VERDICT_MIN_RUNS) {
        return judgement(VERDICT_INCONCLUSIVE, "1 completed run, at least %d are needed",
                         VERDICT_MIN_RUNS);
    }
    if (!e->checks.has_reference && challenges_ignored(&e->challenges)) {
        return judge_ignored("the program", &e->challenges);
    }
    if (!e->checks.has_reference && e->unseeded) {
        return judge_unchallenged(e);
    }
    if (!has_vouched(c) && !is_undecided(c)) {
        return judge_unvouched(e, c);
    }
    if (e->warned > 0) {
        return judgement(VERDICT_INCONCLUSIVE,
                         "1 digest in %" PRId64 " run%s / %" PRId64
                         " iteration%s, of an algorithm that its library calls "
                         "non-deterministic: not seen to vary is not enough",
                         runs, plural(runs), e->iterations, plural(e->iterations));
    }
    if (e->checks.has_reference && e->checks.passed == 0) {
        return judge_unchecked(e);
    }
    if (!e->checks.has_reference && !challenges_passed(&e->challenges)) {
        return judge_unchallenged(e);
    }
    if (is_undecided(c)) {
        return judgement(VERDICT_INCONCLUSIVE,
                         VERDICT_CONTROL_UNDECIDED ", or its devices differ");
    }
    return judgement(VERDICT_REPRODUCIBLE,
                     "1 digest in %" PRId64 " run%s / %" PRId64 " iteration%s on %" PRId64
                     " device%s%s%s; per-run difference probability %s (95 %%); %s%s",
                     runs, plural(runs), e->iterations, plural(e->iterations), e->devices,
                     plural(e->devices), algorithms_text(e, algorithms),
                     contention_text(e, text),
                     text_bound(verdict_difference_bound(runs), bound),
                     e->checks.has_reference
                         ? "within bound of the float64 reference"
                         : "as declared by its command, which has no reference; another "
                           "seed gave another digest, as a cache by seed would, too",
                     vouched_text(c, vouched));
}

static struct judgement judge_wrong(const struct evidence *e)
{
    int64_t runs = e->runs[OUTCOME_COMPLETED];

    return judgement(VERDICT_FAILING,
                     "out of bound of the float64 reference: %.160s; %" PRId64
                     " digest%s in %" PRId64 " run%s / %" PRId64 " iteration%s",
                     e->checks.failed_words, e->distinct_digests,
                     plural(e->distinct_digests), runs, plural(runs), e->iterations,
                     plural(e->iterations));
}

static struct judgement judge(const struct evidence *e, const struct control *c);

/* Those that are not named, as if they were alone. */
static struct judgement judge_agreeing(const struct evidence *e, const struct control *c)
{
    struct evidence others = *e;
    struct control control = *c;

    others.agreement = (struct agreement){ .state = DISSENT_NONE };
    others.runs[OUTCOME_COMPLETED] = e->agreement.runs;
    others.iterations = e->agreement.iterations;
    others.devices = e->agreement.agreeing;
    others.distinct_digests = 1;
    others.checks.failed = 0;
    others.checks.passed = e->agreement.passed;
    others.challenges = e->agreement.challenges;
    control.own_runs = e->agreement.own_runs;
    return judge(&others, &control);
}

static bool is_settled(const struct agreement *a)
{
    return a->state == DISSENT_DISAGREE && a->dissenters > 0 && a->one_digest &&
           !a->failed;
}

/* ", seen only while others used the device": load may be why it departs. */
static const char *beside_text(const struct agreement *a, char ret_text[BESIDE_TEXT_SIZE])
{
    ret_text[0] = '\0';
    if (a->beside_others > 0 && a->beside_others == a->dissenters) {
        snprintf(ret_text, BESIDE_TEXT_SIZE, ", seen only while others used the device%s",
                 plural(a->dissenters));
    } else if (a->beside_others > 0) {
        snprintf(ret_text, BESIDE_TEXT_SIZE,
                 ", %" PRId64 " of them only while others used the device",
                 a->beside_others);
    }
    return ret_text;
}

static struct judgement judge_disagreement(const struct evidence *e,
                                           const struct control *c)
{
    const struct agreement *a = &e->agreement;
    struct judgement others;
    struct judgement j;
    char beside[BESIDE_TEXT_SIZE];

    beside_text(a, beside);
    if (!is_settled(a)) {
        return judgement(VERDICT_DEVICES_DISAGREE, "%s%s", a->words, beside);
    }
    others = judge_agreeing(e, c);
    j = judgement(VERDICT_DEVICES_DISAGREE, "%.170s%s%s; %" PRId64 " agree, %s: %.110s",
                  a->words, beside,
                  e->checks.failed > 0 ? ", out of bound of the float64 reference" : "",
                  a->agreeing, verdict_name(others.verdict), others.reason);
    j.agreeing = (struct agreeing){ others.verdict, a->agreeing, a->runs, a->iterations };
    return j;
}

static struct judgement judge_digests(const struct evidence *e, const struct control *c)
{
    const struct agreement *a = &e->agreement;
    int64_t runs = e->runs[OUTCOME_COMPLETED];
    char text[CONTENTION_TEXT_SIZE];
    char beside[BESIDE_TEXT_SIZE];

    if (a->state == DISSENT_DISAGREE) {
        return judge_disagreement(e, c);
    }
    if (a->state == DISSENT_UNDECIDED) {
        return judgement(VERDICT_INCONCLUSIVE, "%s", a->words);
    }
    return judgement(VERDICT_VARIES,
                     "%" PRId64 " digests in %" PRId64 " run%s / %" PRId64
                     " iteration%s%s%s%s%.170s%s",
                     e->distinct_digests, runs, plural(runs), e->iterations,
                     plural(e->iterations), contention_text(e, text),
                     e->varied ? ""
                               : "; each device agreed with itself under the same "
                                 "conditions",
                     a->state == DISSENT_BOTH ? "; beyond that, " : "",
                     a->state == DISSENT_BOTH ? a->words : "", beside_text(a, beside));
}

static struct judgement judge(const struct evidence *e, const struct control *c)
{
    int64_t runs = e->runs[OUTCOME_COMPLETED];
    int64_t failed = failures(e);

    if (e->checks.failed > 0 && !is_settled(&e->agreement)) {
        return judge_wrong(e);
    }
    if (e->contested[0] && runs > 0) {
        return judgement(VERDICT_INCONCLUSIVE, "its inputs are contested: %.224s",
                         e->contested);
    }
    if (e->damaged[0]) {
        return judgement(VERDICT_INCONCLUSIVE, "damaged in the database: %s", e->damaged);
    }
    if (e->distinct_digests > 1) {
        return judge_digests(e, c);
    }
    if (failed > 0 && e->completed_since_failure < VERDICT_HEALING_RUNS) {
        return judge_failing(e);
    }
    if (runs == 0) {
        return e->runs[OUTCOME_UNSUPPORTED] > 0
                   ? judgement(VERDICT_UNSUPPORTED, "this case cannot be computed here")
                   : judgement(VERDICT_UNMEASURED, "no run has completed");
    }
    if (e->runs[OUTCOME_UNSUPPORTED] > 0) {
        return judgement(VERDICT_INCONCLUSIVE,
                         "%" PRId64 " run%s completed but %" PRId64 " said unsupported",
                         runs, plural(runs), e->runs[OUTCOME_UNSUPPORTED]);
    }
    return judge_one_digest(e, c);
}

struct judgement verdict_judge(const struct evidence *e, const struct control *c)
{
    struct judgement j = judge(e, c);

    j.agreement = e->agreement.state;
    if (j.verdict == VERDICT_REPRODUCIBLE || j.agreeing.verdict == VERDICT_REPRODUCIBLE) {
        j.vouched_ms = c->varied_ms - c->varied_ms % VERDICT_VOUCHED_STEP_MS;
    }
    return j;
}

static bool is_too_old(int64_t at_ms, int64_t now_ms, int64_t stale_after_ms)
{
    return now_ms - at_ms > stale_after_ms || at_ms - now_ms > stale_after_ms;
}

enum verdict verdict_at(enum verdict verdict, int64_t last_completed_ms,
                        int64_t vouched_ms, int64_t now_ms, int64_t stale_after_ms)
{
    if (verdict == VERDICT_REPRODUCIBLE && stale_after_ms > 0 &&
        (is_too_old(last_completed_ms, now_ms, stale_after_ms) ||
         is_too_old(vouched_ms, now_ms, stale_after_ms))) {
        return VERDICT_STALE;
    }
    return verdict;
}

enum verdict verdict_of_device(enum verdict cell, enum verdict agreeing,
                               int64_t vouched_ms, const struct device_evidence *device,
                               int64_t now_ms, int64_t stale_after_ms)
{
    bool disagree = cell == VERDICT_DEVICES_DISAGREE;
    enum verdict verdict = disagree ? agreeing : cell;

    if (disagree && device->dissents) {
        return VERDICT_DEVICES_DISAGREE;
    }
    if (verdict == VERDICT_FAILING || verdict == VERDICT_UNSUPPORTED) {
        return verdict;
    }
    if (device->varied) {
        return disagree ? VERDICT_INCONCLUSIVE : VERDICT_VARIES;
    }
    if (verdict != VERDICT_REPRODUCIBLE || device->runs < VERDICT_MIN_RUNS) {
        return VERDICT_INCONCLUSIVE;
    }
    return verdict_at(verdict, device->last_ms, vouched_ms, now_ms, stale_after_ms);
}

void verdict_stale_reason(const char *reason, int64_t last_completed_ms, int64_t now_ms,
                          int64_t stale_after_ms, char ret_reason[VERDICT_REASON_SIZE])
{
    snprintf(ret_reason, VERDICT_REASON_SIZE,
             "%s more than %" PRId64 " hours ago; then: %.180s",
             is_too_old(last_completed_ms, now_ms, stale_after_ms)
                 ? "the last run completed"
                 : "the control last varied",
             stale_after_ms / VERDICT_VOUCHED_STEP_MS, reason);
}

double verdict_difference_bound(int64_t runs)
{
    return runs < 2 ? 1.0 : -expm1(log(0.05) / (double)(runs - 1));
}
