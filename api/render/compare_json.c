/* A comparison of two runs as JSON (api/compare.h). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/compare.h"
#include "api/render/nouns_json.h"

enum { PLACES_SHOWN = 1000, ROOTS_SHOWN = 16 };

static void digests_json(struct json_out *out, const char *name, struct digest a,
                         struct digest b)
{
    char hex[DIGEST_HEX_SIZE];

    if (name) {
        out_open(out, name, '{');
    }
    digest_hex(a, hex);
    out_text(out, "a", hex);
    digest_hex(b, hex);
    out_text(out, "b", hex);
    if (name) {
        out_close(out, '}');
    }
}

static void moment_json(struct json_out *out, const struct trace *trace, int64_t position)
{
    const struct trace_record *record = &trace->records[position];

    out_int(out, "position", position);
    out_int(out, "iteration", record->iteration);
    out_int(out, "step", record->step);
    out_text(out, "probe", trace_place_at(trace, position));
}

/* The pair of records at POSITION; null for -1. */
static void difference_json(struct json_out *out, const char *name,
                            const struct compare *c, int64_t position)
{
    const struct trace_record *a, *b;

    if (!out_object(out, name, c->has_traces && position >= 0)) {
        return;
    }
    a = &c->a.trace.records[position];
    b = &c->b.trace.records[position];
    moment_json(out, &c->a.trace, position);
    out_int(out, "occurrence", trace_occurrence(&c->a.trace, position));
    out_text(out, "kind", trace_kind_name((enum trace_kind)c->traces.kinds[position]));
    out_bool(out, "reads_nothing", trace_reads_nothing(a) && trace_reads_nothing(b));
    out_bool(out, "inputs_equal", digest_equal(a->in, b->in));
    out_bool(out, "outputs_equal", digest_equal(a->out, b->out));
    digests_json(out, NULL, a->out, b->out);
    digests_json(out, "inputs", a->in, b->in);
    out_close(out, '}');
}

static void side_record_json(struct json_out *out, const char *name,
                             const struct trace *trace, int64_t position)
{
    if (out_object(out, name, position < trace->count)) {
        moment_json(out, trace, position);
        out_close(out, '}');
    }
}

/* Where the structures of the traces diverge; null where they do not. */
static void structure_json(struct json_out *out, const struct compare *c)
{
    if (!out_object(out, "structure_parts",
                    c->has_traces && c->traces.structure != TRACE_DIVERGES_NOWHERE)) {
        return;
    }
    out_int(out, "position", c->traces.compared);
    side_record_json(out, "a", &c->a.trace, c->traces.compared);
    side_record_json(out, "b", &c->b.trace, c->traces.compared);
    out_close(out, '}');
}

static void counts_json(struct json_out *out, const struct trace_comparison *t)
{
    out_open(out, "records", '{');
    out_int(out, "compared", t->compared);
    out_int(out, "equal", t->same);
    out_int(out, "roots", t->roots);
    out_int(out, "infected", t->infected);
    out_int(out, "absorbed", t->absorbed);
    out_close(out, '}');
}

/* The first root of each place that has one, by program order of the places' first
 * differences. */
static void roots_json(struct json_out *out, const struct compare *c)
{
    int shown = 0;

    out_open(out, "roots", '[');
    for (int i = 0; i < c->place_count && shown < ROOTS_SHOWN; i++) {
        const struct trace_place_comparison *p = &c->traces.places[c->places[i]];

        if (p->first_root >= 0) {
            difference_json(out, NULL, c, p->first_root);
            shown++;
        }
    }
    out_close(out, ']');
}

static void places_json(struct json_out *out, const struct compare *c)
{
    out_int(out, "places_different", c->place_count);
    out_open(out, "places", '[');
    for (int i = 0; i < c->place_count && i < PLACES_SHOWN; i++) {
        const struct trace_place_comparison *p = &c->traces.places[c->places[i]];

        out_open(out, NULL, '{');
        out_text(out, "place", c->a.trace.places[c->places[i]]);
        out_int(out, "compared", p->compared);
        out_int(out, "roots", p->roots);
        out_int(out, "infected", p->infected);
        out_int(out, "absorbed", p->absorbed);
        out_open(out, "first", '{');
        moment_json(out, &c->a.trace, p->first);
        out_text(out, "kind",
                 trace_kind_name((enum trace_kind)c->traces.kinds[p->first]));
        out_close(out, '}');
        out_close(out, '}');
    }
    out_close(out, ']');
}

/* What the records show: first difference, root cause, where structure diverges, counts,
 * roots, places. */
static void records_json(const struct compare *c, struct json_out *out)
{
    difference_json(out, "first_difference", c, c->traces.first);
    difference_json(out, "root_cause", c, c->traces.root);
    structure_json(out, c);
    out_int(out, "probes_compared", c->traces.compared);
    out_int(out, "steps_compared", c->traces.steps);
    counts_json(out, &c->traces);
    roots_json(out, c);
    places_json(out, c);
}

static void trace_json(struct json_out *out, const char *name,
                       const struct compare_run *side)
{
    if (!out_object(out, name, side->side.trace)) {
        return;
    }
    out_int(out, "records", side->trace.count);
    out_int(out, "dropped", side->trace.dropped);
    out_bool(out, "truncated", side->trace.dropped > 0);
    out_json(out, "probes", side->probes);
    out_format(out, "href", "/v1/runs/%s/trace", side->run.id);
    out_close(out, '}');
}

