#include "daemon/evidence/solution.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/array.h"
#include "daemon/jobs/check.h"

const char solution_one_fact[] =
    "the recipes select the default itself: one measured fact";

const char *solution_state_name(enum solution_state state)
{
    static const char *const names[] = {
        [SOLUTION_MEASURED] = "measured",     [SOLUTION_DECLARED] = "declared",
        [SOLUTION_PARTIAL] = "partial",       [SOLUTION_INCONCLUSIVE] = "inconclusive",
        [SOLUTION_UNMEASURED] = "unmeasured", [SOLUTION_STALE] = "stale",
        [SOLUTION_FAILING] = "failing",       [SOLUTION_UNSUPPORTED] = "unsupported",
        [SOLUTION_ABSENT] = "absent",         [SOLUTION_NO_MODEL] = "no_model",
    };

    return names[state];
}

static int precedence(enum verdict verdict)
{
    static const int order[VERDICT_COUNT] = {
        [VERDICT_VARIES] = 7,
        [VERDICT_FAILING] = 6,
        [VERDICT_DEVICES_DISAGREE] = 5,
        [VERDICT_REPRODUCIBLE] = 4,
        [VERDICT_STALE] = 3,
        [VERDICT_INCONCLUSIVE] = 2,
        [VERDICT_UNSUPPORTED] = 1,
        [VERDICT_UNMEASURED] = 0,
    };

    return order[verdict];
}

void variant_knowledge_join(struct variant_knowledge *k, enum verdict verdict,
                            const char *reason, const struct evidence *evidence)
{
    bool compared = evidence->checks.has_reference
                        ? evidence->checks.digests_passed >= CHECKS_DIGESTS
                        : challenges_passed(&evidence->challenges);

    if (precedence(verdict) < precedence(k->verdict)) {
        return;
    }
    if (verdict != k->verdict) {
        *k = (struct variant_knowledge){ .verdict = verdict };
    }
    if (k->cases == 0 || evidence->runs[OUTCOME_COMPLETED] < k->weakest_runs) {
        snprintf(k->reason, sizeof k->reason, "%s", reason);
        k->weakest_runs = evidence->runs[OUTCOME_COMPLETED];
    }
    k->cases++;
    k->compared |= compared;
    k->is_command |= !evidence->checks.has_reference;
    k->varied |= compared && evidence->varied;
    k->runs += evidence->runs[OUTCOME_COMPLETED];
    k->iterations += evidence->iterations;
    if (evidence->devices > k->devices) {
        k->devices = evidence->devices;
    }
}

void variant_knowledge_dissent(struct variant_knowledge *k,
                               const struct agreeing *agreeing, const char *reason,
                               const struct evidence *evidence)
{
    struct evidence others = *evidence;
    bool is_first = k->verdict != VERDICT_DEVICES_DISAGREE;

    others.runs[OUTCOME_COMPLETED] = agreeing->runs;
    others.iterations = agreeing->iterations;
    others.devices = 0;
    variant_knowledge_join(k, VERDICT_DEVICES_DISAGREE, reason, &others);
    if (k->verdict != VERDICT_DEVICES_DISAGREE) {
        return;
    }
    if (is_first || k->agreeing == VERDICT_REPRODUCIBLE) {
        k->agreeing = agreeing->verdict;
    }
    if (is_first || agreeing->devices * k->of_devices < k->devices * evidence->devices) {
        k->devices = agreeing->devices;
        k->of_devices = evidence->devices;
    }
}

/* The state that keeps a choice from counting, or SOLUTION_MEASURED when it counts. */
static enum solution_state settled(const struct variant_knowledge *known)
{
    switch (known->verdict) { /* never else: each verdict has a case (-Wswitch) */
    case VERDICT_VARIES:
        return known->compared ? SOLUTION_MEASURED : SOLUTION_INCONCLUSIVE;
    case VERDICT_REPRODUCIBLE:
    case VERDICT_UNSUPPORTED:
        return SOLUTION_MEASURED;
    case VERDICT_FAILING:
        return SOLUTION_FAILING;
    case VERDICT_DEVICES_DISAGREE:
        return known->agreeing == VERDICT_REPRODUCIBLE ? SOLUTION_MEASURED
               : known->agreeing == VERDICT_STALE      ? SOLUTION_STALE
                                                       : SOLUTION_INCONCLUSIVE;
    case VERDICT_STALE:
        return SOLUTION_STALE;
    case VERDICT_INCONCLUSIVE:
        return SOLUTION_INCONCLUSIVE;
    case VERDICT_UNMEASURED:
    case VERDICT_COUNT: /* never true: it is no verdict */
        break;
    }
    return SOLUTION_UNMEASURED;
}

/* The first choice that keeps the cell from having a code, worst state first. */
static int find_obstacle(const struct profile_choice *choices,
                         const struct variant_knowledge *known, int count,
                         enum solution_state *ret_state)
{
    static const enum solution_state worst_first[] = {
        SOLUTION_FAILING, SOLUTION_UNMEASURED, SOLUTION_INCONCLUSIVE, SOLUTION_STALE
    };

    for (int w = 0; w < COUNT_OF(worst_first); w++) {
        for (int i = 0; i < count; i++) {
            if (choices[i].variant && settled(&known[i]) == worst_first[w]) {
                *ret_state = worst_first[w];
                return i;
            }
        }
    }
    return -1;
}

/* The choices whose evidence is the same variant's count once. */
static void sum_evidence(const struct profile_choice *choices,
                         const struct variant_knowledge *known, int count,
                         struct solution *s)
{
    for (int i = 0; i < count; i++) {
        bool seen = !choices[i].variant;

        for (int j = 0; j < i && !seen; j++) {
            seen =
                choices[j].variant && strcmp(choices[i].variant, choices[j].variant) == 0;
        }
        if (seen) {
            continue;
        }
        s->variants++;
        s->runs += known[i].runs;
        s->iterations += known[i].iterations;
        if (known[i].devices > s->devices) {
            s->devices = known[i].devices;
        }
    }
}

