#include "api/render/nouns_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/array.h"
#include "daemon/base/text.h"

enum { WAITS_SHOWN = 16 };

void case_json(struct json_out *out, const struct case_key *key)
{
    out_text(out, "workload", key->workload);
    out_int(out, "version", key->version);
    out_text(out, "variant", key->variant);
    out_text(out, "size", key->size);
    out_text(out, "dtype", key->dtype);
    out_format(out, "seed", "%" PRIu64, key->seed);
}

/* As it is in the database; a job that was accepted right now has none there yet. */
static void localisation_json(struct json_out *out, const struct job *job)
{
    if (!job->localise_runs || job->localisation) {
        out_json(out, "localisation", job->localisation);
        return;
    }
    out_open(out, "localisation", '{');
    out_text(out, "state", "searching");
    out_null(out, "root");
    out_format(out, "href", "/v1/jobs/%s/localisation", job->id);
    out_close(out, '}');
}

static void members(struct json_out *out, const struct job *job, int64_t eta_ms)
{
    bool open = job->state == JOB_QUEUED || job->state == JOB_RUNNING;

    out_text(out, "id", job->id);
    out_text(out, "state", job_state_name(job->state));
    out_text(out, "priority", job_priority_name(job->priority));
    out_bool(out, "survey", job->survey);
    out_time(out, "created_at", job->created_ms);
    out_time(out, "finished_at", job->finished_ms);
    out_open(out, "progress", '{');
    out_int(out, "runs_total", job->runs_total);
    out_int(out, "runs_done", job->runs_done);
    out_int(out, "runs_failed", job->runs_failed);
    out_int_if(out, "eta_seconds", open && eta_ms >= 0, (eta_ms + 999) / 1000);
    out_close(out, '}');
    out_int(out, "iterations", job->iterations);
    out_real(out, "timeout_seconds", (double)job->timeout_ms / 1000);
    out_bool(out, "stop_when_varies", job->stop_when_varies);
    localisation_json(out, job);
    out_json(out, "request", job->request);
    out_format(out, "href", "/v1/jobs/%s", job->id);
}

void job_json(struct json_out *out, const char *key, const struct job *job,
              int64_t eta_ms)
{
    out_open(out, key, '{');
    members(out, job, eta_ms);
    out_close(out, '}');
}

void subject_json(struct json_out *out, enum subject subject, const char *name)
{
    out_text(out, "subject", subject_word(subject));
    out_name(out, "subject_name", name ? name : "");
}

static const char *item_state(const struct job_item *item)
{
    if (item->runs_answered >= item->runs_wanted) {
        return "done";
    }
    if (item->given_up) {
        return "given-up";
    }
    return item->runs_answered > 0 ? "running" : "waiting";
}

static void item_json(struct json_out *out, const struct job *job,
                      const struct job_item *item)
{
    char options[RUN_OPTIONS_SIZE];

    out_open(out, NULL, '{');
    out_int(out, "seq", item->seq);
    case_json(out, &item->key);
    out_bool(out, "is_control", item->is_control);
    subject_json(out, item->subject, item->subject_name);
    out_text(out, "device", item->device);
    out_text(out, "stack", item->stack);
    run_options_write(&item->options, options);
    out_json(out, "options", options);
    out_real(out, "timeout_seconds",
             (double)(item->timeout_ms ? item->timeout_ms : job->timeout_ms) / 1000);
    out_text(out, "state", item_state(item));
    out_int(out, "runs_wanted", item->runs_wanted);
    out_int(out, "runs_answered", item->runs_answered);
    out_int(out, "runs_failed", item->runs_failed);
    out_int(out, "runs_unanswered", item->runs_unanswered);
    out_name(out, "given_up_reason", item->given_up ? item->given_up_reason : "");
    out_int(out, "milliseconds", item->milliseconds);
    out_close(out, '}');
}

/* The keys are the devices on which JOB has runs left.  New reference. */
static json_t *devices_left(const struct job *job)
{
    json_t *devices = json_object();
    const char *last = "";

    for (int i = 0; i < job->item_count; i++) {
        const struct job_item *item = &job->items[i];

        if (item->runs_answered < item->runs_wanted && !item->given_up &&
            strcmp(item->device, last) != 0) {
            json_object_set_new(devices, item->device, json_true());
            last = item->device;
        }
    }
    return devices;
}

