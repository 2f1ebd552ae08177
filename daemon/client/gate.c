#include "daemon/client/gate.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/buf.h"
#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"

const char *gate_result_name(enum gate_result result)
{
    static const char *const names[] = { "equal", "different", "unverified" };

    return names[result];
}

static struct gate_runs *runs_of(struct gate_runs **list, int *count, const json_t *run)
{
    const char *environment = in_text_or_empty(run, "environment");
    struct gate_runs *one;

    for (int i = 0; i < *count; i++) {
        one = &(*list)[i];
        if (one->seq == in_int(run, "item") &&
            strcmp(one->environment, environment) == 0) {
            return one;
        }
    }
    *list = xgrow(*list, *count, sizeof **list);
    one = &(*list)[(*count)++];
    *one = (struct gate_runs){ .seq = in_int(run, "item") };
    copy_text(one->environment, sizeof one->environment, environment);
    return one;
}

void gate_add_run(struct gate_runs **list, int *count, const json_t *run)
{
    struct gate_runs *one = runs_of(list, count, run);
    const char *outcome = in_text_or_empty(run, "outcome");
    const char *digest = in_text_or_empty(run, "digest");

    one->runs++;
    one->cell = in_int(run, "cell") ? in_int(run, "cell") : one->cell;
    if (strcmp(outcome, "completed") != 0) {
        if (!one->cause[0]) {
            snprintf(one->cause, sizeof one->cause, "%s: %s", outcome,
                     in_text_or_empty(run, "cause"));
            copy_text(one->failed, sizeof one->failed, in_text_or_empty(run, "id"));
        }
        return;
    }
    one->completed++;
    if (one->completed == 1) {
        copy_text(one->digest, sizeof one->digest, digest);
        one->distinct = 1;
    }
    if (in_int(run, "distinct_digests") != 1 || strcmp(one->digest, digest) != 0) {
        one->distinct = 2;
    }
}

static bool is_text(const json_t *a, const json_t *b, const char *key)
{
    return strcmp(in_text_or_empty(a, key), in_text_or_empty(b, key)) == 0;
}

const json_t *gate_drift_case(const json_t *drift, const json_t *item)
{
    static const char *const keys[] = { "workload", "variant", "size", "dtype", "seed" };
    const json_t *groups = json_object_get(drift, "groups"), *group, *one;
    size_t i, j;

    json_array_foreach(groups, i, group)
    {
        json_array_foreach(json_object_get(group, "cases"), j, one)
        {
            bool same = in_int(one, "version") == in_int(item, "version");

            for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
                same &= is_text(one, item, keys[k]);
            }
            if (same) {
                return one;
            }
        }
    }
    return NULL;
}

/* One reason; the first that holds stands. */
__attribute__((format(printf, 3, 4))) static void
say(struct gate_case *one, enum gate_result result, const char *format, ...)
{
    va_list args;

    one->result = result;
    va_start(args, format);
    one->words = xvasprintf(format, args);
    va_end(args);
}

/* What this job saw itself. */
static bool judged_by_runs(struct gate_case *one, const json_t *item,
                           const struct gate_runs *runs)
{
    const char *given_up = in_text(item, "given_up_reason");
    int64_t wanted = in_int(item, "runs_wanted");

    if (runs && runs->distinct > 1) {
        say(one, GATE_DIFFERENT, "its digests differ within %" PRId64 " runs",
            runs->completed);
        one->diverges = true;
    } else if (!runs || runs->runs == 0) {
        say(one, GATE_UNVERIFIED, "nothing was measured%s%s", given_up ? ": " : "",
            given_up ? given_up : "");
    } else if (runs->completed < runs->runs) {
        say(one, GATE_UNVERIFIED, "%" PRId64 " of %" PRId64 " runs did not complete: %s",
            runs->runs - runs->completed, runs->runs, runs->cause);
        copy_text(one->failed, sizeof one->failed, runs->failed);
    } else if (runs->runs < wanted) {
        say(one, GATE_UNVERIFIED, "%" PRId64 " of %" PRId64 " runs were made%s%s",
            runs->runs, wanted, given_up ? ": " : "", given_up ? given_up : "");
    } else if (!runs->digest[0]) {
        say(one, GATE_UNVERIFIED, "its runs have no digest");
    } else if (runs->completed < 2) {
        say(one, GATE_UNVERIFIED, "one run cannot differ from another: ask for two");
    } else {
        return false;
    }
    return true;
}

/* What is known of the case here, its earlier runs and its control among it. */
static bool judged_by_cell(struct gate_case *one, const json_t *cell)
{
    const char *verdict = in_text_or_empty(cell, "verdict");
    const char *reason = in_text_or_empty(cell, "reason");

    if (strcmp(verdict, "varies") == 0 || strcmp(verdict, "failing") == 0 ||
        strcmp(verdict, "devices_disagree") == 0) {
        say(one, GATE_DIFFERENT, "%s: %s", verdict, reason);
        one->diverges = strcmp(verdict, "varies") == 0;
    } else if (strcmp(verdict, "reproducible") != 0) {
        say(one, GATE_UNVERIFIED, "%s%s%s", *verdict ? verdict : "no cell has its runs",
            *reason ? ": " : "", reason);
    } else {
        return false;
    }
    return true;
}

