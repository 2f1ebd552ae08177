/* The documents view for a terminal, and the measured facts below it. */
#include "api/render/matrix.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/array.h"
#include "daemon/base/clock.h"
#include "daemon/base/text.h"
#include "daemon/evidence/matrix_count.h"

enum { FACTS = 11, FACT_SIZE = 160 };
enum { COLUMN_MIN = 6, COLUMN_TITLE = 12, COLUMN_GAP = 2, PAGE_WIDTH = 100 };

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
    const struct solution *s = matrix_solution(m, row, column);
    bool declared = s->state == SOLUTION_DECLARED;
    char mark[MARK_SIZE];

    snprintf(ret_text, size, "%s%s%s%s%s", declared ? "(" : "",
             s->code[0] ? s->code : sign_of(s->state), declared ? ")" : "",
             footnote_mark(m->table->rows[row].cells[column].footnote, mark),
             matrix_agrees(m, row, column) == 0 ? " ≠" : "");
}

static void fact(struct buf *buf, const char *name, const char *text)
{
    enum { NAME_WIDTH = 13 };

    buf_pad(buf, name, NAME_WIDTH);
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
    fact(buf, "Evidence", line);
}

/* "cuDNN 9.12.0: 21 of 24 codes measured, from 8 variants; …". */
static void tally_text(const struct matrix *m, const struct matrix_tally *t,
                       char *ret_line, size_t size)
{
    char whose[SUBJECT_TEXT_SIZE];
    char declared[48] = "";

    subject_text(t->subject, t->name, m->facts, whose);
    if (t->states[SOLUTION_DECLARED] > 0) {
        snprintf(declared, sizeof declared, "; %d only declared",
                 t->states[SOLUTION_DECLARED]);
    }
    if (t->states[SOLUTION_MEASURED] == 0) {
        snprintf(ret_line, size, "%s: none of %d codes measured%s", whose, t->cells,
                 declared);
        return;
    }
    snprintf(ret_line, size,
             "%s: %d of %d codes measured, from %d variants; %d as documented, "
             "%d different%s",
             whose, t->states[SOLUTION_MEASURED], t->cells, t->facts, t->agree, t->differ,
             declared);
}

