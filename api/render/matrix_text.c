/* The documents view for a terminal. */
#include "api/render/matrix.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/array.h"
#include "daemon/base/clock.h"
#include "daemon/base/text.h"
#include "daemon/evidence/matrix_count.h"

enum {
    COLUMN_MIN = 6,
    COLUMN_TITLE = 12,
    COLUMN_GAP = 2,
    PAGE_WIDTH = 100,
    TABLE_WIDTH = 118
};

/* What a cell without a code shows, in the order of the legend; a code stands only where
 * it was measured. */
static const struct {
    enum solution_state state;
    const char *sign, *meaning;
} signs[] = {
    { SOLUTION_UNMEASURED, "·", "not measured here" },
    { SOLUTION_INCONCLUSIVE, "?", "measured, but the proof is not complete" },
    { SOLUTION_STALE, "~", "measured too long ago" },
    { SOLUTION_FAILING, "!", "runs crash, time out or break the protocol" },
    { SOLUTION_UNSUPPORTED, "–", "cannot be computed here" },
};

static const char *sign_of(enum solution_state state)
{
    for (int i = 0; i < COUNT_OF(signs); i++) {
        if (signs[i].state == state) {
            return signs[i].sign;
        }
    }
    return "";
}

#define ONE_FACT "°" /* the mark of a cell whose recipes change nothing */

enum { MARK_SIZE = 16 };

/* "¹²" for 12, "" for 0. */
static const char *footnote_mark(int number, char ret_mark[MARK_SIZE])
{
    static const char *const digits[] = {
        "⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"
    };

    snprintf(ret_mark, MARK_SIZE, "%s%s%s",
             number >= 100 ? digits[number / 100 % 10] : "",
             number >= 10 ? digits[number / 10 % 10] : "",
             number >= 1 ? digits[number % 10] : "");
    return ret_mark;
}

static void cell_text(const struct matrix *m, int row, int column, char *ret_text,
                      size_t size)
{
    const struct profile_cell *cell = &m->table->rows[row].cells[column];
    const struct solution *s = matrix_solution(m, row, column);
    bool declared = s->state == SOLUTION_DECLARED;
    bool quoted = s->state == SOLUTION_NO_MODEL;
    const char *text = quoted       ? cell->documented
                       : s->code[0] ? s->code
                                    : sign_of(s->state);
    char mark[MARK_SIZE];

    snprintf(ret_text, size, "%s%s%s%s%s",
             declared ? "("
             : quoted ? "["
                      : "",
             text,
             declared                       ? ")"
             : quoted                       ? "]"
             : s->state == SOLUTION_PARTIAL ? " (*)"
             : s->one_fact                  ? ONE_FACT
                                            : "",
             footnote_mark(cell->footnote, mark),
             matrix_agrees(m, row, column) == 0 ? " ≠" : "");
}

static void fact(struct buf *buf, const char *name, const char *text)
{
    enum { NAME_WIDTH = 13 };

    text_pad(buf, name, NAME_WIDTH);
    text_wrap(buf, text, PAGE_WIDTH, NAME_WIDTH);
}

static void evidence_fact(const struct matrix *m, struct buf *buf)
{
    char line[256];
    char runs[TEXT_NUMBER_SIZE];
    char iterations[TEXT_NUMBER_SIZE];
    int64_t run_sum = 0;
    int64_t iteration_sum = 0;

    for (int i = 0; i < m->variant_count; i++) {
        run_sum += m->variants[i].known.runs;
        iteration_sum += m->variants[i].known.iterations;
    }
    snprintf(line, sizeof line, "%d variants, %s runs, %s iterations", m->variant_count,
             text_number(run_sum, runs), text_number(iteration_sum, iterations));
    fact(buf, "Evidence", m->variant_count > 0 ? line : "none");
}

