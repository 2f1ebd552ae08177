#include "api/compare.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "api/http/handlers.h"
#include "api/http/params.h"
#include "api/http/reply.h"
#include "daemon/base/mem.h"
#include "db/fleet.h"
#include "db/runs.h"
#include "db/traces.h"

static enum err_code load_environment(struct tx *tx, struct compare_run *side,
                                      struct err *err)
{
    return side->run.environment[0]
               ? environments_get(tx, side->run.environment, &side->environment,
                                  &side->facts, err)
               : ERR_OK;
}

static enum err_code load_run(struct tx *tx, const char *id, struct compare_run *side,
                              struct err *err)
{
    struct run_record *run = &side->run;
    struct run_options options;
    int64_t iterations = 0;
    enum err_code code;

    if (runs_get(tx, id, run, err) != ERR_OK ||
        load_environment(tx, side, err) != ERR_OK) {
        return err->code;
    }
    code = runs_asked(tx, id, &options, &iterations, err);
    options.circumstances = (struct run_circumstances){ .contention = 0 };
    run_options_write(&options, side->probes);
    if (code == ERR_OK && run->trace_records) {
        code = runs_trace(tx, id, &side->trace, NULL, err);
    }
    side->side =
        (struct comparison_side){ .key = &run->key,
                                  .finished = run->finished,
                                  .outcome = run->outcome,
                                  .iterations = iterations,
                                  .probes = side->probes,
                                  .digest = run->digest,
                                  .distinct_digests = run->distinct_digests,
                                  .trace = run->trace_records ? &side->trace : NULL };
    return code;
}

static void release_run(struct compare_run *side)
{
    trace_release(&side->trace);
    free(side->facts);
}

static char *fact_text(const json_t *value)
{
    return json_is_string(value) ? xstrdup(json_string_value(value))
           : value               ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY)
                                 : xstrdup("");
}

static void add_fact(struct compare *c, const char *name, const json_t *a,
                     const json_t *b)
{
    c->facts = xgrow(c->facts, c->fact_count, sizeof *c->facts);
    c->facts[c->fact_count++] =
        (struct compare_fact){ xstrdup(name), fact_text(a), fact_text(b) };
}

static void compare_facts(struct compare *c)
{
    json_t *a = json_loads(c->a.facts ? c->a.facts : "{}", 0, NULL);
    json_t *b = json_loads(c->b.facts ? c->b.facts : "{}", 0, NULL);
    const char *name;
    json_t *value;

    json_object_foreach(a, name, value)
    {
        json_t *other = json_object_get(b, name);

        if (!other || !json_equal(value, other)) {
            add_fact(c, name, value, other);
        }
    }
    json_object_foreach(b, name, value)
    {
        if (!json_object_get(a, name)) {
            add_fact(c, name, NULL, value);
        }
    }
    json_decref(a);
    json_decref(b);
}

static int by_first_difference(const void *a, const void *b, void *arg)
{
    const struct trace_place_comparison *places = arg;
    const struct trace_place_comparison *x = &places[*(const int32_t *)a];
    const struct trace_place_comparison *y = &places[*(const int32_t *)b];

    return (x->first > y->first) - (x->first < y->first);
}

static void compare_traces(struct compare *c)
{
    const struct trace *a = &c->a.trace;
    const struct trace *b = &c->b.trace;

    c->has_traces = true;
    trace_compare(a, b, &c->traces);
    c->variables = trace_compare_role(a, b, &c->traces, TRACE_ROLE_VARIABLE);
    c->data = trace_compare_role(a, b, &c->traces, TRACE_ROLE_DATA);
    c->rng = trace_compare_role(a, b, &c->traces, TRACE_ROLE_RNG);
    c->places = xcalloc((size_t)a->place_count + 1, sizeof *c->places);
    for (int i = 0; i < a->place_count; i++) {
        if (c->traces.places[i].first >= 0) {
            c->places[c->place_count++] = i;
        }
    }
    qsort_r(c->places, (size_t)c->place_count, sizeof *c->places, by_first_difference,
            c->traces.places);
}

enum err_code compare_load(struct tx *tx, const char *a, const char *b,
                           struct compare *ret_compare, struct err *err)
{
    struct compare *c = ret_compare;

    memset(c, 0, sizeof *c);
    if (load_run(tx, a, &c->a, err) != ERR_OK || load_run(tx, b, &c->b, err) != ERR_OK) {
        compare_release(c);
        return err->code;
    }
    compare_facts(c);
    c->verdict = COMPARISON_NOT_COMPARABLE;
    if (comparison_fit(&c->a.side, &c->b.side, c->reason)) {
        compare_traces(c);
        c->verdict = comparison_judge(&c->a.side, &c->b.side, &c->traces, c->reason);
    }
    return ERR_OK;
}

void compare_release(struct compare *compare)
{
    for (int i = 0; i < compare->fact_count; i++) {
        free(compare->facts[i].name);
        free(compare->facts[i].a);
        free(compare->facts[i].b);
    }
    free(compare->facts);
    free(compare->places);
    trace_comparison_release(&compare->traces);
    release_run(&compare->a);
    release_run(&compare->b);
    memset(compare, 0, sizeof *compare);
}

struct pair {
    char a[ID_SIZE], b[ID_SIZE];
};

static enum err_code read_both(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    const struct pair *pair = r->state;
    struct compare *c = xmalloc(sizeof *c);

    if (compare_load(tx, pair->a, pair->b, c, err) != ERR_OK) {
        free(c);
        return err->code;
    }
    if (r->format == FORMAT_TEXT) {
        struct buf buf = BUF_INIT;

        compare_text(c, &buf);
        reply_text(r, &buf);
    } else {
        struct json_out out = JSON_OUT_INIT;

        compare_json(c, &out);
        reply_json(r, 200, &out);
    }
    compare_release(c);
    free(c);
    return ERR_OK;
}

void compare_get(struct request *r)
{
    struct pair *pair = xcalloc(1, sizeof *pair);

    request_keep(r, pair, NULL);
    param_text(r, "a", pair->a, sizeof pair->a);
    param_text(r, "b", pair->b, sizeof pair->b);
    if (!params_refused(r)) {
        request_read(r, read_both, NULL);
    }
}
