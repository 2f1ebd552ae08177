#include "api/render/run_json.h"

#include <stdio.h>

#include "api/render/job_json.h"
#include "daemon/base/decimal.h"

void sum_json(struct json_out *out, const char *name, const char *bits)
{
    char decimal[DECIMAL_SIZE];
    char bits_name[32];

    decimal_from_bits(bits, decimal);
    snprintf(bits_name, sizeof bits_name, "%s_bits", name);
    out_name(out, name, decimal);
    out_name(out, bits_name, bits);
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

static void identity(struct json_out *out, const struct run_record *run)
{
    out_text(out, "id", run->id);
    out_text(out, "job", run->job);
    out_int(out, "item", run->item);
    case_json(out, &run->key);
    out_text(out, "device", run->device);
    out_name(out, "environment", run->environment);
    out_text(out, "stack", run->stack);
    out_int_if(out, "cell", run->cell, run->cell);
    out_text(out, "outcome", run->finished ? outcome_name(run->outcome) : NULL);
    out_name(out, "cause", run->cause);
    out_json(out, "circumstances", run->circumstances);
}

static void process(struct json_out *out, const struct run_record *run)
{
    out_open(out, "process", '{');
    out_int(out, "pid", run->pid);
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

void run_json(struct json_out *out, const struct run_record *run)
{
    identity(out, run);
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
    process(out, run);
    trace(out, run);
    out_time(out, "queued_at", run->intent_ms);
    out_time(out, "started_at", run->started_ms);
    out_time(out, "finished_at", run->finished_ms);
    out_format(out, "href", "/v1/runs/%s", run->id);
}