/* "cuDNN 9.12.0: 21 of 24 codes measured, from 8 variants; …". */
static void tally_text(const struct matrix *m, const struct matrix_tally *t,
                       char *ret_line, size_t size)
{
    char whose[SUBJECT_TEXT_SIZE];
    char declared[96] = "";

    subject_text(t->subject, t->name, m->facts, whose);
    if (t->states[SOLUTION_DECLARED] > 0) {
        snprintf(declared, sizeof declared, "; %d only declared",
                 t->states[SOLUTION_DECLARED]);
    }
    if (t->states[SOLUTION_PARTIAL] > 0) {
        size_t used = strlen(declared);

        snprintf(declared + used, sizeof declared - used, "; %d on some devices only",
                 t->states[SOLUTION_PARTIAL]);
    }
    if (t->cells == 0) {
        snprintf(ret_line, size, "%s: no code that could be measured", whose);
        return;
    }
    if (t->states[SOLUTION_MEASURED] == 0) {
        snprintf(ret_line, size, "%s: none of %d code%s measured%s", whose, t->cells,
                 t->cells == 1 ? "" : "s", declared);
        return;
    }
    snprintf(ret_line, size,
             "%s: %d of %d code%s measured, from %d variant%s; %d as the documents say, "
             "%d not%s",
             whose, t->states[SOLUTION_MEASURED], t->cells, t->cells == 1 ? "" : "s",
             t->facts, t->facts == 1 ? "" : "s", t->agree, t->differ, declared);
}

static void codes_facts(const struct matrix *m, struct buf *buf)
{
    struct matrix_tally tallies[MATRIX_TALLIES_MAX];
    int count = matrix_count(m, tallies);

    for (int i = 0; i < count; i++) {
        char line[SUBJECT_TEXT_SIZE + 256];

        tally_text(m, &tallies[i], line, sizeof line);
        fact(buf, i == 0 ? "Codes" : "", line);
    }
}

static void header(const struct matrix *m, struct buf *buf)
{
    char headline[MATRIX_HEADLINE_SIZE];
    char when[CLOCK_RFC3339_SIZE];

    clock_rfc3339(m->as_of_ms, when);
    buf_puts(buf, "reprod: sources of non-determinism and their solutions, measured\n\n");
    fact(buf, "Table", m->table->title);
    if (m->has_environment) {
        char line[CASE_TITLE_SIZE + DIGEST_TEXT_SIZE + 8];

        snprintf(line, sizeof line, "%s (%.8s)", m->environment.title, m->environment.id);
        fact(buf, "Environment", line);
    } else {
        fact(buf, "Environment", "none: nothing has been run here yet");
    }
    fact(buf, "As of", when);
    matrix_headline(m, headline);
    fact(buf, "Measured", headline);
    codes_facts(m, buf);
    evidence_fact(m, buf);
    buf_putc(buf, '\n');
}

static int column_width(const struct matrix *m, int column)
{
    int width = text_wrapped_width(m->table->columns[column].title, COLUMN_TITLE);

    width = width < COLUMN_MIN ? COLUMN_MIN : width;
    for (int r = 0; r < m->table->row_count; r++) {
        char text[SOLUTION_CODE_SIZE + MARK_SIZE + 8];
        int w;

        cell_text(m, r, column, text, sizeof text);
        /* The first digit of a mark may stand in the gap. */
        w = text_width(text) - (m->table->rows[r].cells[column].footnote > 0);
        width = w > width ? w : width;
    }
    return width;
}

enum { INDENT = 2 };

/* Of the first column: whose computation the codes on its right are of. */
static int subject_width(const struct matrix *m)
{
    int width = text_width("SOURCE");

    for (int r = 0; r < m->table->row_count; r++) {
        char subject[SUBJECT_TEXT_SIZE];
        int w;

        matrix_row_subject(m, r, subject);
        w = INDENT + text_width(subject);
        width = w > width ? w : width;
    }
    return width + COLUMN_GAP;
}

