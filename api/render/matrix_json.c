/* The documents view as JSON and as CSV. */
#include "api/render/matrix.h"

#include <inttypes.h>

#include "api/render/nouns_json.h"
#include "daemon/base/text.h"
#include "daemon/evidence/matrix_count.h"

static void href(struct json_out *out, const struct matrix_variant *v)
{
    if (v) {
        out_format(out, "href", "/v1/cells/%" PRId64, v->cell);
    } else {
        out_null(out, "href");
    }
}

/* What each recipe was seen to do: the reasons behind the code. */
static void choices_json(const struct matrix *m, const struct profile_row *row,
                         const struct profile_cell *cell, struct json_out *out)
{
    static const struct variant_knowledge unknown = VARIANT_KNOWLEDGE_INIT;

    out_open(out, "choices", '[');
    for (int i = 0; i < cell->choice_count; i++) {
        const struct profile_choice *choice = &cell->choices[i];
        const struct matrix_variant *v = matrix_chosen(m, row, choice);
        const struct variant_knowledge *known = v ? &v->known : &unknown;

        out_open(out, NULL, '{');
        out_text(out, "recipe", choice->recipe);
        out_text(out, "variant", choice->variant);
        out_bool(out, "raises", choice->variant == NULL);
        out_text(out, "verdict", choice->variant ? verdict_name(known->verdict) : NULL);
        out_text(out, "reason", choice->variant ? known->reason : NULL);
        href(out, v);
        out_close(out, '}');
    }
    out_close(out, ']');
}

/* The cell to look at first: that of the first recipe, else of no action at all. */
static const struct matrix_variant *main_variant(const struct matrix *m,
                                                 const struct profile_row *row,
                                                 const struct profile_cell *cell)
{
    const struct matrix_variant *found = NULL;

    for (int i = cell->choice_count - 1; i >= 0; i--) {
        const struct matrix_variant *v = matrix_chosen(m, row, &cell->choices[i]);

        if (v && (i > 0 || !found)) {
            found = v;
        }
    }
    return found;
}

static void cell_json(const struct matrix *m, int row, int column, struct json_out *out)
{
    const struct profile_row *r = &m->table->rows[row];
    const struct profile_cell *cell = &r->cells[column];
    const struct solution *s = matrix_solution(m, row, column);
    int agrees = matrix_agrees(m, row, column);

    out_open(out, NULL, '{');
    out_text(out, "column", m->table->columns[column].name);
    out_name(out, "code", s->code);
    out_text(out, "state", solution_state_name(s->state));
    out_name(out, "reason", s->reason);
    out_text(out, "documented", cell->documented);
    out_bool_if(out, "agrees", agrees >= 0, agrees);
    out_text(out, "note", cell->note);
    out_int_if(out, "footnote", cell->footnote > 0, cell->footnote);
    out_open(out, "evidence", '{');
    out_int(out, "variants", s->variants);
    out_text(out, "basis", s->one_fact ? solution_one_fact : NULL);
    out_int(out, "runs", s->runs);
    out_int(out, "iterations", s->iterations);
    out_int(out, "devices", s->devices);
    out_real(out, "difference_probability_upper_bound", s->difference_bound);
    out_close(out, '}');
    href(out, main_variant(m, r, cell));
    choices_json(m, r, cell, out);
    out_close(out, '}');
}

static void relation_json(struct json_out *out, const struct matrix_variant *v)
{
    if (!out_object(out, "relation", v->relation)) {
        return;
    }
    out_text(out, "variant", v->relation->other);
    out_text(out, "expected", v->relation->equal ? "equal" : "different");
    out_text(out, "seen", relation_seen_name(v->seen));
    if (out_object(out, "case", v->seen_in)) {
        out_text(out, "size", v->seen_in->size);
        out_text(out, "dtype", v->seen_in->dtype);
        out_format(out, "seed", "%" PRIu64, v->seen_in->seed);
        out_close(out, '}');
    }
    out_close(out, '}');
}

static void variant_json(const struct matrix_variant *v, struct json_out *out)
{
    const struct variant_knowledge *k = &v->known;
    bool same = k->verdict == VERDICT_REPRODUCIBLE || k->verdict == VERDICT_STALE;

    out_open(out, NULL, '{');
    out_text(out, "workload", v->key.workload);
    out_int(out, "version", v->key.version);
    out_text(out, "variant", v->key.variant);
    out_bool(out, "is_control", v->is_control);
    subject_json(out, v->subject, v->subject_name);
    out_text(out, "verdict", verdict_name(k->verdict));
    out_text(out, "reason", k->reason);
    out_int(out, "cases", k->cases);
    out_int(out, "runs", k->runs);
    out_int(out, "iterations", k->iterations);
    out_int(out, "devices", k->devices);
    out_real(out, "difference_probability_upper_bound",
             same ? verdict_difference_bound(k->weakest_runs) : 1);
    out_name(out, "size", v->key.size);
    out_name(out, "dtype", v->key.dtype);
    out_format(out, "seed", "%" PRIu64, v->key.seed);
    out_ms_if(out, "mean_milliseconds", v->mean_ns > 0, v->mean_ns);
    cost_json(out, &v->cost, v->cost_against, v->cost_size);
    out_name(out, "digest", v->digest);
    out_int(out, "distinct_digests", v->distinct_digests);
    departures_json(out, v->departs ? &v->departures : NULL);
    relation_json(out, v);
    href(out, v);
    out_close(out, '}');
}

