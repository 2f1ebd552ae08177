/* The measured facts for a terminal: a line for each variant. */
#include <stdio.h>
#include <string.h>

#include "api/render/matrix.h"
#include "daemon/base/text.h"

enum { FACTS = 11, FACT_SIZE = 160 };

static const char *const fact_titles[FACTS] = { "WORKLOAD", "VARIANT", "SUBJECT",
                                                "VERDICT",  "RUNS",    "ITERATIONS",
                                                "RESULTS",  "DEVICES", "DIFFER",
                                                "MEAN MS",  "COST" };

/* Figures are set to the right. */
static bool is_figure(int fact)
{
    return fact >= 4;
}

static void fill(const struct matrix_variant *v, char facts[FACTS][FACT_SIZE])
{
    const struct variant_knowledge *k = &v->known;
    bool same = k->verdict == VERDICT_REPRODUCIBLE || k->verdict == VERDICT_STALE;
    char number[TEXT_NUMBER_SIZE];

    snprintf(facts[0], FACT_SIZE, "%s", v->key.workload);
    snprintf(facts[1], FACT_SIZE, "%s", v->key.variant);
    snprintf(facts[2], FACT_SIZE, "%s",
             v->subject == SUBJECT_MODEL ? subject_word(v->subject) : v->subject_name);
    snprintf(facts[3], FACT_SIZE, "%s", verdict_name(k->verdict));
    snprintf(facts[4], FACT_SIZE, "%s", text_number(k->runs, number));
    snprintf(facts[5], FACT_SIZE, "%s", text_number(k->iterations, number));
    snprintf(facts[6], FACT_SIZE, "%s",
             k->runs > 0 ? text_number(v->distinct_digests, number) : "-");
    snprintf(facts[7], FACT_SIZE, "%s", text_number(k->devices, number));
    snprintf(facts[8], FACT_SIZE, "%s",
             same         ? text_bound(verdict_difference_bound(k->weakest_runs), number)
             : v->departs ? rate_interval_text(&v->departures.runs, number)
                          : "-");
    if (v->mean_ns > 0) {
        snprintf(facts[9], FACT_SIZE, "%.*f", v->mean_ns < 1000000 ? 4 : 2,
                 (double)v->mean_ns / 1e6);
    } else {
        snprintf(facts[9], FACT_SIZE, "-");
    }
    if (v->cost.known) {
        bool here = strcmp(v->cost_size, v->key.size) == 0;

        snprintf(facts[10], FACT_SIZE, "%.2f (%.2f-%.2f)%s%.32s", v->cost.median,
                 v->cost.low, v->cost.high, here ? "" : " in ", here ? "" : v->cost_size);
    } else if (v->cost.too_short) {
        snprintf(facts[10], FACT_SIZE, "< 1 ms");
    } else {
        snprintf(facts[10], FACT_SIZE, "-");
    }
}

static void add_fact(struct buf *buf, int fact, const char *text, int width)
{
    if (is_figure(fact)) {
        text_pad(buf, "", width - text_width(text));
        text_pad(buf, text, 0);
    } else {
        text_pad(buf, text, width);
    }
    buf_puts(buf, fact == FACTS - 1 ? "\n" : "  ");
}

/* Whether VERDICT says everything by itself. */
static bool speaks(enum verdict verdict)
{
    return verdict == VERDICT_REPRODUCIBLE || verdict == VERDICT_VARIES;
}

void matrix_facts_text(const struct matrix *m, struct buf *buf)
{
    int widths[FACTS];
    char facts[FACTS][FACT_SIZE];

    if (m->variant_count == 0) {
        buf_puts(buf, "Nothing has been measured here yet.\n");
        return;
    }
    for (int f = 0; f < FACTS; f++) {
        widths[f] = text_width(fact_titles[f]);
    }
    for (int i = 0; i < m->variant_count; i++) {
        fill(&m->variants[i], facts);
        for (int f = 0; f < FACTS; f++) {
            int width = text_width(facts[f]);

            widths[f] = width > widths[f] ? width : widths[f];
        }
    }
    for (int f = 0; f < FACTS; f++) {
        add_fact(buf, f, fact_titles[f], widths[f]);
    }
    for (int i = 0; i < m->variant_count; i++) {
        const struct matrix_variant *v = &m->variants[i];
        bool again =
            i > 0 && strcmp(v->key.workload, m->variants[i - 1].key.workload) == 0;

        fill(v, facts);
        for (int f = 0; f < FACTS; f++) {
            add_fact(buf, f, f == 0 && again ? "" : facts[f], widths[f]);
        }
        if (v->relation) {
            char text[RELATION_TEXT_SIZE];

            relation_text(v->relation, v->seen, v->seen_in, text);
            text_pad(buf, "", widths[0] + 4);
            text_wrap(buf, text, 100, widths[0] + 4);
        }
        if (!speaks(v->known.verdict)) {
            text_pad(buf, "", widths[0] + 4);
            text_wrap(buf, v->known.reason, 100, widths[0] + 4);
        }
    }
    buf_puts(buf,
             "\n\"Differ\" is the upper bound (95 %) of the probability that "
             "a run differs from the first;\nwhere digests vary, the interval (95 %) of "
             "the probability that one shows another than the most frequent.\n"
             "\"Cost\" is the median time as a multiple of that of the same subject's "
             "control, with the quartiles\nof both set against each other the worst way "
             "round: a model's cost is not a library's.\n");
}