static void end_line(struct buf *buf)
{
    while (buf->length > 0 && buf->data[buf->length - 1] == ' ') {
        buf->length--;
    }
    buf_putc(buf, '\n');
}

/* The columns that stand side by side. */
struct span {
    int from, to;
};

/* From column FROM on, as many as the page has room for next to the first one. */
static struct span span_at(const struct matrix *m, int first, int from)
{
    struct span span = { from, from };
    int width = first;

    while (span.to < m->table->column_count) {
        width += column_width(m, span.to) + COLUMN_GAP;
        if (width - COLUMN_GAP > TABLE_WIDTH && span.to > from) {
            break;
        }
        span.to++;
    }
    return span;
}

/* Column titles over as many lines as the longest needs. */
static void titles(const struct matrix *m, int first, const struct span *span,
                   struct buf *buf)
{
    bool more = true;

    for (int line = 0; more; line++) {
        more = false;
        text_pad(buf, line == 0 ? "SOURCE" : "", first);
        for (int c = span->from; c < span->to; c++) {
            const char *title = m->table->columns[c].title;
            char part[64];

            more |= text_wrapped_line(title, COLUMN_TITLE, line + 1, part, sizeof part);
            text_wrapped_line(title, COLUMN_TITLE, line, part, sizeof part);
            text_pad(buf, part, column_width(m, c) + COLUMN_GAP);
        }
        end_line(buf);
    }
    for (int i = 0; i < first - COLUMN_GAP; i++) {
        buf_puts(buf, "─");
    }
    for (int c = span->from; c < span->to; c++) {
        buf_puts(buf, "  ");
        for (int i = column_width(m, c); i > 0; i--) {
            buf_puts(buf, "─");
        }
    }
    buf_putc(buf, '\n');
}

/* The one reason why nothing of a library or framework was measured; NULL: something
 * was, or there are several. */
static const char *why_nothing(const struct matrix *m, int row)
{
    bool is_model = m->table->rows[row].subject == SUBJECT_MODEL;
    const char *reason = NULL;

    for (int c = 0; !is_model && c < m->table->column_count; c++) {
        const struct solution *s = matrix_solution(m, row, c);

        if (s->state == SOLUTION_ABSENT) {
            continue;
        }
        if (s->state != SOLUTION_UNMEASURED ||
            (reason && strcmp(reason, s->reason) != 0)) {
            return NULL;
        }
        reason = s->reason;
    }
    return reason;
}

static void row_codes(const struct matrix *m, int row, const struct span *span,
                      struct buf *buf)
{
    const char *reason = why_nothing(m, row);

    if (reason) {
        buf_printf(buf, "%s  ", sign_of(SOLUTION_UNMEASURED));
        text_pad(buf, reason, 0);
    }
    for (int c = span->from; !reason && c < span->to; c++) {
        char text[SOLUTION_CODE_SIZE + MARK_SIZE + 8];

        cell_text(m, row, c, text, sizeof text);
        text_pad(buf, text, column_width(m, c) + COLUMN_GAP);
    }
    end_line(buf);
}

/* Whether the documents say nothing of ROW in these columns. */
static bool is_blank(const struct matrix *m, int row, const struct span *span)
{
    for (int c = span->from; c < span->to; c++) {
        if (matrix_solution(m, row, c)->state != SOLUTION_ABSENT) {
            return false;
        }
    }
    return true;
}

/* A line for each source, and below it one for each subject: what computed. */
static void rows(const struct matrix *m, int first, const struct span *span,
                 struct buf *buf)
{
    int last = -1; /* the source that the lines are below */

    titles(m, first, span, buf);
    for (int r = 0; r < m->table->row_count; r++) {
        const struct profile_row *row = &m->table->rows[r];
        char subject[SUBJECT_TEXT_SIZE];

        if (!matrix_shows_row(m, r) || is_blank(m, r, span)) {
            continue;
        }
        if (row->index != last) {
            text_line(buf, "%s", row->title);
            last = row->index;
        }
        matrix_row_subject(m, r, subject);
        text_pad(buf, "", INDENT);
        text_pad(buf, subject, first - INDENT);
        row_codes(m, r, span, buf);
    }
    buf_putc(buf, '\n');
}

