#include "daemon/evidence/screening.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/array.h"
#include "daemon/base/buf.h"
#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"
#include "daemon/evidence/changes.h"
#include "workloads/instruments/digest.h"

static const char slot[] = "pci_bus_id";

const char *screening_reason_name(enum screening_reason reason)
{
    static const char *const names[] = { "", "new", "returned", "moved", "upgraded" };

    return names[reason];
}

const char *screening_outcome_name(enum screening_outcome outcome)
{
    static const char *const names[] = { "passed", "dissents", "inconclusive" };

    return names[outcome];
}

static bool serves(const json_t *stack, const char *device)
{
    size_t i;
    json_t *each;

    json_array_foreach(json_object_get(json_object_get(stack, "probe"), "devices"), i,
                       each)
    {
        if (strcmp(in_text_or_empty(each, "id"), device) == 0) {
            return true;
        }
    }
    return false;
}

/* Removes from STACK the workloads that no survey measures; true if it had no others. */
static bool forget_unsurveyed(json_t *stack)
{
    json_t *catalogue = json_object_get(stack, "catalogue");
    json_t *probe = json_object_get(stack, "probe");
    size_t before = json_array_size(catalogue);

    for (size_t i = before; i-- > 0;) {
        json_t *entry = json_array_get(catalogue, i);
        const char *name = in_text_or_empty(entry, "workload");

        if (json_is_false(json_object_get(entry, "survey"))) {
            json_object_del(json_object_get(probe, "versions"), name);
            json_object_del(json_object_get(probe, "problems"), name);
            json_array_remove(catalogue, i);
        }
    }
    return before > 0 && json_array_size(catalogue) == 0;
}

/* What is measured there: "12 (3fa9c1d2)". */
static json_t *workloads_of(const json_t *stack)
{
    json_t *catalogue = json_object_get(stack, "catalogue");
    char *text = json_dumps(catalogue, JSON_COMPACT | JSON_SORT_KEYS);
    char digest[DIGEST_TEXT_SIZE];
    json_t *words;

    if (!text) {
        return NULL;
    }
    digest_hex(digest_bytes(text, strlen(text)), digest);
    words = json_sprintf("%zu (%.8s)", json_array_size(catalogue), digest);
    free(text);
    return words;
}

json_t *screening_facts(const json_t *hello, const char *device)
{
    json_t *own = json_pack("{s:O?}", "facts", json_object_get(hello, "facts"));
    json_t *stacks = json_array();
    json_t *facts;
    json_t *devices;
    json_t *of;
    size_t i;
    json_t *stack;

    json_array_foreach(json_object_get(hello, "stacks"), i, stack)
    {
        json_t *copy = serves(stack, device) ? json_deep_copy(stack) : NULL;

        if (copy && !forget_unsurveyed(copy)) {
            json_array_append(stacks, copy);
        }
        json_decref(copy);
    }
    json_object_set(own, "stacks", stacks);
    facts = changes_facts(own);
    json_array_foreach(stacks, i, stack)
    {
        json_object_set_new(json_object_get(json_object_get(facts, "stacks"),
                                            in_text_or_empty(stack, "name")),
                            "workloads", workloads_of(stack));
    }
    devices = json_object_get(facts, "devices");
    of = json_incref(json_object_get(devices, device));
    json_object_clear(devices);
    json_object_set_new(devices, device, of);
    json_decref(stacks);
    json_decref(own);
    return facts;
}

/* So that a further stack is a change: each of its facts was not there before. */
static void add_empty_stacks(json_t *past, const json_t *present)
{
    json_t *before = json_object_get(past, "stacks");
    const char *name;
    json_t *stack;

    json_object_foreach(json_object_get(present, "stacks"), name, stack)
    {
        if (!json_object_get(before, name)) {
            json_object_set_new(before, name, json_object());
        }
    }
}

/* What a stack does not tell is as it was: that a library could not be asked is told as a
 * change of its host (changes.h), and says nothing new of a device. */
