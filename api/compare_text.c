#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/compare.h"
#include "api/compare_map.h"
#include "api/decimal.h"
#include "api/text.h"
#include "daemon/base/clock.h"

enum { PAGE_WIDTH = 100, NAME_WIDTH = 15, LINE_SIZE = 1024, ROOTS_SHOWN = 8 };

static void fact(struct buf *buf, const char *name, const char *text)
{
    buf_pad(buf, name, NAME_WIDTH);
    text_wrap(buf, text, PAGE_WIDTH, NAME_WIDTH);
}

__attribute__((format(printf, 3, 4))) static void
fact_format(struct buf *buf, const char *name, const char *format, ...)
{
    char line[LINE_SIZE];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    fact(buf, name, line);
}

static void headline(const struct compare *c, struct buf *buf)
{
    static const char *const words[] = { [COMPARISON_EQUAL] = "EQUAL",
                                         [COMPARISON_DIFFERENT] = "DIFFERENT",
                                         [COMPARISON_NOT_COMPARABLE] = "NOT COMPARABLE" };

    fact(buf, words[c->verdict], c->reason);
    buf_putc(buf, '\n');
}

static void run_line(const char *name, const struct run *run, struct buf *buf)
{
    char when[CLOCK_RFC3339_SIZE];

    clock_rfc3339(run->finished_ms ? run->finished_ms : run->intent_ms, when);
    fact_format(buf, name, "%s, %s %s on %s", run->id,
                run->finished ? outcome_name(run->outcome) : "not finished, queued", when,
                run->device);
}

static void case_text(const struct case_key *key, char *ret_text, size_t size)
{
    snprintf(ret_text, size, "%s %d, %s, %s, %s, seed %" PRIu64, key->workload,
             key->version, key->variant, key->size, key->dtype, key->seed);
}

static void runs(const struct compare *c, struct buf *buf)
{
    char a[LINE_SIZE];
    char b[LINE_SIZE];

    run_line("A", &c->a.run, buf);
    run_line("B", &c->b.run, buf);
    case_text(&c->a.run.key, a, sizeof a);
    case_text(&c->b.run.key, b, sizeof b);
    if (strcmp(a, b) == 0) {
        fact_format(buf, "Case", "equal: %s", a);
    } else {
        fact_format(buf, "Case", "A  %s", a);
        fact_format(buf, "", "B  %s", b);
    }
    buf_putc(buf, '\n');
}

/* Whether steps have to be told apart by their iteration. */
static bool is_iterated(const struct compare *c)
{
    return c->a.run.iterations > 1 || c->b.run.iterations > 1;
}

/* "conv2/dw, step 37", and what tells it from other records of that name. */
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
        fact_format(buf, "", "%-7s A, B  %s", what, hex);
        return;
    }
    fact_format(buf, "", "%-7s A     %s", what, hex);
    digest_hex(b, hex);
    fact_format(buf, "", "        B     %s", hex);
}

static void difference(const struct compare *c, const char *name, int64_t position,
                       struct buf *buf)
{
    const struct trace_record *a = &c->a.trace.records[position];
    const struct trace_record *b = &c->b.trace.records[position];
    char place[LINE_SIZE];
    char number[TEXT_NUMBER_SIZE];

    where(c, &c->a.trace, position, place, sizeof place);
    fact_format(buf, name, "%s (record %s)", place, text_number(position + 1, number));
    if (trace_reads_nothing(a) && trace_reads_nothing(b)) {
        fact(buf, "", "inputs  none recorded");
    } else {
        digest_lines(buf, "inputs", a->in, b->in);
    }
    digest_lines(buf, "output", a->out, b->out);
}