/* Columns that the page has no room for stand below the others. */
static void all_rows(const struct matrix *m, struct buf *buf)
{
    int first = subject_width(m);
    struct span span = { 0, 0 };

    while (span.to < m->table->column_count) {
        span = span_at(m, first, span.to);
        rows(m, first, &span, buf);
    }
}

struct legend {
    struct buf *buf;
    int width; /* of the signs, with the gap after them */
};

static struct legend legend_of(const struct matrix *m, struct buf *buf)
{
    struct legend legend = { .buf = buf, .width = 6 };

    for (int i = 0; i < m->table->recipe_count; i++) {
        int width = text_width(m->table->recipes[i].name) + COLUMN_GAP;

        legend.width = width > legend.width ? width : legend.width;
    }
    return legend;
}

static void explain(const struct legend *legend, const char *sign, const char *meaning)
{
    buf_puts(legend->buf, "  ");
    text_pad(legend->buf, sign, legend->width);
    text_wrap(legend->buf, meaning, PAGE_WIDTH, legend->width + 2);
}

static bool code_in_use(const struct matrix *m, const char *name)
{
    int cells = m->table->row_count * m->table->column_count;
    size_t length = strlen(name);

    for (int i = 0; i < cells; i++) {
        const char *code =
            matrix_shows_row(m, i / m->table->column_count) ? m->solutions[i].code : "";

        for (const char *at = strstr(code, name); at; at = strstr(at + 1, name)) {
            if ((at == code || at[-1] == ' ') && (!at[length] || at[length] == ' ')) {
                return true;
            }
        }
    }
    return false;
}

/* Whether a cell that is shown rests on one fact. */
static bool rests_on_one(const struct matrix *m)
{
    int cells = m->table->row_count * m->table->column_count;

    for (int i = 0; i < cells; i++) {
        if (matrix_shows_row(m, i / m->table->column_count) && m->solutions[i].one_fact) {
            return true;
        }
    }
    return false;
}

/* Which containers a column is of: "NGC 19.06+ / TF 2.1: images NGC 19.06 (TF 1.13), …".
 */
static void images(const struct matrix *m, struct buf *buf)
{
    const struct profile_table *t = m->table;

    for (int c = 0; c < t->column_count; c++) {
        struct buf line = BUF_INIT;
        size_t i;
        json_t *name;

        json_array_foreach((json_t *)t->column_images[c], i, name)
        {
            buf_printf(&line, "%s%s (%s)", i == 0 ? "" : ", ", json_string_value(name),
                       profile_image(t, json_string_value(name)));
        }
        if (line.length > 0) {
            buf_puts(buf, "  ");
            text_pad(buf, t->columns[c].title, 0);
            buf_puts(buf, ": images ");
            text_wrap(buf, line.data, PAGE_WIDTH, text_width(t->columns[c].title) + 11);
        }
        buf_release(&line);
    }
}

