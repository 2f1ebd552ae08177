#include "daemon/client/preflight_judge.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/array.h"
#include "daemon/base/json_in.h"
#include "daemon/base/text.h"
#include "daemon/client/baseline.h"
#include "daemon/client/gate.h"

enum { WORDS_SIZE = 400 };
static const char SLICE[] = "MIG-"; /* so begin the ids of slices */

static const char *const names[] = { "passed", "dissents", "unverified", "failed" };

const char *preflight_verdict_name(enum preflight_verdict verdict)
{
    return names[verdict];
}

enum preflight_verdict preflight_verdict_of(const char *name)
{
    int i = 0;

    while (i < PREFLIGHT_FAILED && strcmp(names[i], name) != 0) {
        i++;
    }
    return (enum preflight_verdict)i;
}

/* What one case showed on one device. */
struct shown {
    enum gate_result result;
    char words[WORDS_SIZE];
    int64_t completed;      /* runs */
    int64_t here, baseline; /* equals */
    bool alone;             /* all is proven, but for an equal */
    bool known;             /* to the baseline */
};

/* The runs of one item. */
struct counted {
    int64_t runs, completed, out_of_bound;
    int64_t cell; /* 0: none of them is in one */
    char cause[200];
};

/* A text that was cut may end in a part of a character. */
static void cut_partial(char *text)
{
    while (*text) {
        size_t length = text_sequence(text, strlen(text));

        if (length == 0) {
            *text = '\0';
            return;
        }
        text += length;
    }
}

__attribute__((format(printf, 3, 4))) static bool
say(struct shown *shown, enum gate_result result, const char *format, ...)
{
    va_list args;

    shown->result = result;
    va_start(args, format);
    vsnprintf(shown->words, sizeof shown->words, format, args);
    va_end(args);
    cut_partial(shown->words);
    return true;
}

__attribute__((format(printf, 1, 2))) static json_t *words_of(const char *format, ...)
{
    char words[WORDS_SIZE];
    va_list args;

    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    cut_partial(words);
    return json_string(words);
}

static bool is(const json_t *object, const char *key, const char *text)
{
    return strcmp(in_text_or_empty(object, key), text) == 0;
}

/* The element of LIST whose KEY is TEXT, or NULL. */
static const json_t *find_text(const json_t *list, const char *key, const char *text)
{
    const json_t *one;
    size_t i;

    json_array_foreach(list, i, one)
    {
        if (is(one, key, text)) {
            return one;
        }
    }
    return NULL;
}

static const json_t *find_cell(const json_t *cells, int64_t id)
{
    const json_t *one;
    size_t i;

    json_array_foreach(cells, i, one)
    {
        if (id && in_int(one, "id") == id) {
            return one;
        }
    }
    return NULL;
}

static struct counted count_runs(const json_t *runs, const json_t *item)
{
    struct counted counted = { .runs = 0 };
    const json_t *run;
    size_t i;

    json_array_foreach(runs, i, run)
    {
        const char *outcome = in_text_or_empty(run, "outcome");

        if (in_int(run, "item") != in_int(item, "seq") ||
            !is(run, "job", in_text_or_empty(item, "job")) ||
            json_is_object(json_object_get(run, "challenge"))) {
            continue;
        }
        counted.runs++;
        counted.cell = in_int(run, "cell") ? in_int(run, "cell") : counted.cell;
        counted.out_of_bound += is(json_object_get(run, "check"), "state", "failed");
        if (strcmp(outcome, "completed") == 0) {
            counted.completed++;
        } else if (!counted.cause[0]) {
            snprintf(counted.cause, sizeof counted.cause, "%s%s%.150s",
                     outcome[0] ? outcome : "it did not end",
                     in_text(run, "cause") ? ": " : "", in_text_or_empty(run, "cause"));
        }
    }
    return counted;
}

/* The GPU that DEVICE is, or is a slice of; "": it is not known of which, or DEVICE is
 * none of DEVICES. */
static const char *gpu_of(const json_t *devices, const char *device)
{
    const json_t *found = find_text(devices, "id", device);
    const char *gpu = in_text_or_empty(json_object_get(found, "attributes"), "gpu_uuid");
    bool is_slice = strncmp(device, SLICE, sizeof SLICE - 1) == 0;

    return gpu[0] || is_slice ? gpu : found ? device : "";
}