/* Of the first difference, where it is not the cause. */
static const char *why_no_root(const struct trace_comparison *t)
{
    return t->root < 0
               ? "none found: the difference came in through something that has no probe"
               : NULL;
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
    fact_format(buf, "Other roots", "%s record%s with equal inputs and another output",
                text_number(t->roots - 1, number), t->roots == 2 ? "" : "s");
    for (int i = 0; i < c->place_count && shown < ROOTS_SHOWN; i++) {
        const struct trace_place_comparison *p = &t->places[c->places[i]];

        if (p->first_root >= 0 && (p->first_root != t->root || p->roots > 1)) {
            where(c, &c->a.trace, p->first_root, place, sizeof place);
            fact_format(buf, "", "%s: %s of them%s", place,
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
    fact(buf, "Before it", line[0] ? line : "nothing: it is the first record");
    line[0] = '\0';
    add_count(line, sizeof line, t->infected - (first == TRACE_INFECTED), "infected");
    add_count(line, sizeof line, t->absorbed - (first == TRACE_ABSORBED), "absorbed");
    add_count(line, sizeof line, roots, roots == 1 ? "root" : "roots");
    add_count(line, sizeof line, t->same - t->first, "equal");
    fact(buf, "Behind it", line[0] ? line : "nothing: it is the last record");
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

    if (t->parting == TRACE_PARTS_NOWHERE) {
        fact_format(buf, "Structure", "the same: %s records over %s step%s",
                    text_number(t->compared, n[0]), text_number(t->steps, n[1]),
                    t->steps == 1 ? "" : "s");
        return;
    }
    fact_format(buf, "Structure", "parts at record %s; nothing behind that is compared",
                text_number(t->compared + 1, n[0]));
    record_name(c, &c->a.trace, t->compared, name, sizeof name);
    fact_format(buf, "", "A has %s", name);
    record_name(c, &c->b.trace, t->compared, name, sizeof name);
    fact_format(buf, "", "B has %s", name);
}

static void traces(const struct compare *c, struct buf *buf)
{
    const struct trace_comparison *t = &c->traces;

    if (t->first >= 0) {
        if (t->first == t->root) {
            difference(c, "Root cause", t->root, buf);
        } else {
            difference(c, "Differs first", t->first, buf);
        }
        around(c, buf);
        if (why_no_root(t)) {
            fact(buf, "Root cause", why_no_root(t));
        } else if (t->first != t->root) {
            difference(c, "Root cause", t->root, buf);
        }
        other_roots(c, buf);
    }
    structure(c, buf);
}

static void aspect(const struct compare *c, const char *name,
                   const struct trace_aspect *a, struct buf *buf)
{
    char place[LINE_SIZE];
    char n[2][TEXT_NUMBER_SIZE];

    if (a->compared == 0) {
        fact(buf, name, "not recorded");
    } else if (a->different == 0) {
        fact_format(buf, name, "equal (%s)", text_number(a->compared, n[0]));
    } else {
        where(c, &c->a.trace, a->first, place, sizeof place);
        fact_format(buf, name, "different: %s of %s, first %s%s",
                    text_number(a->different, n[0]), text_number(a->compared, n[1]),
                    place, a->reordered ? "; the same ones in another order" : "");
    }
}

static void texts(struct buf *buf, const char *name, const char *a, const char *b)
{
    if (!*a || !*b) {
        fact(buf, name, *a || *b ? "only one run said it" : "neither run said it");
    } else if (strcmp(a, b) == 0) {
        fact_format(buf, name, "equal: %s", a);
    } else {
        fact_format(buf, name, "A  %s", a);
        fact_format(buf, "", "B  %s", b);
    }
}

static void environment(const struct compare *c, struct buf *buf)
{
    if (strcmp(c->a.run.environment, c->b.run.environment) == 0 || !c->a.facts ||
        !c->b.facts) {
        texts(buf, "Environment", c->a.environment.title, c->b.environment.title);
        return;
    }
    fact_format(buf, "Environment", "different in %d fact%s", c->fact_count,
                c->fact_count == 1 ? "" : "s");
    for (int i = 0; i < c->fact_count; i++) {
        const struct compare_fact *f = &c->facts[i];

        fact_format(buf, "", "%s: A %s, B %s", f->name, *f->a ? f->a : "-",
                    *f->b ? f->b : "-");
    }
}

static void result_line(struct buf *buf, const char *name, const struct run *run)
{
    char sum[DECIMAL_SIZE];
    char loss[DECIMAL_SIZE];

    decimal_from_bits(run->weight_sum, sum);
    decimal_from_bits(run->loss, loss);
    fact_format(buf, "", "%s  %s  weight sum %s%s%s", name, run->digest,
                sum[0] ? sum : "-", loss[0] ? ", loss " : "", loss);
}

static void results(const struct compare *c, struct buf *buf)
{
    static const char *const words[] = { [COMPARISON_RESULTS_EQUAL] = "equal",
                                         [COMPARISON_RESULTS_DIFFERENT] = "different",
                                         [COMPARISON_RESULTS_UNKNOWN] = "not known" };

    fact(buf, "Results", words[comparison_results(&c->a.side, &c->b.side)]);
    if (c->a.run.digest[0]) {
        result_line(buf, "A", &c->a.run);
    }
    if (c->b.run.digest[0]) {
        result_line(buf, "B", &c->b.run);
    }
}

void compare_text(const struct compare *c, struct buf *buf)
{
    headline(c, buf);
    runs(c, buf);
    if (c->has_traces) {
        traces(c, buf);
        compare_map(c, buf);
        buf_putc(buf, '\n');
        aspect(c, "Variables", &c->variables, buf);
        aspect(c, "Data", &c->data, buf);
        aspect(c, "Generators", &c->rng, buf);
    }
    texts(buf, "Algorithm", c->a.run.algorithm, c->b.run.algorithm);
    environment(c, buf);
    texts(buf, "Inputs", c->a.run.input_digest, c->b.run.input_digest);
    results(c, buf);
}