static void explain_signs(const struct matrix *m, struct buf *buf)
{
    struct legend legend = legend_of(m, buf);
    struct matrix_tally tallies[MATRIX_TALLIES_MAX];
    int count = matrix_count(m, tallies);
    int cells[SOLUTION_STATES] = { 0 };
    int differ = 0;

    for (int i = 0; i < count; i++) {
        for (int state = 0; state < SOLUTION_STATES; state++) {
            cells[state] += tallies[i].states[state];
        }
        differ += tallies[i].differ;
    }
    for (int i = 0; i < m->table->recipe_count; i++) {
        if (code_in_use(m, m->table->recipes[i].name)) {
            explain(&legend, m->table->recipes[i].name, m->table->recipes[i].title);
        }
    }
    if (code_in_use(m, "NS")) {
        explain(&legend, "NS", "no solution: no recipe was seen to make it reproducible");
    }
    if (code_in_use(m, "NS!")) {
        explain(&legend, "NS!", "no solution: asking for determinism raises an error");
    }
    if (code_in_use(m, "DET")) {
        explain(&legend, "DET", "reproducible without any recipe");
    }
    if (cells[SOLUTION_PARTIAL] > 0) {
        explain(&legend, "(*)", "on some devices only: others give other bits");
    }
    for (int i = 0; i < COUNT_OF(signs); i++) {
        if (cells[signs[i].state] > 0) {
            explain(&legend, signs[i].sign, signs[i].meaning);
        }
    }
    if (cells[SOLUTION_DECLARED] > 0) {
        explain(&legend, "( )", "what the documents say; nothing here could show it");
    }
    if (cells[SOLUTION_NO_MODEL] > 0) {
        explain(&legend, "[ ]", "what the documents say; no workload stands for it");
    }
    if (rests_on_one(m)) {
        explain(&legend, ONE_FACT, solution_one_fact);
    }
    if (cells[SOLUTION_ABSENT] > 0) {
        explain(&legend, "", "(blank) the documents have no such cell");
    }
    if (differ > 0) {
        explain(&legend, "≠",
                "what computed on this line does not do what the documents say of the "
                "source; see below");
    }
}

static void footnotes(const struct matrix *m, struct buf *buf)
{
    struct legend legend = legend_of(m, buf);
    int last = 0;

    for (int r = 0; r < m->table->row_count; r++) {
        for (int c = 0; c < m->table->column_count; c++) {
            const struct profile_cell *cell = &m->table->rows[r].cells[c];
            char mark[MARK_SIZE];

            if (matrix_shows_row(m, r) && cell->footnote > last) {
                last = cell->footnote;
                explain(&legend, footnote_mark(last, mark), cell->note);
            }
        }
    }
}

/* A line for each cell that needs words: a departure from the documents, or a proof that
 * is not complete. */
static void remarks(const struct matrix *m, struct buf *buf)
{
    bool first = true;

    for (int r = 0; r < m->table->row_count; r++) {
        for (int c = 0; c < m->table->column_count; c++) {
            const struct profile_cell *cell = &m->table->rows[r].cells[c];
            const struct solution *s = matrix_solution(m, r, c);
            char subject[SUBJECT_TEXT_SIZE];
            char line[VERDICT_REASON_SIZE + 3 * CASE_TITLE_SIZE];

            if (!matrix_shows_row(m, r) || s->state >= SOLUTION_ABSENT ||
                s->state == SOLUTION_UNMEASURED || s->state == SOLUTION_DECLARED ||
                (s->state == SOLUTION_MEASURED && matrix_agrees(m, r, c) != 0)) {
                continue;
            }
            matrix_row_subject(m, r, subject);
            if (s->state == SOLUTION_MEASURED) {
                bool is_model = m->table->rows[r].subject == SUBJECT_MODEL;

                snprintf(line, sizeof line, "%s, %s, %s: %s %s, documented %s",
                         m->table->rows[r].id, subject, m->table->columns[c].title,
                         is_model ? "the model showed" : "measured", s->code,
                         cell->documented);
            } else {
                snprintf(line, sizeof line, "%s, %s, %s: %s: %s", m->table->rows[r].id,
                         subject, m->table->columns[c].title,
                         solution_state_name(s->state), s->reason);
            }
            buf_puts(buf, first ? "\n" : "");
            first = false;
            buf_puts(buf, "  * ");
            text_wrap(buf, line, PAGE_WIDTH, 4);
        }
    }
}

void matrix_text(const struct matrix *m, struct buf *buf)
{
    header(m, buf);
    all_rows(m, buf);
    explain_signs(m, buf);
    footnotes(m, buf);
    images(m, buf);
    remarks(m, buf);
    buf_putc(buf, '\n');
    matrix_facts_text(m, buf);
}