static void keep_untold(const json_t *past, json_t *present)
{
    json_t *before = json_object_get(past, "stacks");
    const char *name;
    json_t *stack;

    json_object_foreach(json_object_get(present, "stacks"), name, stack)
    {
        json_object_update_missing(stack, json_object_get(before, name));
    }
}

static bool has_slot(const json_t *changes)
{
    size_t i;
    json_t *change;

    json_array_foreach(changes, i, change)
    {
        if (strcmp(in_text_or_empty(change, "name"), slot) == 0) {
            return true;
        }
    }
    return false;
}

static char *words_of(const struct screening_past *past,
                      const struct screening_present *present, const json_t *changes)
{
    char *text = changes_text(changes);
    char *words;

    if (!past->host[0] || strcmp(past->host, present->host) == 0) {
        return text;
    }
    words = xasprintf("host %s → %s%s%s", past->host, present->host, text[0] ? ", " : "",
                      text);
    free(text);
    return words;
}

static enum screening_reason reason_of(const struct screening_past *past,
                                       const struct screening_present *present,
                                       const json_t *changes)
{
    int64_t away_ms = past->last_seen_ms ? present->now_ms - past->last_seen_ms : 0;

    if (!past->host[0]) {
        return SCREENING_NEW;
    }
    if (strcmp(past->host, present->host) != 0 || has_slot(changes)) {
        return SCREENING_MOVED;
    }
    return json_array_size(changes) > 0 ? SCREENING_UPGRADED
           : present->returned_ms > 0 && away_ms > present->returned_ms
               ? SCREENING_RETURNED
               : SCREENING_NOT;
}

enum screening_reason screening_judge(const struct screening_past *past,
                                      const struct screening_present *present,
                                      char **ret_facts, char **ret_words)
{
    json_t *before = json_loads(past->facts, 0, NULL);
    json_t *now = json_loads(present->facts, 0, NULL);
    json_t *merged;
    json_t *changes;
    enum screening_reason reason;

    if (before) {
        add_empty_stacks(before, now);
    }
    if (before && strcmp(past->host, present->host) == 0) {
        keep_untold(before, now);
    }
    changes = changes_compare(before, now, &merged);
    reason = reason_of(past, present, changes);
    *ret_words = words_of(past, present, changes);
    /* What another host said of its stacks does not hold here. */
    *ret_facts = json_dumps(strcmp(past->host, present->host) == 0 ? merged : now,
                            JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(before);
    json_decref(now);
    json_decref(merged);
    json_decref(changes);
    return reason;
}

void screening_fingerprint(const char *host, const char *facts,
                           char ret_digest[DIGEST_TEXT_SIZE])
{
    char *text = xasprintf("%s %s", host, facts);

    digest_hex(digest_bytes(text, strlen(text)), ret_digest);
    free(text);
}

enum screening_outcome screening_conclude(const struct screening_counts *c,
                                          char ret_words[SCREENING_WORDS_SIZE])
{
    const struct {
        int64_t count;
        const char *words;
    } rest[] = {
        { c->dissents, "dissent from its equals" },
        { c->failed, "failed" },
        { c->undecided, "differ, and what that means cannot be told" },
        { c->unmeasured, "were not measured" },
        { c->alone, "were measured on no equal of it" },
        { c->varies, "vary" },
    };
    struct buf words = BUF_INIT;

    buf_printf(&words, "%" PRId64 " of %" PRId64 " cases agree", c->agrees, c->cases);
    for (int i = 0; i < COUNT_OF(rest); i++) {
        if (rest[i].count > 0) {
            buf_printf(&words, ", %" PRId64 " %s", rest[i].count, rest[i].words);
        }
    }
    copy_text(ret_words, SCREENING_WORDS_SIZE, words.data);
    buf_release(&words);
    if (c->dissents > 0) {
        return SCREENING_DISSENTS;
    }
    return c->agrees > 0 && c->failed + c->undecided + c->unmeasured + c->alone == 0
               ? SCREENING_PASSED
               : SCREENING_INCONCLUSIVE;
}