static bool judged_by_drift(struct gate_case *one, const json_t *drift,
                            const char *against)
{
    static const char *const different[] = { "bits_changed", "varies_now", "fails_now",
                                             "devices_disagree_now" };
    const char *kind = in_text_or_empty(drift, "kind");
    const char *bits = in_text_or_empty(drift, "bits");
    const char *reason = in_text_or_empty(drift, "reason");
    bool differs = strcmp(bits, "changed") == 0;

    for (size_t i = 0; i < sizeof different / sizeof *different; i++) {
        differs |= strcmp(kind, different[i]) == 0;
    }
    if (differs) {
        say(one, GATE_DIFFERENT, "against %s: %s%s%s", against, kind, *reason ? ": " : "",
            reason);
    } else if (strcmp(bits, "same") != 0 ||
               !json_is_true(json_object_get(drift, "proven"))) {
        say(one, GATE_UNVERIFIED, "against %s: %s%s%s", against,
            *kind ? kind : "it has no such case", *reason ? ": " : "", reason);
    } else {
        return false;
    }
    return true;
}

static bool judged_by_cost(struct gate_case *one, const json_t *of,
                           const struct gate_limits *limits)
{
    const json_t *cost = json_object_get(of, "cost");
    double median = json_number_value(json_object_get(cost, "median"));
    const char *beside = limits->against ? limits->against : in_text(cost, "against");

    if (limits->cost <= 0) {
        return false;
    }
    if (!(median > 0)) {
        say(one, GATE_UNVERIFIED,
            "what it costs is not known: that takes three runs of"
            " it and of what it is compared with");
    } else if (median > limits->cost) {
        say(one, GATE_DIFFERENT, "it takes %.3g times as long as %s, more than %.3g",
            median, beside ? beside : "its control", limits->cost);
    } else {
        return false;
    }
    return true;
}

static void name_case(struct gate_case *one, const json_t *item)
{
    one->item = item;
    one->workload = in_text_or_empty(item, "workload");
    one->name =
        xasprintf("%s (%s, %s, seed %s) on %s, %s", in_text_or_empty(item, "variant"),
                  in_text_or_empty(item, "size"), in_text_or_empty(item, "dtype"),
                  in_text_or_empty(item, "seed"), in_text_or_empty(item, "device"),
                  in_text_or_empty(item, "stack"));
    one->title = xasprintf("%s %s", one->workload, one->name);
}

struct gate_case gate_judge(const json_t *item, const struct gate_runs *runs,
                            const json_t *cell, const json_t *drift,
                            const struct gate_limits *limits)
{
    struct gate_case one = { .result = GATE_UNVERIFIED, .cell = runs ? runs->cell : 0 };

    name_case(&one, item);
    one.is_control = json_is_true(json_object_get(item, "is_control"));
    if (one.is_control && strcmp(in_text_or_empty(cell, "verdict"), "failing") == 0) {
        one.is_control = false; /* what computes wrong does so whatever it is for */
        judged_by_cell(&one, cell);
    } else if (one.is_control) {
        bool varied = strcmp(in_text_or_empty(cell, "verdict"), "varies") == 0;

        say(&one, varied ? GATE_EQUAL : GATE_UNVERIFIED, "the control %s",
            varied ? "varied, as it has to" : "did not vary");
    } else if (!judged_by_runs(&one, item, runs) && !judged_by_cell(&one, cell) &&
               !(limits->against && judged_by_drift(&one, drift, limits->against)) &&
               !judged_by_cost(&one, limits->against ? drift : cell, limits)) {
        say(&one, GATE_EQUAL, "%s%s%s", in_text_or_empty(cell, "reason"),
            limits->against ? "; same bits as " : "",
            limits->against ? limits->against : "");
    }
    return one;
}

void gate_case_release(struct gate_case *one)
{
    free(one->title);
    free(one->name);
    free(one->words);
    free(one->place);
    free(one->log);
}

struct gate_counts gate_count(const struct gate_case *cases, int count,
                              const char *workload)
{
    struct gate_counts counts = { { 0 } };

    for (int i = 0; i < count; i++) {
        bool counts_here = !workload || strcmp(cases[i].workload, workload) == 0;

        counts.of[cases[i].result] += !cases[i].is_control && counts_here;
    }
    return counts;
}

enum gate_result gate_conclude(const struct gate_counts *counts)
{
    if (counts->of[GATE_DIFFERENT] > 0) {
        return GATE_DIFFERENT;
    }
    return counts->of[GATE_UNVERIFIED] > 0 || counts->of[GATE_EQUAL] == 0
               ? GATE_UNVERIFIED
               : GATE_EQUAL;
}