/* Other devices of CELL with the digest that ROW has.  Slices of one GPU have what is
 * wrong with it in common. */
static int64_t equals_here(const json_t *devices, const json_t *cell, const json_t *row)
{
    const json_t *other;
    const char *letter = in_text(row, "class");
    const char *gpu = gpu_of(devices, in_text_or_empty(row, "device"));
    int64_t count = 0;
    size_t i;

    json_array_foreach(json_object_get(cell, "devices"), i, other)
    {
        const char *another = gpu_of(devices, in_text_or_empty(other, "device"));

        count += letter && is(other, "class", letter) && gpu[0] && another[0] &&
                 strcmp(gpu, another) != 0;
    }
    return count;
}

/* Of a device whose runs gave other bits than they should; false: they did not.
 * IS_KNOWN: the baseline says which of those that disagree are wrong. */
static bool differs(struct shown *shown, const json_t *cell, const json_t *row,
                    const struct counted *counted, bool is_known)
{
    size_t devices = json_array_size(json_object_get(cell, "devices"));
    bool consistent = json_is_true(json_object_get(row, "self_consistent"));

    if (counted->out_of_bound > 0) {
        return say(shown, GATE_DIFFERENT, "out of bound of the float64 reference: %.250s",
                   in_text_or_empty(json_object_get(cell, "check"), "worst"));
    }
    if (is(row, "state", "dissents")) {
        return say(shown, GATE_DIFFERENT, "it gives other bits than its equals: %.300s",
                   in_text_or_empty(cell, "reason"));
    }
    if (!consistent && devices > 1 && is(cell, "agreement", "varies")) {
        return say(shown, GATE_UNVERIFIED,
                   "it varies on most devices here: the workload, not a device");
    }
    if (!consistent) {
        return say(shown, GATE_DIFFERENT, "%" PRId64 " digests in %" PRId64 " runs on it",
                   in_int(row, "distinct_digests"), in_int(row, "runs"));
    }
    if (is(row, "state", "departs") && !is_known) {
        return say(shown, GATE_DIFFERENT,
                   "devices here give different bits, and which of them are wrong cannot "
                   "be told: %.250s",
                   in_text_or_empty(cell, "reason"));
    }
    return false;
}

static const char *digest_of(const json_t *row)
{
    return in_text_or_empty(json_array_get(json_object_get(row, "digests"), 0), "digest");
}

static bool differs_from_baseline(struct shown *shown, const json_t *entry,
                                  const json_t *row)
{
    return entry && !is(entry, "digest", digest_of(row)) &&
           say(shown, GATE_DIFFERENT,
               "it gives %.8s, and the baseline has %.8s of %" PRId64 " device%s",
               digest_of(row), in_text_or_empty(entry, "digest"),
               in_int(entry, "devices"), in_int(entry, "devices") == 1 ? "" : "s");
}

/* What is missing for a proof; false: nothing. */
static bool lacks(struct shown *shown, const json_t *item, const json_t *cell,
                  const json_t *row, const struct counted *counted)
{
    int64_t wanted = in_int(item, "runs_wanted");
    const char *given_up = in_text(item, "given_up_reason");

    if (counted->completed < counted->runs || counted->runs < wanted) {
        return say(shown, GATE_UNVERIFIED,
                   "%" PRId64 " of %" PRId64 " runs completed: %.250s",
                   counted->completed, wanted > counted->runs ? wanted : counted->runs,
                   counted->cause[0] ? counted->cause
                   : given_up        ? given_up
                                     : "there was no time for more");
    }
    if (!is(row, "verdict", "reproducible")) {
        return say(shown, GATE_UNVERIFIED, "%.300s", in_text_or_empty(cell, "reason"));
    }
    return false;
}

