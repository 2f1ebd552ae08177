#include "daemon/evidence/matrix_count.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"

/* Marks in FACTS, by their places in m->variants, what the code of a cell rests on. */
static void mark_facts(const struct matrix *m, int row, int column, bool *facts)
{
    const struct profile_row *r = &m->table->rows[row];
    const struct profile_cell *cell = &r->cells[column];

    for (int i = 0; i < cell->choice_count; i++) {
        const struct matrix_variant *v = matrix_chosen(m, r, &cell->choices[i]);

        if (v) {
            facts[v - m->variants] = true;
        }
    }
}

static bool is_counted(const struct matrix *m, int row, const struct matrix_tally *t)
{
    const struct profile_row *r = &m->table->rows[row];

    return matrix_shows_row(m, row) && r->subject == t->subject &&
           (!t->name || strcmp(t->name, r->subject_name) == 0);
}

static void count_cells(const struct matrix *m, struct matrix_tally *t)
{
    bool *facts = xcalloc((size_t)m->variant_count + 1, sizeof *facts);

    for (int r = 0; r < m->table->row_count; r++) {
        for (int c = 0; is_counted(m, r, t) && c < m->table->column_count; c++) {
            enum solution_state state = matrix_solution(m, r, c)->state;
            int agrees = matrix_agrees(m, r, c);

            t->states[state]++;
            t->cells += state < SOLUTION_ABSENT;
            t->agree += agrees == 1;
            t->differ += agrees == 0;
            if (state == SOLUTION_MEASURED) {
                mark_facts(m, r, c, facts);
            }
        }
    }
    for (int i = 0; i < m->variant_count; i++) {
        t->facts += facts[i];
    }
    free(facts);
}

int matrix_count(const struct matrix *m,
                 struct matrix_tally ret_tallies[MATRIX_TALLIES_MAX])
{
    int count = 0;

    for (int s = SUBJECT_COUNT - 1; s >= 0; s--) {
        for (int r = 0; r < m->table->row_count && count < MATRIX_TALLIES_MAX; r++) {
            const struct profile_row *row = &m->table->rows[r];
            bool done = row->subject != (enum subject)s || !matrix_shows_row(m, r);

            for (int i = 0; i < count && !done; i++) {
                done = is_counted(m, r, &ret_tallies[i]);
            }
            if (!done) {
                ret_tallies[count] = (struct matrix_tally){ .subject = row->subject,
                                                            .name = row->subject_name };
                count_cells(m, &ret_tallies[count++]);
            }
        }
    }
    return count;
}

__attribute__((format(printf, 2, 3))) static void append(char text[MATRIX_HEADLINE_SIZE],
                                                         const char *format, ...)
{
    size_t used = strlen(text);
    va_list args;

    va_start(args, format);
    vsnprintf(text + used, MATRIX_HEADLINE_SIZE - used, format, args);
    va_end(args);
}

/* What stands before the Ith of COUNT things: "a, b and c". */
static const char *joint(int i, int count, const char *last)
{
    return i == 0 ? "" : i < count - 1 ? ", " : last;
}

/* "21 codes of cuDNN 9.12.0 and 14 of reprod's own models". */
static void tell_codes(const struct matrix *m, const struct matrix_tally *tallies,
                       int count, char text[MATRIX_HEADLINE_SIZE])
{
    int measured = 0;
    int told = 0;

    for (int i = 0; i < count; i++) {
        measured += tallies[i].states[SOLUTION_MEASURED] > 0;
    }
    for (int i = 0; i < count; i++) {
        const struct matrix_tally *t = &tallies[i];
        int codes = t->states[SOLUTION_MEASURED];
        char whose[SUBJECT_TEXT_SIZE];

        if (codes == 0) {
            continue;
        }
        subject_text(t->subject, t->name, m->facts, whose);
        append(text, "%s%d%s of %s", joint(told, measured, " and "), codes,
               told > 0     ? ""
               : codes == 1 ? " code"
                            : " codes",
               t->subject == SUBJECT_MODEL ? "reprod's own models" : whose);
        told++;
    }
}

/* Whether runs of it completed, whatever they showed. */
static bool took_part(const struct matrix *m, const struct matrix_tally *t)
{
    for (int i = 0; i < m->variant_count; i++) {
        const struct matrix_variant *v = &m->variants[i];

        if (v->subject == t->subject && v->known.runs > 0 &&
            strcmp(v->subject_name, t->name) == 0) {
            return true;
        }
    }
    return false;
}

/* "neither TensorFlow nor cuDNN took part", "no code of cuDNN yet". */
static void tell_absent(const struct matrix *m, const struct matrix_tally *tallies,
                        int count, char text[MATRIX_HEADLINE_SIZE])
{
    const char *absent[MATRIX_TALLIES_MAX];
    int absent_count = 0;

    for (int i = 0; i < count; i++) {
        const struct matrix_tally *t = &tallies[i];

        if (t->subject == SUBJECT_MODEL || t->states[SOLUTION_MEASURED] > 0) {
            continue;
        }
        if (!took_part(m, t)) {
            absent[absent_count++] = t->name;
        } else if (t->cells > 0) {
            append(text, "; no code of %s yet", t->name);
        }
    }
    for (int i = 0; i < absent_count; i++) {
        append(text, "%s%s",
               i > 0              ? " nor "
               : absent_count > 1 ? "; neither "
                                  : "; ",
               absent[i]);
    }
    if (absent_count > 0) {
        append(text, absent_count > 1 ? " took part" : " took no part");
    }
}

/* Why there is no code: nothing was measured, or there is nothing to measure. */
static void tell_nothing(const struct matrix *m, const struct matrix_tally *tallies,
                         int count, char text[MATRIX_HEADLINE_SIZE])
{
    int cells = 0;

    for (int i = 0; i < count; i++) {
        cells += tallies[i].cells;
    }
    if (count == 0) {
        append(text, "this table has no row of a %s", subject_word(m->only));
    } else if (cells == 0) {
        append(text, "no workload stands for a source of %s",
               m->only == SUBJECT_COUNT ? "this table" : "these rows");
    } else {
        append(text, "no code has been measured here");
    }
}

void matrix_headline(const struct matrix *m, char ret_text[MATRIX_HEADLINE_SIZE])
{
    struct matrix_tally tallies[MATRIX_TALLIES_MAX];
    int count = matrix_count(m, tallies);
    const char *model = json_string_value(json_object_get(m->facts, "model"));

    ret_text[0] = '\0';
    tell_codes(m, tallies, count, ret_text);
    if (!ret_text[0]) {
        tell_nothing(m, tallies, count, ret_text);
    }
    if (model) {
        append(ret_text, ", on %.100s", model);
    }
    tell_absent(m, tallies, count, ret_text);
}
