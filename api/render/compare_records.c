#include "api/render/compare_records.h"

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

void compare_difference_json(struct json_out *out, const char *name,
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

/* Where the traces part; null where they do not. */
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
            compare_difference_json(out, NULL, c, p->first_root);
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

void compare_records_json(const struct compare *c, struct json_out *out)
{
    compare_difference_json(out, "first_difference", c, c->traces.first);
    compare_difference_json(out, "root_cause", c, c->traces.root);
    structure_json(out, c);
    out_int(out, "probes_compared", c->traces.compared);
    out_int(out, "steps_compared", c->traces.steps);
    counts_json(out, &c->traces);
    roots_json(out, c);
    places_json(out, c);
}
