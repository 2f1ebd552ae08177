/* A comparison of two runs for a terminal (api/compare.h): lines, and a map of places by
 * steps. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/compare.h"
#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "daemon/base/text.h"

enum { PAGE_WIDTH = 100, NAME_WIDTH = 15, LINE_SIZE = 1024, ROOTS_SHOWN = 8 };
enum { MAP_ROWS = 40, MAP_COLUMNS = 60, MAP_NAME_MAX = 36, MARGIN = 2 };

/* NAME in a column of its own, "" in the lines that belong to the one before; TEXT is
 * wrapped in the column to the right of it. */
static void entry(struct buf *buf, const char *name, const char *text)
{
    text_pad(buf, name, NAME_WIDTH);
    text_wrap(buf, text, PAGE_WIDTH, NAME_WIDTH);
}

static void __attribute__((format(printf, 3, 4)))
entry_format(struct buf *buf, const char *name, const char *format, ...)
{
    char line[LINE_SIZE];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    entry(buf, name, line);
}

/* Whether steps have to be told apart by their iteration. */
static bool is_iterated(const struct compare *c)
{
    return c->a.side.iterations > 1 || c->b.side.iterations > 1;
}

/* "conv2/dw, step 37", and what tells the record at POSITION of TRACE from others of that
 * name. */
static void where(const struct compare *c, const struct trace *trace, int64_t position,
                  char *ret_text, size_t size)
{
    const struct trace_record *r = &trace->records[position];
    int64_t occurrence = trace_occurrence(trace, position);
    char iteration[32] = "";
    char again[48] = "";

    if (is_iterated(c)) {
        snprintf(iteration, sizeof iteration, " of iteration %" PRId32, r->iteration);
    }
    if (occurrence > 0) {
        snprintf(again, sizeof again, ", time %" PRId64 " in it", occurrence + 1);
    }
    snprintf(ret_text, size, "%s, step %" PRId64 "%s%s", trace_place_at(trace, position),
             r->step, iteration, again);
}

static void digest_lines(struct buf *buf, const char *what, struct digest a,
                         struct digest b)
{
    char hex[DIGEST_HEX_SIZE];

    digest_hex(a, hex);
    if (digest_equal(a, b)) {
        entry_format(buf, "", "%-7s A, B  %s", what, hex);
        return;
    }
    entry_format(buf, "", "%-7s A     %s", what, hex);
    digest_hex(b, hex);
    entry_format(buf, "", "        B     %s", hex);
}

static void difference(const struct compare *c, const char *name, int64_t position,
                       struct buf *buf)
{
    const struct trace_record *a = &c->a.trace.records[position];
    const struct trace_record *b = &c->b.trace.records[position];
    char place[LINE_SIZE];
    char number[TEXT_NUMBER_SIZE];

    where(c, &c->a.trace, position, place, sizeof place);
    entry_format(buf, name, "%s (record %s)", place, text_number(position + 1, number));
    if (trace_reads_nothing(a) && trace_reads_nothing(b)) {
        entry(buf, "", "inputs  none recorded");
    } else {
        digest_lines(buf, "inputs", a->in, b->in);
    }
    digest_lines(buf, "output", a->out, b->out);
}

static void other_roots(const struct compare *c, struct buf *buf)
{
    const struct trace_comparison *t = &c->traces;
    char place[LINE_SIZE];
    char number[TEXT_NUMBER_SIZE];
    int shown = 0;

    if (t->roots < 2) {
        return;
    }
    entry_format(buf, "Other roots", "%s record%s with equal inputs and another output",
                 text_number(t->roots - 1, number), t->roots == 2 ? "" : "s");
    for (int i = 0; i < c->place_count && shown < ROOTS_SHOWN; i++) {
        const struct trace_place_comparison *p = &t->places[c->places[i]];

        if (p->first_root >= 0 && (p->first_root != t->root || p->roots > 1)) {
            where(c, &c->a.trace, p->first_root, place, sizeof place);
            entry_format(buf, "", "%s: %s of them%s", place,
                         text_number(p->roots - (p->first_root == t->root), number),
                         p->first_root == t->root ? " behind it" : "");
            shown++;
        }
    }
}

/* ", 3 infected" where there are any. */
static void add_count(char *text, size_t size, int64_t count, const char *what)
{
    size_t used = strlen(text);
    char number[TEXT_NUMBER_SIZE];

    if (count > 0) {
        snprintf(text + used, size - used, "%s%s %s", used ? ", " : "",
                 text_number(count, number), what);
    }
}