static void environment_json(const struct matrix *m, struct json_out *out)
{
    if (!out_object(out, "environment", m->has_environment)) {
        return;
    }
    out_text(out, "id", m->environment.id);
    out_text(out, "title", m->environment.title);
    out_time(out, "first_seen_at", m->environment.first_seen_ms);
    out_time(out, "last_seen_at", m->environment.last_seen_ms);
    out_json(out, "facts", m->environment_json);
    out_format(out, "href", "/v1/environments/%s", m->environment.id);
    out_close(out, '}');
}

static void counts_json(const struct matrix *m, struct json_out *out)
{
    struct matrix_tally tallies[MATRIX_TALLIES_MAX];
    int count = matrix_count(m, tallies);

    out_open(out, "counts", '[');
    for (int i = 0; i < count; i++) {
        const struct matrix_tally *t = &tallies[i];

        out_open(out, NULL, '{');
        subject_json(out, t->subject, t->name);
        out_text(out, "version", t->name ? subject_version(t->name, m->facts) : NULL);
        out_int(out, "cells", t->cells);
        for (int s = 0; s < SOLUTION_ABSENT; s++) {
            out_int(out, solution_state_name((enum solution_state)s), t->states[s]);
        }
        out_int(out, "as_documented", t->agree);
        out_int(out, "not_as_documented", t->differ);
        out_int(out, "variants", t->facts);
        out_close(out, '}');
    }
    out_close(out, ']');
}

static void row_json(const struct matrix *m, int row, struct json_out *out)
{
    const struct profile_row *r = &m->table->rows[row];
    char measured[SUBJECT_TEXT_SIZE];

    matrix_row_subject(m, row, measured);
    out_open(out, NULL, '{');
    out_text(out, "id", r->id);
    out_text(out, "workload", r->workload);
    out_text(out, "title", r->title);
    subject_json(out, r->subject, r->subject_name);
    out_text(out, "subject_title", measured);
    out_bool(out, "is_source", r->is_source);
    row_references_json(out, r);
    row_operations_json(out, r);
    out_open(out, "cells", '[');
    for (int c = 0; c < m->table->column_count; c++) {
        cell_json(m, row, c, out);
    }
    out_close(out, ']');
    out_close(out, '}');
}

void matrix_json(const struct matrix *m, struct json_out *out)
{
    char headline[MATRIX_HEADLINE_SIZE];
    const struct profile_table *t = m->table;

    out_open(out, NULL, '{');
    out_text(out, "view", "documents");
    out_text(out, "table", t->id);
    out_text(out, "title", t->title);
    matrix_headline(m, headline);
    out_text(out, "headline", headline);
    counts_json(m, out);
    out_time(out, "as_of", m->as_of_ms);
    environment_json(m, out);
    columns_json(out, t);
    out_open(out, "rows", '[');
    for (int r = 0; r < t->row_count; r++) {
        if (matrix_shows_row(m, r)) {
            row_json(m, r, out);
        }
    }
    out_close(out, ']');
    out_open(out, "variants", '[');
    for (int i = 0; i < m->variant_count; i++) {
        variant_json(&m->variants[i], out);
    }
    out_close(out, ']');
    out_close(out, '}');
}

void matrix_csv(const struct matrix *m, struct buf *buf)
{
    const struct profile_table *t = m->table;
    const char *environment = m->has_environment ? m->environment.id : "";

    buf_puts(buf,
             "environment,table,workload,title,subject,subject_title,column,"
             "column_title,state,code,"
             "documented,agrees,reason,runs,iterations,devices,"
             "difference_probability_upper_bound\r\n");
    for (int r = 0; r < t->row_count; r++) {
        char subject[SUBJECT_TEXT_SIZE];

        matrix_row_subject(m, r, subject);
        for (int c = 0; matrix_shows_row(m, r) && c < t->column_count; c++) {
            const struct profile_cell *cell = &t->rows[r].cells[c];
            const struct solution *s = matrix_solution(m, r, c);
            int agrees = matrix_agrees(m, r, c);
            const char *const texts[] = { environment,
                                          t->id,
                                          t->rows[r].workload ? t->rows[r].workload : "",
                                          t->rows[r].title,
                                          subject_word(t->rows[r].subject),
                                          subject,
                                          t->columns[c].name,
                                          t->columns[c].title,
                                          solution_state_name(s->state),
                                          s->code,
                                          cell->documented ? cell->documented : "",
                                          agrees < 0 ? ""
                                          : agrees   ? "true"
                                                     : "false",
                                          s->reason };

            for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
                text_csv(buf, texts[i]);
                buf_putc(buf, ',');
            }
            buf_printf(buf, "%" PRId64 ",%" PRId64 ",%" PRId64 ",%.9g\r\n", s->runs,
                       s->iterations, s->devices, s->difference_bound);
        }
    }
}
