/* Drift as JSON and as CSV, and the jobs that would tell more. */
#include "api/render/drift.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/render/nouns_json.h"
#include "daemon/base/array.h"
#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "daemon/base/text.h"
#include "daemon/evidence/facts.h"
#include "daemon/jobs/request.h"

static json_t *facts_of(const struct drift_end *end)
{
    json_t *facts = json_loads(end->json ? end->json : "{}", 0, NULL);

    return facts ? facts : json_object();
}

char *drift_title(const struct drift *drift)
{
    json_t *from = facts_of(&drift->from);
    json_t *to = facts_of(&drift->to);
    char *change = facts_change(from, to);
    char *title;

    if (drift->since_ms) {
        char when[CLOCK_RFC3339_SIZE];
        char until[CLOCK_RFC3339_SIZE];

        clock_rfc3339(drift->since_ms, when);
        clock_rfc3339(drift->until_ms, until);
        title =
            xasprintf("%s since %s%s%s, %s", drift->since_host, when,
                      drift->until_ms ? " until " : "", drift->until_ms ? until : "",
                      drift->unmeasured ? DRIFT_UNMEASURED : "in the same environment");
    } else if (drift->host_count > 1) {
        title = xasprintf("%s on %d hosts", change, drift->host_count);
    } else {
        title = xasprintf("%s%s%s", *change ? change : "nothing",
                          drift->host_count ? " on " : "",
                          drift->host_count ? drift->hosts[0] : "");
    }
    free(change);
    json_decref(from);
    json_decref(to);
    return title;
}

char *drift_href(const struct drift *drift)
{
    char when[CLOCK_RFC3339_SIZE];
    char until[CLOCK_RFC3339_SIZE];

    if (drift->since_ms) {
        clock_rfc3339(drift->since_ms, when);
        clock_rfc3339(drift->until_ms, until);
        return xasprintf("/v1/drift?host=%s&since=%s%s%s", drift->since_host, when,
                         drift->until_ms ? "&until=" : "", drift->until_ms ? until : "");
    }
    return xasprintf("/v1/drift?from=%s&to=%s", drift->from.environment.id,
                     drift->to.environment.id);
}

static void copy_value(const char *query, const char *name, char *ret_text, size_t size)
{
    const char *at = strstr(query, name);

    at = at ? at + strlen(name) : "";
    snprintf(ret_text, size, "%.*s", (int)strcspn(at, "&"), at);
}

char *drift_page(const char *href)
{
    char ends[2][CASE_TITLE_SIZE + CLOCK_RFC3339_SIZE];
    char until[CLOCK_RFC3339_SIZE];
    bool since = strstr(href, "since=") != NULL;

    copy_value(href, "until=", until, sizeof until);
    copy_value(href, since ? "host=" : "from=", ends[0], sizeof ends[0]);
    copy_value(href, since ? "since=" : "to=", ends[1], sizeof ends[1]);
    return xasprintf("/?drift=%s%s%s%s%s", ends[0], since ? "@" : "..", ends[1],
                     until[0] ? ".." : "", until);
}

/* Jobs. */

static bool holds(const json_t *list, const char *text)
{
    size_t i;
    json_t *entry;

    json_array_foreach(list, i, entry)
    {
        if (strcmp(json_string_value(entry), text) == 0) {
            return true;
        }
    }
    return false;
}

static json_t *job_body(const struct drift_case *c, const struct drift_place *place)
{
    const struct case_key *k = &c->key;
    const struct run_circumstances *wanted = &c->wanted;
    char seed[24];
    json_t *body;
    int stack = (int)strcspn(place->stack, "/"); /* without an external one's workload */

    snprintf(seed, sizeof seed, "%" PRIu64, k->seed);
    body = json_pack("{s:[s], s:[s], s:[s], s:[s], s:[s], s:[s], s:[s#], s:i}",
                     "workloads", k->workload, "variants", k->variant, "sizes", k->size,
                     "dtypes", k->dtype, "seeds", seed, "devices", place->device,
                     "stacks", place->stack, stack, "runs", JOB_RUNS_DEFAULT);
    if (wanted->contention) {
        json_object_set_new(body, "contention", json_integer(wanted->contention));
    }
    if (wanted->memory_poison[0]) {
        json_object_set_new(body, "memory_poison", json_string(wanted->memory_poison));
    }
    if (wanted->allocation_jitter[0]) {
        json_object_set_new(body, "allocation_jitter",
                            json_string(wanted->allocation_jitter));
    }
    if (wanted->shared_import) {
        json_object_set_new(body, "shared_import", json_true());
    }
    return body;
}

static bool same_but_variants(json_t *a, json_t *b)
{
    static const char *const members[] = {
        "workloads",         "sizes",        "dtypes",     "seeds",
        "devices",           "stacks",       "contention", "memory_poison",
        "allocation_jitter", "shared_import"
    };

    for (int i = 0; i < COUNT_OF(members); i++) {
        json_t *left = json_object_get(a, members[i]);
        json_t *right = json_object_get(b, members[i]);

        if ((left || right) && !json_equal(left, right)) {
            return false;
        }
    }
    return true;
}