static void around(const struct compare *c, struct buf *buf)
{
    const struct trace_comparison *t = &c->traces;
    enum trace_kind first = (enum trace_kind)t->kinds[t->first];
    int64_t roots = t->roots - (first == TRACE_ROOT);
    char line[LINE_SIZE] = "";

    add_count(line, sizeof line, t->first,
              t->first == 1 ? "record agrees" : "records agree");
    entry(buf, "Before it", line[0] ? line : "nothing: it is the first record");
    line[0] = '\0';
    add_count(line, sizeof line, t->infected - (first == TRACE_INFECTED), "infected");
    add_count(line, sizeof line, t->absorbed - (first == TRACE_ABSORBED), "absorbed");
    add_count(line, sizeof line, roots, roots == 1 ? "root" : "roots");
    add_count(line, sizeof line, t->same - t->first, "equal");
    entry(buf, "Behind it", line[0] ? line : "nothing: it is the last record");
}

static void record_name(const struct compare *c, const struct trace *trace,
                        int64_t position, char *ret_text, size_t size)
{
    if (position < trace->count) {
        where(c, trace, position, ret_text, size);
    } else {
        snprintf(ret_text, size, "nothing: it ends there");
    }
}

static void structure(const struct compare *c, struct buf *buf)
{
    const struct trace_comparison *t = &c->traces;
    char name[LINE_SIZE];
    char n[2][TEXT_NUMBER_SIZE];

    if (t->structure == TRACE_DIVERGES_NOWHERE) {
        entry_format(buf, "Structure", "the same: %s records over %s step%s",
                     text_number(t->compared, n[0]), text_number(t->steps, n[1]),
                     t->steps == 1 ? "" : "s");
        return;
    }
    entry_format(buf, "Structure",
                 "diverges at record %s; nothing after that is compared",
                 text_number(t->compared + 1, n[0]));
    record_name(c, &c->a.trace, t->compared, name, sizeof name);
    entry_format(buf, "", "A has %s", name);
    record_name(c, &c->b.trace, t->compared, name, sizeof name);
    entry_format(buf, "", "B has %s", name);
}

/* What the records show: causes, what follows, structure. */
static void records(const struct compare *c, struct buf *buf)
{
    const struct trace_comparison *t = &c->traces;

    if (t->first >= 0) {
        if (t->first == t->root) {
            difference(c, "Root cause", t->root, buf);
        } else {
            difference(c, "Differs first", t->first, buf);
        }
        around(c, buf);
        if (t->root < 0) {
            entry(buf, "Root cause",
                  "none found: the difference came in where there is no probe");
        } else if (t->first != t->root) {
            difference(c, "Root cause", t->root, buf);
        }
        other_roots(c, buf);
    }
    structure(c, buf);
}

/* The places that differ, step by step, as a picture in a terminal: a line a place, in
 * the order of their first differences. */
static const char *const signs[] = { [TRACE_SAME] = "·",
                                     [TRACE_ABSORBED] = "o",
                                     [TRACE_INFECTED] = "#",
                                     [TRACE_ROOT] = "R" };

struct map {
    const struct compare *compare;
    int rows, columns, name_width;
    int32_t *row_of;     /* by place; -1: not shown */
    unsigned char *cell; /* rows x columns: worst kind plus one; 0: no record */
};

/* The end of NAME, which says more than its beginning, in at most MAP_NAME_MAX columns.
 */
static void name_text(const char *name, char *ret_text, size_t size)
{
    int excess = text_width(name) - MAP_NAME_MAX;

    if (excess <= 0) {
        snprintf(ret_text, size, "%s", name);
        return;
    }
    for (excess++; excess > 0; excess--) {
        name++;
        while (((unsigned char)*name & 0xc0) == 0x80) {
            name++;
        }
    }
    snprintf(ret_text, size, "…%s", name);
}

static void choose_rows(struct map *map)
{
    const struct compare *c = map->compare;

    map->rows = c->place_count < MAP_ROWS ? c->place_count : MAP_ROWS;
    map->row_of = xmalloc((size_t)c->a.trace.place_count * sizeof *map->row_of);
    memset(map->row_of, -1, (size_t)c->a.trace.place_count * sizeof *map->row_of);
    for (int i = 0; i < map->rows; i++) {
        char name[TRACE_PLACE_MAX + 8];
        int width;

        name_text(c->a.trace.places[c->places[i]], name, sizeof name);
        width = text_width(name);
        map->name_width = width > map->name_width ? width : map->name_width;
        map->row_of[c->places[i]] = i;
    }
}

static void fill(struct map *map)
{
    const struct trace_comparison *t = &map->compare->traces;
    const struct trace_record *records = map->compare->a.trace.records;
    int64_t step = -1;

    for (int64_t i = 0; i < t->compared; i++) {
        int row = map->row_of[records[i].place];
        unsigned char *cell;

        step += i == 0 || records[i].iteration != records[i - 1].iteration ||
                records[i].step != records[i - 1].step;
        if (row >= 0) {
            cell = &map->cell[row * map->columns + (int)(step * map->columns / t->steps)];
            *cell = *cell > t->kinds[i] ? *cell : (unsigned char)(t->kinds[i] + 1);
        }
    }
}