/* The devices on which an open job waits. */
static void waits_json(struct json_out *out, const struct job *job, const json_t *waits,
                       const json_t *known)
{
    bool open = job->state == JOB_QUEUED || job->state == JOB_RUNNING;
    json_t *left = open && known ? devices_left(job) : NULL, *each;
    const char *id;
    int shown = 0;
    size_t i;

    out_open(out, "waits_for", '[');
    json_array_foreach(waits, i, each)
    {
        const char *device = json_string_value(json_object_get(each, "device"));

        if (json_object_get(left, device) && shown++ < WAITS_SHOWN) {
            out_format(out, NULL, "device %s %s", device,
                       json_string_value(json_object_get(each, "text")));
        }
    }
    json_object_foreach(left, id, each)
    {
        if (!json_object_get(known, id) && shown++ < WAITS_SHOWN) {
            out_format(out, NULL, "device %s: no host has it now", id);
        }
    }
    if (shown > WAITS_SHOWN) {
        out_format(out, NULL, "%d more", shown - WAITS_SHOWN);
    }
    out_close(out, ']');
    json_decref(left);
}

void job_json_with_items(struct json_out *out, const struct job *job, int64_t eta_ms,
                         const json_t *waits, const json_t *known)
{
    out_open(out, NULL, '{');
    members(out, job, eta_ms);
    waits_json(out, job, waits, known);
    out_open(out, "items", '[');
    for (int i = 0; i < job->item_count; i++) {
        item_json(out, job, &job->items[i]);
    }
    out_close(out, ']');
    out_close(out, '}');
}

void sum_json(struct json_out *out, const char *name, const char *bits)
{
    char decimal[DECIMAL_SIZE];
    char bits_name[32];

    decimal_from_bits(bits, decimal);
    snprintf(bits_name, sizeof bits_name, "%s_bits", name);
    out_name(out, name, decimal);
    out_name(out, bits_name, bits);
}

static void rate_json(struct json_out *out, const char *name, const struct rate *rate)
{
    out_open(out, name, '{');
    out_int(out, "departed", rate->k);
    out_int(out, "of", rate->n);
    out_real(out, "lower", rate->lower);
    out_real(out, "upper", rate->upper);
    out_close(out, '}');
}

void departures_json(struct json_out *out, const struct departures *departures)
{
    char text[DEPARTURES_TEXT_SIZE];

    if (!departures) {
        out_null(out, "departures");
        return;
    }
    out_open(out, "departures", '{');
    departures_text(departures, text);
    rate_json(out, "runs", &departures->runs);
    rate_json(out, "iterations", &departures->iterations);
    out_text(out, "text", text);
    out_close(out, '}');
}

void share_json(struct json_out *out, bool is_known, int64_t share_ppm)
{
    if (is_known) {
        out_real(out, "share", (double)share_ppm / 1e6);
    } else {
        out_null(out, "share");
    }
}

static void times(struct json_out *out, const struct run_record *run)
{
    static const char *const names[] = { "min", "median", "max" };
    const int64_t ns[] = { run->min_ns, run->median_ns, run->max_ns };

    out_open(out, "milliseconds", '{');
    for (int i = 0; i < 3; i++) {
        out_ms_if(out, names[i], run->max_ns > 0, ns[i]);
    }
    out_close(out, '}');
}

static void challenge(struct json_out *out, const struct run_record *run)
{
    if (!out_object(out, "challenge", run->is_challenge)) {
        return;
    }
    out_int_if(out, "cell", run->challenged, run->challenged);
    out_close(out, '}');
}

static void identity(struct json_out *out, const struct run_record *run)
{
    out_text(out, "id", run->id);
    out_text(out, "job", run->job);
    out_int(out, "item", run->item);
    case_json(out, &run->key);
    subject_json(out, run->subject, run->subject_name);
    out_text(out, "device", run->device);
    out_name(out, "environment", run->environment);
    out_text(out, "stack", run->stack);
    out_int_if(out, "cell", run->cell && !run->is_challenge, run->cell);
    challenge(out, run);
    out_text(out, "outcome", run->finished ? outcome_name(run->outcome) : NULL);
    out_name(out, "cause", run->cause);
    out_json(out, "circumstances", run->circumstances);
}

static void process(struct json_out *out, const struct run_record *run)
{
    out_open(out, "process", '{');
    out_int_if(out, "pid", run->pid, run->pid);
    out_name(out, "boot_id", run->boot_id);
    out_name(out, "device_read_back", run->device_read_back);
    out_ms(out, "wall_milliseconds", run->wall_ns);
    out_int(out, "max_rss_kb", run->max_rss_kb);
    out_close(out, '}');
}

static void trace(struct json_out *out, const struct run_record *run)
{
    if (!out_object(out, "trace", run->trace_records)) {
        return;
    }
    out_int(out, "records", run->trace_records);
    out_int(out, "dropped", run->trace_dropped);
    out_bool(out, "truncated", run->trace_dropped > 0);
    out_format(out, "href", "/v1/runs/%s/trace", run->id);
    out_close(out, '}');
}