static void codes_facts(const struct matrix *m, struct buf *buf)
{
    struct matrix_tally tallies[MATRIX_TALLIES_MAX];
    int count = matrix_count(m, tallies);

    for (int i = 0; i < count; i++) {
        char line[SUBJECT_TEXT_SIZE + 160];

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
        /* A mark may stand in the gap. */
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

/* Column titles over as many lines as the longest needs. */
static void titles(const struct matrix *m, int first, struct buf *buf)
{
    bool more = true;

    for (int line = 0; more; line++) {
        more = false;
        buf_pad(buf, line == 0 ? "SOURCE" : "", first);
        for (int c = 0; c < m->table->column_count; c++) {
            const char *title = m->table->columns[c].title;
            char part[64];

            more |= text_wrapped_line(title, COLUMN_TITLE, line + 1, part, sizeof part);
            text_wrapped_line(title, COLUMN_TITLE, line, part, sizeof part);
            buf_pad(buf, part, column_width(m, c) + COLUMN_GAP);
        }
        end_line(buf);
    }
    for (int i = 0; i < first - COLUMN_GAP; i++) {
        buf_puts(buf, "─");
    }
    for (int c = 0; c < m->table->column_count; c++) {
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

static void row_codes(const struct matrix *m, int row, struct buf *buf)
{
    const char *reason = why_nothing(m, row);

    if (reason) {
        buf_printf(buf, "%s  %s", sign_of(SOLUTION_UNMEASURED), reason);
    }
    for (int c = 0; !reason && c < m->table->column_count; c++) {
        char text[SOLUTION_CODE_SIZE + MARK_SIZE + 8];

        cell_text(m, row, c, text, sizeof text);
        buf_pad(buf, text, column_width(m, c) + COLUMN_GAP);
    }
    end_line(buf);
}

/* A line for each source, and below it one for each subject: what computed. */
static void rows(const struct matrix *m, struct buf *buf)
{
    int first = subject_width(m);
    int last = -1; /* the source that the lines are below */

    titles(m, first, buf);
    for (int r = 0; r < m->table->row_count; r++) {
        const struct profile_row *row = &m->table->rows[r];
        char subject[SUBJECT_TEXT_SIZE];

        if (!matrix_shows_row(m, r)) {
            continue;
        }
        if (row->index != last) {
            buf_printf(buf, "%s\n", row->title);
            last = row->index;
        }
        matrix_row_subject(m, r, subject);
        buf_pad(buf, "", INDENT);
        buf_pad(buf, subject, first - INDENT);
        row_codes(m, r, buf);
    }
    buf_putc(buf, '\n');
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
    buf_pad(legend->buf, sign, legend->width);
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

static void explain_signs(const struct matrix *m, struct buf *buf)
{
    struct legend legend = legend_of(m, buf);
    struct matrix_tally tallies[MATRIX_TALLIES_MAX];
    int count = matrix_count(m, tallies);
    int cells[SOLUTION_ABSENT + 1] = { 0 };
    int differ = 0;

    for (int i = 0; i < count; i++) {
        for (int state = 0; state <= SOLUTION_ABSENT; state++) {
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
    for (int i = 0; i < COUNT_OF(signs); i++) {
        if (cells[signs[i].state] > 0) {
            explain(&legend, signs[i].sign, signs[i].meaning);
        }
    }
    if (cells[SOLUTION_DECLARED] > 0) {
        explain(&legend, "( )", "what the documents say; nothing here could show it");
    }
    if (cells[SOLUTION_ABSENT] > 0) {
        explain(&legend, "", "(blank) the documents have no such cell");
    }
    if (differ > 0) {
        explain(&legend, "≠", "not what the documents say; see below");
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

            if (!matrix_shows_row(m, r) || s->state == SOLUTION_ABSENT ||
                s->state == SOLUTION_UNMEASURED || s->state == SOLUTION_DECLARED ||
                (s->state == SOLUTION_MEASURED && matrix_agrees(m, r, c) != 0)) {
                continue;
            }
            matrix_row_subject(m, r, subject);
            if (s->state == SOLUTION_MEASURED) {
                snprintf(line, sizeof line, "%s, %s, %s: measured %s, documented %s",
                         m->table->rows[r].workload, subject, m->table->columns[c].title,
                         s->code, cell->documented);
            } else {
                snprintf(line, sizeof line, "%s, %s, %s: %s: %s",
                         m->table->rows[r].workload, subject, m->table->columns[c].title,
                         solution_state_name(s->state), s->reason);
            }
            buf_puts(buf, first ? "\n" : "");
            first = false;
            buf_puts(buf, "  * ");
            text_wrap(buf, line, PAGE_WIDTH, 4);
        }
    }
}

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
             same ? text_bound(verdict_difference_bound(k->weakest_runs), number) : "-");
    if (v->mean_ns > 0) {
        snprintf(facts[9], FACT_SIZE, "%.*f", v->mean_ns < 1000000 ? 4 : 2,
                 (double)v->mean_ns / 1e6);
    } else {
        snprintf(facts[9], FACT_SIZE, "-");
    }
    if (v->cost.known) {
        snprintf(facts[10], FACT_SIZE, "%.2f (%.2f-%.2f)", v->cost.median, v->cost.low,
                 v->cost.high);
    } else {
        snprintf(facts[10], FACT_SIZE, "-");
    }
}

static void add_fact(struct buf *buf, int fact, const char *text, int width)
{
    if (is_figure(fact)) {
        buf_pad(buf, "", width - text_width(text));
        buf_puts(buf, text);
    } else {
        buf_pad(buf, text, width);
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
            buf_pad(buf, "", widths[0] + 4);
            text_wrap(buf, text, 100, widths[0] + 4);
        }
        if (!speaks(v->known.verdict)) {
            buf_pad(buf, "", widths[0] + 4);
            text_wrap(buf, v->known.reason, 100, widths[0] + 4);
        }
    }
    buf_puts(buf,
             "\n\"Differ\" is the upper bound (95 %) of the probability that "
             "a run differs from the first.\n"
             "\"Cost\" is the median time as a multiple of that of the same subject's "
             "control, with the quartiles\nof both set against each other the worst way "
             "round: a model's cost is not a library's.\n");
}

void matrix_text(const struct matrix *m, struct buf *buf)
{
    header(m, buf);
    rows(m, buf);
    explain_signs(m, buf);
    footnotes(m, buf);
    remarks(m, buf);
    buf_putc(buf, '\n');
    matrix_facts_text(m, buf);
}