static void legend(const struct map *map, struct buf *buf)
{
    int64_t steps = map->compare->traces.steps;
    int64_t most = (steps + map->columns - 1) / map->columns;
    char number[TEXT_NUMBER_SIZE];

    buf_printf(
        buf,
        "%*s%s equal   %s root   %s infected   %s absorbed (other inputs, the same "
        "output)\n",
        MARGIN, "", signs[TRACE_SAME], signs[TRACE_ROOT], signs[TRACE_INFECTED],
        signs[TRACE_ABSORBED]);
    if (most > 1) {
        buf_printf(buf, "%*sa column is up to %s steps, and shows the worst of them\n",
                   MARGIN, "", text_number(most, number));
    }
}

static void label(const struct compare *c, int64_t position, char *ret_text, size_t size)
{
    const struct trace_record *r = &c->a.trace.records[position];
    const struct trace_record *last = &c->a.trace.records[c->traces.compared - 1];

    if (last->iteration > 0) {
        snprintf(ret_text, size, "%" PRId32 ":%" PRId64, r->iteration, r->step);
    } else {
        snprintf(ret_text, size, "%" PRId64, r->step);
    }
}

/* The first and the last step, above the columns. */
static void axis(const struct map *map, struct buf *buf)
{
    const struct compare *c = map->compare;
    bool iterated = c->a.trace.records[c->traces.compared - 1].iteration > 0;
    char first[48];
    char last[48];
    int gap;

    label(c, 0, first, sizeof first);
    label(c, c->traces.compared - 1, last, sizeof last);
    gap = map->columns - text_width(first) - text_width(last);
    text_pad(buf, "", MARGIN);
    text_pad(buf, iterated ? "iteration:step" : "step", map->name_width + MARGIN);
    buf_puts(buf, first);
    if (c->traces.steps > 1) {
        text_pad(buf, "", gap > 1 ? gap : 1);
        buf_puts(buf, last);
    }
    buf_putc(buf, '\n');
}

static void map_row(const struct map *map, int index, struct buf *buf)
{
    const struct compare *c = map->compare;
    char name[TRACE_PLACE_MAX + 8];

    name_text(c->a.trace.places[c->places[index]], name, sizeof name);
    text_pad(buf, "", MARGIN);
    text_pad(buf, name, map->name_width + MARGIN);
    for (int i = 0; i < map->columns; i++) {
        unsigned char cell = map->cell[index * map->columns + i];

        buf_puts(buf, cell ? signs[cell - 1] : " ");
    }
    while (buf->data[buf->length - 1] == ' ') {
        buf->length--;
    }
    buf_putc(buf, '\n');
}

/* How many places have no line. */
static void others(const struct map *map, struct buf *buf)
{
    const struct compare *c = map->compare;
    int same = 0;

    for (int i = 0; i < c->a.trace.place_count; i++) {
        same += c->traces.places[i].compared > 0 && c->traces.places[i].first < 0;
    }
    if (c->place_count > map->rows) {
        buf_printf(buf, "  and %d more that differ\n", c->place_count - map->rows);
    }
    if (same > 0) {
        buf_printf(buf, "  and %d in which every record agrees\n", same);
    }
}

/* Appends nothing where no place differs. */
static void map_lines(const struct compare *compare, struct buf *buf)
{
    const struct trace_comparison *t = &compare->traces;
    struct map map = { .compare = compare, .name_width = text_width("iteration:step") };

    if (!compare->has_traces || compare->place_count == 0) {
        return;
    }
    map.columns = t->steps < MAP_COLUMNS ? (int)t->steps : MAP_COLUMNS;
    choose_rows(&map);
    map.cell = xcalloc((size_t)map.rows, (size_t)map.columns);
    fill(&map);
    buf_puts(buf, "\nPlace by place, in the order in which they begin to differ\n");
    legend(&map, buf);
    axis(&map, buf);
    for (int i = 0; i < map.rows; i++) {
        map_row(&map, i, buf);
    }
    others(&map, buf);
    free(map.row_of);
    free(map.cell);
}

static void headline(const struct compare *c, struct buf *buf)
{
    static const char *const words[] = { [COMPARISON_EQUAL] = "EQUAL",
                                         [COMPARISON_DIFFERENT] = "DIFFERENT",
                                         [COMPARISON_NOT_COMPARABLE] = "NOT COMPARABLE" };

    entry(buf, words[c->verdict], c->reason);
    buf_putc(buf, '\n');
}