static void check(struct json_out *out, const struct run_check *check)
{
    bool passed = check->state == CHECK_PASSED;

    if (!out_object(out, "check", check->state != CHECK_NONE)) {
        return;
    }
    out_text(out, "state", check_state_name(check->state));
    out_name(out, "digest", check->digest);
    share_json(out, passed, check->share_ppm);
    out_name(out, "worst", check->state == CHECK_GIVEN_UP ? "" : check->words);
    out_name(out, "cause", check->state == CHECK_GIVEN_UP ? check->words : "");
    out_close(out, '}');
}

void run_json(struct json_out *out, const struct run_record *run)
{
    identity(out, run);
    out_bool(out, "damaged", run->damaged);
    out_int(out, "iterations", run->iterations);
    out_int(out, "distinct_digests", run->distinct_digests);
    out_name(out, "digest", run->digest);
    out_name(out, "input_digest", run->input_digest);
    sum_json(out, "weight_sum", run->weight_sum);
    sum_json(out, "loss", run->loss);
    out_name(out, "algorithm", run->algorithm);
    out_name(out, "claim", run->claim);
    times(out, run);
    out_open(out, "work", '{');
    out_int(out, "elements", run->elements);
    out_int(out, "bytes_hashed", run->bytes_hashed);
    out_int(out, "iterations", run->iterations);
    out_close(out, '}');
    check(out, &run->check);
    process(out, run);
    trace(out, run);
    out_time(out, "queued_at", run->intent_ms);
    out_time(out, "started_at", run->started_ms);
    out_time(out, "finished_at", run->finished_ms);
    out_format(out, "href", "/v1/runs/%s", run->id);
}

void cost_json(struct json_out *out, const struct cost *cost, const char *against,
               const char *size)
{
    out_name(out, "cost_note", cost->too_short ? TIMES_TOO_SHORT : "");
    if (!out_object(out, "cost", cost->known)) {
        return;
    }
    out_text(out, "against", against);
    out_real(out, "median", cost->median);
    out_real(out, "low", cost->low);
    out_real(out, "high", cost->high);
    out_text(out, "size", size);
    out_close(out, '}');
}

void labels_json(struct json_out *out, const char *key, const char *name,
                 const struct profile_label *labels, int count)
{
    out_open(out, key, '[');
    for (int i = 0; i < count; i++) {
        out_open(out, NULL, '{');
        out_text(out, name, labels[i].name);
        out_text(out, "title", labels[i].title);
        out_close(out, '}');
    }
    out_close(out, ']');
}

void columns_json(struct json_out *out, const struct profile_table *table)
{
    out_open(out, "columns", '[');
    for (int c = 0; c < table->column_count; c++) {
        size_t i;
        json_t *name;

        out_open(out, NULL, '{');
        out_text(out, "id", table->columns[c].name);
        out_text(out, "title", table->columns[c].title);
        out_open(out, "images", '[');
        json_array_foreach((json_t *)table->column_images[c], i, name)
        {
            const char *text = json_string_value(name);

            out_open(out, NULL, '{');
            out_text(out, "name", text);
            out_text(out, "framework", profile_image(table, text));
            out_close(out, '}');
        }
        out_close(out, ']');
        if (out_object(out, "versions", table->column_versions[c].framework)) {
            out_text(out, "framework", table->column_versions[c].framework);
            out_text(out, "from", table->column_versions[c].from);
            out_text(out, "to", table->column_versions[c].to);
            out_close(out, '}');
        }
        out_close(out, '}');
    }
    out_close(out, ']');
}

void row_references_json(struct json_out *out, const struct profile_row *row)
{
    static const char *const members[] = {
        "kind", "id", "title", "url", "state", "solved"
    };
    size_t i;
    json_t *reference;

    out_open(out, "references", '[');
    json_array_foreach((json_t *)row->references, i, reference)
    {
        out_open(out, NULL, '{');
        for (int m = 0; m < COUNT_OF(members); m++) {
            out_text(out, members[m],
                     json_string_value(json_object_get(reference, members[m])));
        }
        out_close(out, '}');
    }
    out_close(out, ']');
}

void row_operations_json(struct json_out *out, const struct profile_row *row)
{
    size_t i;
    json_t *name;

    out_open(out, "operations", '[');
    json_array_foreach((json_t *)row->operations, i, name)
    {
        out_text(out, NULL, json_string_value(name));
    }
    out_close(out, ']');
}