static void aspect_json(struct json_out *out, const char *name, const struct compare *c,
                        const struct trace_aspect *aspect)
{
    out_open(out, name, '{');
    out_bool_if(out, "equal", c->has_traces && aspect->compared, aspect->different == 0);
    out_int(out, "compared", aspect->compared);
    out_int(out, "different", aspect->different);
    out_bool(out, "reordered", aspect->reordered);
    difference_json(out, "first_difference", c, aspect->different ? aspect->first : -1);
    out_close(out, '}');
}

/* Two texts, "" where it is not known. */
static void texts_members(struct json_out *out, const char *a, const char *b)
{
    out_bool_if(out, "equal", *a && *b, strcmp(a, b) == 0);
    out_name(out, "a", a);
    out_name(out, "b", b);
}

static void texts_json(struct json_out *out, const char *name, const char *a,
                       const char *b)
{
    out_open(out, name, '{');
    texts_members(out, a, b);
    out_close(out, '}');
}

static void case_difference(struct json_out *out, const char *name, const char *a,
                            const char *b)
{
    if (strcmp(a, b) != 0) {
        out_open(out, NULL, '{');
        out_text(out, "name", name);
        out_text(out, "a", a);
        out_text(out, "b", b);
        out_close(out, '}');
    }
}

static void cases_json(struct json_out *out, const struct case_key *a,
                       const struct case_key *b)
{
    char texts[4][24];

    snprintf(texts[0], sizeof texts[0], "%d", a->version);
    snprintf(texts[1], sizeof texts[1], "%d", b->version);
    snprintf(texts[2], sizeof texts[2], "%" PRIu64, a->seed);
    snprintf(texts[3], sizeof texts[3], "%" PRIu64, b->seed);
    out_open(out, "case", '{');
    out_open(out, "differences", '[');
    case_difference(out, "workload", a->workload, b->workload);
    case_difference(out, "version", texts[0], texts[1]);
    case_difference(out, "variant", a->variant, b->variant);
    case_difference(out, "size", a->size, b->size);
    case_difference(out, "dtype", a->dtype, b->dtype);
    case_difference(out, "seed", texts[2], texts[3]);
    out_close(out, ']');
    out_close(out, '}');
}

static void environment_json(struct json_out *out, const struct compare *c)
{
    out_open(out, "environment", '{');
    texts_members(out, c->a.run.environment, c->b.run.environment);
    out_open(out, "differences", '[');
    for (int i = 0; i < c->fact_count; i++) {
        out_open(out, NULL, '{');
        out_text(out, "name", c->facts[i].name);
        out_name(out, "a", c->facts[i].a);
        out_name(out, "b", c->facts[i].b);
        out_close(out, '}');
    }
    out_close(out, ']');
    out_close(out, '}');
}

static void result_json(struct json_out *out, const char *name,
                        const struct compare_run *side)
{
    const struct run_record *run = &side->run;

    out_open(out, name, '{');
    out_text(out, "outcome", run->finished ? outcome_name(run->outcome) : NULL);
    out_name(out, "digest", run->digest);
    out_int(out, "distinct_digests", run->distinct_digests);
    sum_json(out, "weight_sum", run->weight_sum);
    sum_json(out, "loss", run->loss);
    out_close(out, '}');
}

static void results_json(struct json_out *out, const struct compare *c)
{
    enum comparison_results results = comparison_results(&c->a.side, &c->b.side);

    out_open(out, "result", '{');
    out_bool_if(out, "equal", results != COMPARISON_RESULTS_UNKNOWN,
                results == COMPARISON_RESULTS_EQUAL);
    result_json(out, "a", &c->a);
    result_json(out, "b", &c->b);
    out_close(out, '}');
}

void compare_json(const struct compare *c, struct json_out *out)
{
    char subjects[2][SUBJECT_TEXT_SIZE];

    out_open(out, NULL, '{');
    out_text(out, "a", c->a.run.id);
    out_text(out, "b", c->b.run.id);
    out_text(out, "verdict", comparison_verdict_name(c->verdict));
    out_bool(out, "equal", c->verdict == COMPARISON_EQUAL);
    out_text(out, "reason", c->reason);
    records_json(c, out);
    aspect_json(out, "variables_at_start", c, &c->variables);
    aspect_json(out, "data", c, &c->data);
    aspect_json(out, "rng", c, &c->rng);
    cases_json(out, &c->a.run.key, &c->b.run.key);
    subject_text(c->a.run.subject, c->a.run.subject_name, NULL, subjects[0]);
    subject_text(c->b.run.subject, c->b.run.subject_name, NULL, subjects[1]);
    texts_json(out, "subject", subjects[0], subjects[1]);
    texts_json(out, "algorithm", c->a.run.algorithm, c->b.run.algorithm);
    environment_json(out, c);
    texts_json(out, "inputs", c->a.run.input_digest, c->b.run.input_digest);
    results_json(out, c);
    out_open(out, "traces", '{');
    trace_json(out, "a", &c->a);
    trace_json(out, "b", &c->b);
    out_close(out, '}');
    out_close(out, '}');
}