static void run_line(const char *name, const struct run_record *run, struct buf *buf)
{
    char when[CLOCK_RFC3339_SIZE];

    clock_rfc3339(run->finished_ms ? run->finished_ms : run->intent_ms, when);
    entry_format(buf, name, "%s, %s %s on %s", run->id,
                 run->finished ? outcome_name(run->outcome) : "not finished, queued",
                 when, run->device);
}

static void case_text(const struct case_key *key, char *ret_text, size_t size)
{
    snprintf(ret_text, size, "%s %d, %s, %s, %s, seed %" PRIu64, key->workload,
             key->version, key->variant, key->size, key->dtype, key->seed);
}

static void texts(struct buf *buf, const char *name, const char *a, const char *b)
{
    if (!*a || !*b) {
        entry(buf, name, *a || *b ? "only one run said it" : "neither run said it");
    } else if (strcmp(a, b) == 0) {
        entry_format(buf, name, "equal: %s", a);
    } else {
        entry_format(buf, name, "A  %s", a);
        entry_format(buf, "", "B  %s", b);
    }
}

static void runs(const struct compare *c, struct buf *buf)
{
    char a[LINE_SIZE];
    char b[LINE_SIZE];

    run_line("A", &c->a.run, buf);
    run_line("B", &c->b.run, buf);
    case_text(&c->a.run.key, a, sizeof a);
    case_text(&c->b.run.key, b, sizeof b);
    texts(buf, "Case", a, b);
    buf_putc(buf, '\n');
}

static void aspect(const struct compare *c, const char *name,
                   const struct trace_aspect *a, struct buf *buf)
{
    char place[LINE_SIZE];
    char n[2][TEXT_NUMBER_SIZE];

    if (a->compared == 0) {
        entry(buf, name, "not recorded");
    } else if (a->different == 0) {
        entry_format(buf, name, "equal (%s)", text_number(a->compared, n[0]));
    } else {
        where(c, &c->a.trace, a->first, place, sizeof place);
        entry_format(buf, name, "different: %s of %s, first %s%s",
                     text_number(a->different, n[0]), text_number(a->compared, n[1]),
                     place, a->reordered ? "; the same ones in another order" : "");
    }
}

static void environment(const struct compare *c, struct buf *buf)
{
    if (strcmp(c->a.run.environment, c->b.run.environment) == 0 || !c->a.facts ||
        !c->b.facts) {
        texts(buf, "Environment", c->a.environment.title, c->b.environment.title);
        return;
    }
    entry_format(buf, "Environment", "different in %d fact%s", c->fact_count,
                 c->fact_count == 1 ? "" : "s");
    for (int i = 0; i < c->fact_count; i++) {
        const struct compare_fact *f = &c->facts[i];

        entry_format(buf, "", "%s: A %s, B %s", f->name, *f->a ? f->a : "-",
                     *f->b ? f->b : "-");
    }
}

static void result_line(struct buf *buf, const char *name, const struct run_record *run)
{
    char sum[DECIMAL_SIZE];
    char loss[DECIMAL_SIZE];

    decimal_from_bits(run->weight_sum, sum);
    decimal_from_bits(run->loss, loss);
    entry_format(buf, "", "%s  %s  %s%s%s", name, run->digest, sum[0] ? sum : "-",
                 loss[0] ? " | " : "", loss);
}

static void results(const struct compare *c, struct buf *buf)
{
    static const char *const words[] = { [COMPARISON_RESULTS_EQUAL] = "equal",
                                         [COMPARISON_RESULTS_DIFFERENT] = "different",
                                         [COMPARISON_RESULTS_UNKNOWN] = "not known" };

    entry_format(buf, "Results", "%s (digest, sum of weights | final loss)",
                 words[comparison_results(&c->a.side, &c->b.side)]);
    if (c->a.run.digest[0]) {
        result_line(buf, "A", &c->a.run);
    }
    if (c->b.run.digest[0]) {
        result_line(buf, "B", &c->b.run);
    }
}

void compare_text(const struct compare *c, struct buf *buf)
{
    char subjects[2][SUBJECT_TEXT_SIZE];

    headline(c, buf);
    runs(c, buf);
    if (c->has_traces) {
        records(c, buf);
        map_lines(c, buf);
        buf_putc(buf, '\n');
        aspect(c, "Variables", &c->variables, buf);
        aspect(c, "Data", &c->data, buf);
        aspect(c, "Generators", &c->rng, buf);
    }
    subject_text(c->a.run.subject, c->a.run.subject_name, NULL, subjects[0]);
    subject_text(c->b.run.subject, c->b.run.subject_name, NULL, subjects[1]);
    texts(buf, "Subject", subjects[0], subjects[1]);
    texts(buf, "Algorithm", c->a.run.algorithm, c->b.run.algorithm);
    environment(c, buf);
    texts(buf, "Inputs", c->a.run.input_digest, c->b.run.input_digest);
    results(c, buf);
}