static void add_job(json_t *jobs, json_t *body)
{
    json_t *variant = json_array_get(json_object_get(body, "variants"), 0);
    size_t i;
    json_t *job;

    json_array_foreach(jobs, i, job)
    {
        json_t *variants = json_object_get(job, "variants");

        if (same_but_variants(job, body)) {
            if (!holds(variants, json_string_value(variant))) {
                json_array_append(variants, variant);
            }
            json_decref(body);
            return;
        }
    }
    json_array_append_new(jobs, body);
}

json_t *drift_jobs(const struct drift *drift)
{
    json_t *jobs = json_array();

    for (int i = 0; i < drift->case_count; i++) {
        const struct drift_case *c = &drift->cases[i];

        if (c->lacks_from && drift->from.place_count) {
            add_job(jobs, job_body(c, &drift->from.places[0]));
        }
        if (c->lacks_to && drift->to.place_count) {
            add_job(jobs, job_body(c, &drift->to.places[0]));
        }
    }
    return jobs;
}

/* The object. */

static void dump_json(struct json_out *out, const char *key, const json_t *json)
{
    char *text =
        json ? json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS) : NULL;

    out_json(out, key, text);
    free(text);
}

static void end_json(struct json_out *out, const char *key, const struct drift_end *end)
{
    const struct environment *e = &end->environment;

    out_open(out, key, '{');
    out_text(out, "id", e->id);
    out_text(out, "title", e->title);
    out_time(out, "first_seen_at", e->first_seen_ms);
    out_time(out, "last_seen_at", e->last_seen_ms);
    out_json(out, "facts", end->json);
    out_format(out, "href", "/v1/environments/%s", e->id);
    out_close(out, '}');
}

static void facts_json(const struct drift *drift, struct json_out *out)
{
    json_t *from = facts_of(&drift->from);
    json_t *to = facts_of(&drift->to);
    const json_t *const both[] = { from, to };
    json_t *names = facts_names(both, 2, true);
    size_t i;
    json_t *name;

    out_open(out, "facts", '[');
    json_array_foreach(names, i, name)
    {
        const char *text = json_string_value(name);

        out_open(out, NULL, '{');
        out_text(out, "name", text);
        dump_json(out, "before", json_object_get(from, text));
        dump_json(out, "after", json_object_get(to, text));
        out_close(out, '}');
    }
    out_close(out, ']');
    json_decref(names);
    json_decref(from);
    json_decref(to);
}

static void counts_json(const struct drift_counts *counts, struct json_out *out)
{
    out_open(out, "counts", '{');
    for (int k = 0; k < DRIFT_KIND_COUNT; k++) {
        if (k != DRIFT_SAME) {
            out_int(out, drift_kind_name((enum drift_kind)k), counts->kinds[k]);
        }
    }
    out_int(out, "same_bits", counts->same_bits);
    out_int(out, "same_bits_proven", counts->proven);
    out_int(out, "devices_disagree_too", counts->disagree_too);
    out_int(out, "cost_more", counts->dearer);
    out_int(out, "cost_less", counts->cheaper);
    out_close(out, '}');
}

static void side_json(struct json_out *out, const char *key,
                      const struct drift_side *side)
{
    if (!out_object(out, key, side->cell != 0)) {
        return;
    }
    out_text(out, "verdict", verdict_name(side->stale ? VERDICT_STALE : side->verdict));
    out_int(out, "runs", side->runs);
    out_int(out, "distinct_digests", side->distinct_digests);
    out_name(out, "digest", side->digest);
    out_int(out, "compared_runs", side->compared_runs);
    out_int(out, "agreeing_devices", side->devices);
    out_int(out, "dissenting_devices", side->dissenters);
    out_name(out, "dissenting", side->dissenting);
    out_name(out, "conditions", side->conditions);
    out_name(out, "algorithm", side->algorithm);
    out_ms_if(out, "median_milliseconds", side->times.runs > 0, side->times.median_ns);
    out_format(out, "href", "/v1/cells/%" PRId64, side->cell);
    out_close(out, '}');
}

static void case_members(const struct drift *drift, const struct drift_case *c,
                         struct json_out *out)
{
    const struct drift *const d = drift;
    json_t *job = c->lacks_to && d->to.place_count       ? job_body(c, &d->to.places[0])
                  : c->lacks_from && d->from.place_count ? job_body(c, &d->from.places[0])
                                                         : NULL;

