/* Member "spread" of GET /v1/cells/{id}: how much a cell varies. */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

#include "api/cells.h"
#include "api/render/nouns_json.h"
#include "daemon/base/json_in.h"
#include "daemon/base/text.h"
#include "db/views/spread.h"

enum { BITS_SIZE = 17 };

static void value_json(struct json_out *out, const char *name, uint64_t bits)
{
    char text[BITS_SIZE];

    snprintf(text, sizeof text, "%016" PRIx64, bits);
    sum_json(out, name, text);
}

static void values_json(struct json_out *out, const char *name, const struct spread *s)
{
    if (!out_object(out, name, s->runs + s->not_finite)) {
        return;
    }
    out_int(out, "runs", s->runs);
    out_int(out, "not_finite", s->not_finite);
    out_int(out, "distinct", s->distinct);
    if (s->runs > 0) {
        value_json(out, "least", s->least);
        value_json(out, "greatest", s->greatest);
    } else {
        sum_json(out, "least", "");
        sum_json(out, "greatest", "");
    }
    if (s->runs > 1) {
        out_real(out, "range", s->range);
        out_real(out, "standard_deviation", s->standard_deviation);
        out_format(out, "float64_ulp", "%" PRIu64, s->ulp);
    } else {
        out_null(out, "range");
        out_null(out, "standard_deviation");
        out_null(out, "float64_ulp");
    }
    out_close(out, '}');
}

/* The tensor of DIFFERENCE with the largest distance; NULL: none has any. */
static const json_t *worst_tensor(const json_t *difference, const char **ret_ulp)
{
    const json_t *worst = NULL;
    uint64_t most = 0;
    json_t *tensor;
    size_t i;

    json_array_foreach(json_object_get(difference, "tensors"), i, tensor)
    {
        const char *ulp = in_text(json_object_get(tensor, "signature"), "max_ulp");
        uint64_t own = ulp ? strtoull(ulp, NULL, 10) : 0;

        if (ulp && (!worst || own > most)) {
            worst = tensor;
            most = own;
            *ret_ulp = ulp;
        }
    }
    return worst;
}

static void elements_json(struct json_out *out, const struct cell_spread *s)
{
    json_t *search = s->search ? json_loads(s->search, 0, NULL) : NULL;
    json_t *difference = s->difference ? json_loads(s->difference, 0, NULL) : NULL;
    const char *ulp = NULL;
    const json_t *tensor = worst_tensor(difference, &ulp);

    if (out_object(out, "elements", tensor != NULL)) {
        const json_t *signature = json_object_get(tensor, "signature");

        out_text(out, "place", in_text(json_object_get(search, "root"), "place"));
        out_int(out, "output", in_int(tensor, "index"));
        out_name(out, "name", in_text(tensor, "name"));
        out_text(out, "dtype", in_text(tensor, "dtype"));
        out_int(out, "elements", in_int(signature, "elements"));
        out_int(out, "differ", in_int(signature, "differ"));
        out_text(out, "element_ulp", ulp);
        out_text(out, "a", in_text(difference, "a"));
        out_text(out, "b", in_text(difference, "b"));
        out_format(out, "localisation", "/v1/jobs/%s/localisation", s->localisation);
        out_close(out, '}');
    }
    json_decref(search);
    json_decref(difference);
}

/* ", loss range 0.001, standard deviation 0.0002, 12,345 float64 ulp". */
static void values_words(struct buf *words, const char *what, const struct spread *s)
{
    char number[TEXT_NUMBER_SIZE];

    if (s->runs > 1) {
        buf_printf(words, ", %s range %.4g, standard deviation %.4g, ", what, s->range,
                   s->standard_deviation);
        /* Two finite binary64 are less than 2^64 apart, most of them less than 2^63. */
        buf_printf(words, "%s float64 ulp",
                   s->ulp <= INT64_MAX ? text_number((int64_t)s->ulp, number)
                                       : "more than 2^63");
    }
    if (s->not_finite > 0) {
        buf_printf(words, ", %s NaN or infinite in %s", what,
                   text_number(s->not_finite, number));
    }
}

static void words_json(struct json_out *out, const struct cell *cell,
                       const struct cell_spread *s)
{
    struct buf words = BUF_INIT;
    char number[TEXT_NUMBER_SIZE];

    buf_printf(&words, "last iterations of %s run%s", text_number(s->runs, number),
               s->runs == 1 ? "" : "s");
    buf_printf(&words, " (%s iterations)",
               text_number(cell->evidence.iterations, number));
    values_words(&words, "weight_sum", &s->weight_sum);
    values_words(&words, "loss", &s->loss);
    out_text(out, "text", words.data);
    buf_release(&words);
}

void cell_spread_json(struct json_out *out, const struct cell *cell,
                      const struct cell_spread *s)
{
    int64_t others;

    if (!s) {
        out_null(out, "spread");
        return;
    }
    others = cell->evidence.runs[OUTCOME_COMPLETED] - s->runs;
    out_open(out, "spread", '{');
    out_int(out, "runs", s->runs);
    out_int(out, "runs_left_out", others > 0 ? others : 0);
    out_int(out, "iterations", cell->evidence.iterations);
    values_json(out, "weight_sum", &s->weight_sum);
    values_json(out, "loss", &s->loss);
    elements_json(out, s);
    words_json(out, cell, s);
    out_close(out, '}');
}