static void append_code(struct solution *s, const char *recipe)
{
    size_t used = strlen(s->code);

    snprintf(s->code + used, sizeof s->code - used, "%s%s", used ? " or " : "", recipe);
}

__attribute__((format(printf, 3, 4))) static void
doubt(struct solution *s, enum solution_state state, const char *format, ...)
{
    va_list args;

    s->state = state;
    s->code[0] = '\0';
    va_start(args, format);
    vsnprintf(s->reason, sizeof s->reason, format, args);
    va_end(args);
}

/* Settled, and as it should be: on all devices, or on those that agree. */
static bool is_good(const struct variant_knowledge *known)
{
    return known->verdict == VERDICT_REPRODUCIBLE ||
           known->verdict == VERDICT_DEVICES_DISAGREE;
}

/* A code that rests on what some devices dissent from says so. */
static void mark_partial(const struct profile_choice *choices,
                         const struct variant_knowledge *known, int count,
                         struct solution *s)
{
    for (int i = 0; i < count && s->state == SOLUTION_MEASURED; i++) {
        if (choices[i].variant && known[i].verdict == VERDICT_DEVICES_DISAGREE) {
            s->state = SOLUTION_PARTIAL;
            snprintf(s->reason, sizeof s->reason,
                     "on %" PRId64 " of %" PRId64 " devices: %s: %.200s",
                     known[i].devices, known[i].of_devices, choices[i].variant,
                     known[i].reason);
        }
    }
}

/* Every choice is settled: names the recipes that work, or says that there is none, where
 * it was seen to vary without one and with each. */
static void name_code(const struct profile_choice *choices,
                      const struct variant_knowledge *known, int count,
                      struct solution *s)
{
    bool all_reproducible = true;
    bool any_measured = false;
    bool all_raise = count > 1;
    const struct profile_choice *unsupported = NULL; /* the first recipe that is */
    const struct profile_choice *unlike = NULL;      /* the first that varied so only */
    double weakest = 0;

    for (int i = 0; i < count; i++) {
        bool raises = !choices[i].variant;
        bool good = !raises && is_good(&known[i]);

        all_reproducible &= good;
        any_measured |= !raises && known[i].verdict != VERDICT_UNSUPPORTED;
        all_raise &= i == 0 || raises;
        if (i > 0 && !raises && !unsupported && known[i].verdict == VERDICT_UNSUPPORTED) {
            unsupported = &choices[i];
        }
        if (!raises && !unlike && known[i].verdict == VERDICT_VARIES &&
            !known[i].varied) {
            unlike = &choices[i];
        }
        if (good) {
            double bound = verdict_difference_bound(known[i].weakest_runs);

            weakest = bound > weakest ? bound : weakest;
            if (i > 0) {
                append_code(s, choices[i].recipe);
            }
        }
    }
    s->difference_bound = weakest > 0 ? weakest : 1;
    if (!any_measured) {
        doubt(s, SOLUTION_UNSUPPORTED, "no variant can be computed here");
    } else if (all_reproducible) {
        snprintf(s->code, sizeof s->code, "DET");
    } else if (!choices[0].variant || known[0].verdict == VERDICT_UNSUPPORTED) {
        doubt(s, SOLUTION_UNSUPPORTED, "what it is like without a recipe is not known");
    } else if (known[0].verdict != VERDICT_VARIES) {
        doubt(s, SOLUTION_INCONCLUSIVE,
              "it is reproducible without a recipe, and not with all of them");
    } else if (!s->code[0] && unsupported) {
        doubt(s, SOLUTION_UNSUPPORTED, "%s: %.220s", unsupported->recipe,
              known[unsupported - choices].reason);
    } else if (!s->code[0] && unlike) {
        doubt(s, SOLUTION_INCONCLUSIVE, "%s: %.220s", unlike->variant,
              known[unlike - choices].reason);
    } else if (!s->code[0] && all_raise) {
        doubt(s, SOLUTION_DECLARED,
              "the documents say that every recipe raises an error; none was seen to");
        snprintf(s->code, sizeof s->code, "NS!");
    } else if (!s->code[0]) {
        snprintf(s->code, sizeof s->code, "NS");
    }
}

/* Whether there are recipes, and all choices are one variant. */
static bool all_one(const struct profile_choice *choices, int count)
{
    for (int i = 0; i < count; i++) {
        if (!choices[i].variant || strcmp(choices[i].variant, choices[0].variant) != 0) {
            return false;
        }
    }
    return count > 1;
}

struct solution solution_derive(const struct profile_choice *choices,
                                const struct variant_knowledge *known, int count)
{
    struct solution s = { .state = SOLUTION_MEASURED, .difference_bound = 1 };
    int obstacle = find_obstacle(choices, known, count, &s.state);

    if (count == 0) {
        s.state = SOLUTION_UNMEASURED;
        return s;
    }
    sum_evidence(choices, known, count, &s);
    if (obstacle >= 0) {
        const struct variant_knowledge *k = &known[obstacle];

        snprintf(
            s.reason, sizeof s.reason, "%s: %.220s%s", choices[obstacle].variant,
            k->reason,
            k->verdict != VERDICT_VARIES ? ""
            : k->is_command
                ? ", and no challenge shows that its command computes from its inputs"
                : ", fewer than two of them compared with the float64 reference");
        return s;
    }
    name_code(choices, known, count, &s);
    s.one_fact = s.state == SOLUTION_MEASURED && all_one(choices, count);
    mark_partial(choices, known, count, &s);
    return s;
}