    out_open(out, NULL, '{');
    case_json(out, &c->key);
    out_bool(out, "is_control", c->is_control);
    out_text(out, "kind", drift_kind_name(c->kind));
    out_text(out, "bits", !c->bits_told ? NULL : c->bits_same ? "same" : "changed");
    out_bool(out, "proven", c->proven);
    out_text(out, "reason", c->reason);
    out_name(out, "conditions", c->conditions);
    out_int(out, "devices_in_common", c->common);
    out_int(out, "devices_changed", c->changed);
    side_json(out, "before", &c->from);
    side_json(out, "after", &c->to);
    out_bool(out, "algorithm_changed", c->algorithm_changed);
    out_bool(out, "cost_changed", c->cost_changed);
    if (out_object(out, "cost", c->cost.known)) {
        out_real(out, "median", c->cost.median);
        out_real(out, "low", c->cost.low);
        out_real(out, "high", c->cost.high);
        out_close(out, '}');
    }
    dump_json(out, "to_run", job);
    out_close(out, '}');
    json_decref(job);
}

static int group_json(const struct drift *drift, int first, struct json_out *out)
{
    const struct drift_case *head = &drift->cases[first];
    int end = first;

    out_open(out, NULL, '{');
    out_text(out, "kind", drift_kind_name(head->kind));
    out_text(out, "workload", head->key.workload);
    subject_json(out, head->subject, head->subject_name);
    out_name(out, "algorithm_before", head->from.algorithm);
    out_name(out, "algorithm_after", head->to.algorithm);
    out_open(out, "cases", '[');
    while (end < drift->case_count && drift_same_group(head, &drift->cases[end])) {
        case_members(drift, &drift->cases[end++], out);
    }
    out_close(out, ']');
    out_close(out, '}');
    return end;
}

void drift_json(const struct drift *drift, struct json_out *out)
{
    struct drift_counts counts = drift_count(drift->cases, drift->case_count);
    char headline[DRIFT_HEADLINE_SIZE];
    char *title = drift_title(drift);
    char *href = drift_href(drift);
    char *page = drift_page(href);
    json_t *jobs = drift_jobs(drift);

    drift_headline(drift->cases, drift->case_count, headline);
    out_open(out, NULL, '{');
    out_text(out, "title", title);
    out_text(out, "headline", headline);
    end_json(out, "from", &drift->from);
    end_json(out, "to", &drift->to);
    facts_json(drift, out);
    out_open(out, "hosts", '[');
    for (int i = 0; i < drift->host_count; i++) {
        out_text(out, NULL, drift->hosts[i]);
    }
    out_close(out, ']');
    counts_json(&counts, out);
    out_open(out, "groups", '[');
    for (int i = 0; i < drift->case_count;) {
        i = group_json(drift, i, out);
    }
    out_close(out, ']');
    dump_json(out, "to_run", jobs);
    out_text(out, "href", href);
    out_text(out, "page", page);
    out_close(out, '}');
    json_decref(jobs);
    free(title);
    free(page);
    free(href);
}

/* The table. */

void drift_csv_head(struct buf *buf)
{
    buf_puts(buf,
             "from,to,kind,workload,version,variant,size,dtype,seed,subject,"
             "subject_name,bits,verdict_before,verdict_after,digest_before,"
             "digest_after,runs_before,runs_after,algorithm_before,algorithm_after,"
             "cost,reason\r\n");
}

static const char *verdict_text(const struct drift_side *side)
{
    return !side->cell   ? ""
           : side->stale ? verdict_name(VERDICT_STALE)
                         : verdict_name(side->verdict);
}

static void line_csv(const struct drift *drift, const struct drift_case *c,
                     struct buf *buf)
{
    const char *const names[] = { drift->from.environment.id, drift->to.environment.id,
                                  drift_kind_name(c->kind), c->key.workload };
    const char *const which[] = { c->key.variant, c->key.size, c->key.dtype };
    const char *const found[] = { subject_word(c->subject),
                                  c->subject_name,
                                  !c->bits_told  ? ""
                                  : c->bits_same ? "same"
                                                 : "changed",
                                  verdict_text(&c->from),
                                  verdict_text(&c->to),
                                  c->from.digest,
                                  c->to.digest };

    for (int i = 0; i < COUNT_OF(names); i++) {
        text_csv(buf, names[i]);
        buf_putc(buf, ',');
    }
    buf_printf(buf, "%d,", c->key.version);
    for (int i = 0; i < COUNT_OF(which); i++) {
        text_csv(buf, which[i]);
        buf_putc(buf, ',');
    }
    buf_printf(buf, "%" PRIu64 ",", c->key.seed);
    for (int i = 0; i < COUNT_OF(found); i++) {
        text_csv(buf, found[i]);
        buf_putc(buf, ',');
    }
    buf_printf(buf, "%" PRId64 ",%" PRId64 ",", c->from.runs, c->to.runs);
    text_csv(buf, c->from.algorithm);
    buf_putc(buf, ',');
    text_csv(buf, c->to.algorithm);
    buf_putc(buf, ',');
    if (c->cost.known) {
        buf_printf(buf, "%.4g", c->cost.median);
    }
    buf_putc(buf, ',');
    text_csv(buf, c->reason);
    buf_puts(buf, "\r\n");
}

void drift_csv(const struct drift *drift, struct buf *buf)
{
    for (int i = 0; i < drift->case_count; i++) {
        line_csv(drift, &drift->cases[i], buf);
    }
}