static struct shown judge_case(const struct preflight_seen *seen, const char *device,
                               const json_t *item)
{
    struct shown shown = { .result = GATE_UNVERIFIED };
    struct counted counted = count_runs(seen->runs, item);
    const json_t *cell = find_cell(seen->cells, counted.cell);
    const json_t *row = find_text(json_object_get(cell, "devices"), "device", device);
    const json_t *entry =
        cell ? baseline_find(seen->baseline, in_text_or_empty(cell, "environment"), item)
             : NULL;

    shown.completed = counted.completed;
    shown.known = entry != NULL;
    if ((row && differs(&shown, cell, row, &counted, entry != NULL)) ||
        (row && differs_from_baseline(&shown, entry, row)) ||
        lacks(&shown, item, cell, row, &counted)) {
        return shown;
    }
    shown.here = equals_here(seen->devices, cell, row);
    shown.baseline =
        entry ? baseline_others(entry, device, gpu_of(seen->devices, device)) : 0;
    shown.alone = shown.here + shown.baseline <= 0;
    if (shown.alone) {
        say(&shown, GATE_UNVERIFIED,
            "there is nothing to compare it with: no equal of it is here%s",
            seen->baseline ? ", and the baseline has none"
                           : ", and there is no baseline");
    } else {
        shown.result = GATE_EQUAL;
    }
    return shown;
}

/* Whether a later item asks the same. */
static bool is_asked_again(const json_t *items, size_t at)
{
    const json_t *item = json_array_get(items, at);

    for (size_t i = at + 1; i < json_array_size(items); i++) {
        const json_t *other = json_array_get(items, i);

        if (baseline_same_case(item, other) &&
            is(other, "device", in_text_or_empty(item, "device"))) {
            return true;
        }
    }
    return false;
}

/* What is known of one device. */
struct summed {
    int64_t cases[GATE_RESULTS];
    int64_t alone, known, completed, here, baseline;
    char words[GATE_RESULTS][WORDS_SIZE + 200]; /* of the first */
};

static void add_case(struct summed *sum, const json_t *item, const struct shown *shown)
{
    char *words = sum->words[shown->result];

    sum->alone += shown->alone;
    sum->known += shown->known;
    if (sum->cases[shown->result]++ == 0) {
        snprintf(words, sizeof sum->words[0], "%.80s %.80s: %s",
                 in_text_or_empty(item, "workload"), in_text_or_empty(item, "variant"),
                 shown->words);
    }
    if (shown->result == GATE_EQUAL) {
        bool first = sum->cases[GATE_EQUAL] == 1;

        sum->here = first || shown->here < sum->here ? shown->here : sum->here;
        sum->baseline =
            first || shown->baseline < sum->baseline ? shown->baseline : sum->baseline;
    }
}

static struct summed sum_device(const struct preflight_seen *seen, const char *device)
{
    struct summed sum = { .completed = 0 };
    const json_t *item;
    size_t i;

    json_array_foreach(seen->items, i, item)
    {
        struct shown shown;

        if (!is(item, "device", device) || is_asked_again(seen->items, i)) {
            continue;
        }
        shown = judge_case(seen, device, item);
        sum.completed += shown.completed;
        /* A control is no case, unless it computes what is wrong whatever it is for. */
        if (!json_is_true(json_object_get(item, "is_control")) ||
            count_runs(seen->runs, item).out_of_bound > 0) {
            add_case(&sum, item, &shown);
        }
    }
    return sum;
}

static enum preflight_verdict conclude(const struct summed *sum)
{
    return sum->cases[GATE_DIFFERENT] > 0 ? PREFLIGHT_DISSENTS
           : sum->completed == 0          ? PREFLIGHT_FAILED
           : sum->cases[GATE_UNVERIFIED] > 0 || sum->cases[GATE_EQUAL] == 0
               ? PREFLIGHT_UNVERIFIED
               : PREFLIGHT_PASSED;
}

static json_t *why(const struct summed *sum, enum preflight_verdict verdict, bool used,
                   const char *failure)
{
    enum gate_result of =
        verdict == PREFLIGHT_DISSENTS ? GATE_DIFFERENT : GATE_UNVERIFIED;
    int64_t more = sum->cases[of] - 1;

    if (verdict == PREFLIGHT_PASSED) {
        return json_sprintf("%" PRId64 " case%s gave the bits of its equals",
                            sum->cases[GATE_EQUAL],
                            sum->cases[GATE_EQUAL] == 1 ? "" : "s");
    }
    if (used && verdict != PREFLIGHT_DISSENTS) {
        return json_string("others use it, and it was left alone");
    }
    if (sum->cases[of] == 0) {
        return json_string(failure ? failure : "nothing was measured on it");
    }
    return more > 0 ? json_sprintf("%s (and %" PRId64 " more)", sum->words[of], more)
                    : json_string(sum->words[of]);
}

