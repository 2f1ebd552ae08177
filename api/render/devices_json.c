#include "api/render/devices_json.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"

enum { CAMPS_MAX = 8, CAMP_NAMES_MAX = 16, DISSENTERS_MAX = 64, LETTERS = 26 };

/* "A" for the most frequent digest; null beyond Z. */
static void class_json(struct json_out *out, const struct devices_shown *shown,
                       const char *digest)
{
    char letter[2] = "";

    for (int i = 0; i < shown->digest_count && i < LETTERS; i++) {
        if (strcmp(shown->digests[i].digest, digest) == 0) {
            letter[0] = (char)('A' + i);
        }
    }
    out_name(out, "class", letter);
}

static void name_json(struct json_out *out, const struct cell_device *d)
{
    json_t *attributes = json_loads(d->attributes, 0, NULL);

    out_text(out, "device", d->device);
    out_text(out, "host", d->host);
    out_text(out, "serial", json_string_value(json_object_get(attributes, "serial")));
    out_text(out, "slot", json_string_value(json_object_get(attributes, "pci_bus_id")));
    json_decref(attributes);
}

/* The digest that a device votes for; "": it differs with itself. */
static const char *camp_of(const struct cell_device *d)
{
    return d->varied || d->digest_count == 0 ? "" : d->digests[0].digest;
}

void cell_device_json(struct json_out *out, const struct cell *cell,
                      const struct cell_device *d, const struct devices_shown *shown)
{
    const struct device_evidence evidence = { .dissents = d->mark == DISSENT_DISSENTS,
                                              .varied = d->varied,
                                              .runs = d->runs,
                                              .last_ms = d->last_ms };

    out_open(out, NULL, '{');
    name_json(out, d);
    out_text(out, "state", dissent_mark_name(d->mark));
    class_json(out, shown, camp_of(d));
    out_text(out, "verdict",
             verdict_name(verdict_of_device(cell->verdict, cell->agreeing.verdict,
                                            cell->vouched_ms, &evidence, shown->now_ms,
                                            shown->stale_after_ms)));
    out_time(out, "named_at", d->since_ms);
    out_int(out, "runs", d->runs);
    out_int(out, "iterations", d->iterations);
    out_int(out, "distinct_digests", d->distinct_digests);
    out_bool(out, "self_consistent", !d->varied);
    out_real(out, "difference_probability_upper_bound",
             d->distinct_digests == 1 ? verdict_difference_bound(d->runs) : 1);
    out_text(out, "first_run", d->first_run);
    out_text(out, "last_run", d->last_run);
    out_time(out, "first_run_at", d->first_ms);
    out_time(out, "last_run_at", d->last_ms);
    out_open(out, "digests", '[');
    for (int i = 0; i < d->digest_count; i++) {
        out_open(out, NULL, '{');
        class_json(out, shown, d->digests[i].digest);
        out_text(out, "digest", d->digests[i].digest);
        out_int(out, "runs", d->digests[i].runs);
        out_int(out, "iterations", d->digests[i].iterations);
        out_close(out, '}');
    }
    out_close(out, ']');
    out_close(out, '}');
}

/* What all devices of a camp have in common. */
static json_t *shared_by(const struct device_list *list, const char *camp)
{
    json_t *shared = NULL;

    for (int i = 0; i < list->count; i++) {
        const struct cell_device *d = &list->devices[i];
        json_t *facts;
        const char *key;
        json_t *value;
        void *next;

        if (strcmp(camp_of(d), camp) != 0) {
            continue;
        }
        facts = json_loads(d->attributes, 0, NULL);
        facts = json_is_object(facts) ? facts : json_object();
        json_object_set_new(facts, "host", json_string(d->host));
        if (!shared) {
            shared = facts;
            json_object_del(shared, "health");
            continue;
        }
        json_object_foreach_safe(shared, next, key, value)
        {
            if (!json_equal(value, json_object_get(facts, key))) {
                json_object_del(shared, key);
            }
        }
        json_decref(facts);
    }
    return shared ? shared : json_object();
}

static void camp_json(struct json_out *out, const struct device_list *list,
                      const char *camp, const struct devices_shown *shown)
{
    json_t *shared = shared_by(list, camp);
    char *text = json_dumps(shared, JSON_COMPACT | JSON_SORT_KEYS);
    int devices = 0;
    int64_t runs = 0;
    int64_t iterations = 0;

    out_open(out, NULL, '{');
    class_json(out, shown, camp);
    out_name(out, "digest", camp);
    out_open(out, "devices", '[');
    for (int i = 0; i < list->count; i++) {
        const struct cell_device *d = &list->devices[i];

        if (strcmp(camp_of(d), camp) != 0) {
            continue;
        }
        runs += d->runs;
        iterations += d->iterations;
        if (devices++ < CAMP_NAMES_MAX) {
            out_text(out, NULL, d->device);
        }
    }
    out_close(out, ']');
    out_int(out, "size", devices);
    out_int(out, "runs", runs);
    out_int(out, "iterations", iterations);
    out_json(out, "shares", text);
    out_close(out, '}');
    free(text);
    json_decref(shared);
}

struct camp {
    const char *digest; /* "": they differ with themselves */
    int size;
};

/* The largest first, and last those that differ with themselves. */
static int by_size(const void *a, const void *b)
{
    const struct camp *left = a;
    const struct camp *right = b;

    if (!left->digest[0] != !right->digest[0]) {
        return left->digest[0] ? -1 : 1;
    }
    return left->size != right->size ? right->size - left->size
                                     : strcmp(left->digest, right->digest);
}

/* Caller frees. */
static struct camp *camps_of(const struct device_list *list, int *ret_count)
{
    struct camp *camps = xcalloc((size_t)list->count + 1, sizeof *camps);
    int count = 0;

    for (int i = 0; i < list->count; i++) {
        const char *digest = camp_of(&list->devices[i]);
        int at = 0;

        while (at < count && strcmp(camps[at].digest, digest) != 0) {
            at++;
        }
        count += at == count;
        camps[at].digest = digest;
        camps[at].size++;
    }
    qsort(camps, (size_t)count, sizeof *camps, by_size);
    *ret_count = count;
    return camps;
}

static void camps_json(struct json_out *out, const struct device_list *list,
                       const struct devices_shown *shown)
{
    int count;
    struct camp *camps = camps_of(list, &count);

    out_open(out, "camps", '[');
    for (int i = 0; i < count && i < CAMPS_MAX; i++) {
        camp_json(out, list, camps[i].digest, shown);
    }
    out_close(out, ']');
    out_int(out, "more_camps", count > CAMPS_MAX ? count - CAMPS_MAX : 0);
    free(camps);
}

/* What those earned together that are not named, as it stands. */
static enum verdict majority_verdict(const struct cell *cell,
                                     const struct device_list *list,
                                     const struct devices_shown *shown)
{
    int64_t last_ms = 0;

    for (int i = 0; i < list->count; i++) {
        const struct cell_device *d = &list->devices[i];

        if (d->mark != DISSENT_DISSENTS && d->last_ms > last_ms) {
            last_ms = d->last_ms;
        }
    }
    return verdict_at(cell->agreeing.verdict, last_ms, cell->vouched_ms, shown->now_ms,
                      shown->stale_after_ms);
}

static void majority_json(struct json_out *out, const struct cell *cell,
                          const struct device_list *list,
                          const struct devices_shown *shown)
{
    const struct dissent *d = &list->dissent;
    enum verdict verdict = majority_verdict(cell, list, shown);

    if (!out_object(out, "majority", d->digest[0])) {
        return;
    }
    class_json(out, shown, d->digest);
    out_text(out, "digest", d->digest);
    out_int(out, "devices", d->agreeing);
    out_int(out, "of_devices", d->devices);
    out_int(out, "runs", d->agreeing_runs);
    out_int(out, "iterations", d->agreeing_iterations);
    out_text(out, "verdict",
             verdict == VERDICT_UNMEASURED ? NULL : verdict_name(verdict));
    out_close(out, '}');
}

static void dissent_json(struct json_out *out, const struct cell *cell,
                         const struct device_list *list,
                         const struct devices_shown *shown)
{
    enum dissent_state state = list->dissent.state;
    int named = 0;

    if (!out_object(out, "dissent", state != DISSENT_NONE && state != DISSENT_VARIES)) {
        return;
    }
    out_text(out, "words", list->dissent.words);
    majority_json(out, cell, list, shown);
    out_open(out, "dissenters", '[');
    for (int i = 0; i < list->count; i++) {
        if (list->devices[i].mark == DISSENT_DISSENTS && named++ < DISSENTERS_MAX) {
            out_open(out, NULL, '{');
            name_json(out, &list->devices[i]);
            out_time(out, "named_at", list->devices[i].since_ms);
            out_close(out, '}');
        }
    }
    out_close(out, ']');
    out_int(out, "more_dissenters", named > DISSENTERS_MAX ? named - DISSENTERS_MAX : 0);
    out_bool(out, "hosts_differ", list->dissent.hosts_differ);
    camps_json(out, list, shown);
    out_close(out, '}');
}

void cell_devices_json(struct json_out *out, const struct cell *cell,
                       const struct device_list *list, const struct devices_shown *shown,
                       int limit)
{
    out_text(out, "agreement", dissent_state_name(list->dissent.state));
    out_open(out, "devices", '[');
    for (int i = 0; i < list->count && i < limit; i++) {
        cell_device_json(out, cell, &list->devices[i], shown);
    }
    out_close(out, ']');
    out_bool(out, "devices_truncated", list->count > limit);
    dissent_json(out, cell, list, shown);
    out_format(out, "devices_href", "/v1/cells/%" PRId64 "/devices", cell->id);
}

void cell_camps_json(struct json_out *out, const struct device_list *list,
                     const struct devices_shown *shown)
{
    out_text(out, "agreement", dissent_state_name(list->dissent.state));
    out_name(out, "agreement_words", list->dissent.words);
    out_int(out, "device_count", list->count);
    camps_json(out, list, shown);
}