static json_t *judge_device(const struct preflight_seen *seen, const json_t *device,
                            enum preflight_verdict *ret_verdict, bool *ret_known)
{
    const char *id = in_text_or_empty(device, "id");
    bool used = baseline_lists(seen->used, id);
    struct summed sum = sum_device(seen, id);
    enum preflight_verdict verdict = conclude(&sum);
    json_t *one, *cases, *equals;

    verdict = verdict == PREFLIGHT_FAILED && used ? PREFLIGHT_UNVERIFIED : verdict;
    cases =
        json_pack("{s:I, s:I, s:I, s:I}", "equal", (json_int_t)sum.cases[GATE_EQUAL],
                  "different", (json_int_t)sum.cases[GATE_DIFFERENT], "unverified",
                  (json_int_t)sum.cases[GATE_UNVERIFIED], "alone", (json_int_t)sum.alone);
    equals = verdict == PREFLIGHT_PASSED
                 ? json_pack("{s:I, s:I}", "here", (json_int_t)sum.here, "baseline",
                             (json_int_t)sum.baseline)
                 : json_null();
    one = json_pack("{s:s, s:s, s:s, s:s, s:o, s:b, s:o, s:o}", "uuid", id, "model",
                    in_text_or_empty(device, "model"), "backend",
                    in_text_or_empty(device, "backend"), "verdict", names[verdict],
                    "cause", why(&sum, verdict, used, seen->failure), "used", used,
                    "cases", cases, "equals", equals);
    *ret_verdict = verdict;
    *ret_known = sum.known > 0;
    return one;
}

static const enum preflight_verdict worst_first[] = {
    PREFLIGHT_DISSENTS, PREFLIGHT_FAILED, PREFLIGHT_UNVERIFIED, PREFLIGHT_PASSED
};

/* Of the machine: the verdict of its worst device, and what is not of a device.  UNKNOWN:
 * a device of which the baseline knows nothing, or NULL. */
static enum preflight_verdict judge_machine(const struct preflight_seen *seen,
                                            const int *counts, int gpus,
                                            const json_t *unknown, json_t **ret_cause)
{
    enum preflight_verdict worst = PREFLIGHT_FAILED;
    size_t devices = json_array_size(seen->devices);

    for (int i = 0; i < COUNT_OF(worst_first); i++) {
        if (counts[worst_first[i]] > 0) {
            worst = worst_first[i];
            break;
        }
    }
    if (devices == 0 && seen->failure) {
        *ret_cause = json_string(seen->failure);
        return PREFLIGHT_FAILED;
    }
    if (worst != PREFLIGHT_DISSENTS && seen->gpus > 0 && gpus != seen->gpus) {
        *ret_cause = json_sprintf("%d GPU%s expected, %d can be measured", seen->gpus,
                                  seen->gpus == 1 ? " is" : "s are", gpus);
        return PREFLIGHT_FAILED;
    }
    if (devices == 0) {
        *ret_cause = json_string("there is no device to measure");
        return PREFLIGHT_FAILED;
    }
    if (worst == PREFLIGHT_PASSED && seen->baseline_error) {
        *ret_cause = words_of("the baseline is not known: %s", seen->baseline_error);
        return PREFLIGHT_UNVERIFIED;
    }
    if (worst == PREFLIGHT_PASSED && seen->baseline && unknown) {
        *ret_cause = json_sprintf("the baseline has no case in the environment of %s",
                                  in_text_or_empty(unknown, "id"));
        return PREFLIGHT_UNVERIFIED;
    }
    *ret_cause = json_sprintf("%d of %zu device%s %s", counts[worst], devices,
                              devices == 1 ? "" : "s", names[worst]);
    return worst;
}

json_t *preflight_judge(const struct preflight_seen *seen)
{
    json_t *devices = json_array(), *cause = NULL;
    int counts[PREFLIGHT_VERDICTS] = { 0 }, gpus = 0;
    enum preflight_verdict verdict;
    const json_t *device, *unknown = NULL;
    bool known;
    size_t i;

    json_array_foreach(seen->devices, i, device)
    {
        json_array_append_new(devices, judge_device(seen, device, &verdict, &known));
        unknown = known ? unknown : device;
        counts[verdict]++;
        gpus += !is(device, "backend", "cpu");
    }
    verdict = judge_machine(seen, counts, gpus, unknown, &cause);
    return json_pack("{s:s, s:o, s:i, s:o}", "verdict", names[verdict], "cause", cause,
                     "gpus", gpus, "devices", devices);
}
