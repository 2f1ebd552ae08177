#include <stdio.h>
#include <string.h>

#include "api/render/compare_lines.h"
#include "daemon/base/text.h"

enum { ROOTS_SHOWN = 8 };

static void digest_lines(struct buf *buf, const char *what, struct digest a,
                         struct digest b)
{
    char hex[DIGEST_HEX_SIZE];

    digest_hex(a, hex);
    if (digest_equal(a, b)) {
        compare_line_format(buf, "", "%-7s A, B  %s", what, hex);
        return;
    }
    compare_line_format(buf, "", "%-7s A     %s", what, hex);
    digest_hex(b, hex);
    compare_line_format(buf, "", "        B     %s", hex);
}

static void difference(const struct compare *c, const char *name, int64_t position,
                       struct buf *buf)
{
    const struct trace_record *a = &c->a.trace.records[position];
    const struct trace_record *b = &c->b.trace.records[position];
    char place[COMPARE_LINE_SIZE];
    char number[TEXT_NUMBER_SIZE];

    compare_where(c, &c->a.trace, position, place, sizeof place);
    compare_line_format(buf, name, "%s (record %s)", place,
                        text_number(position + 1, number));
    if (trace_reads_nothing(a) && trace_reads_nothing(b)) {
        compare_line(buf, "", "inputs  none recorded");
    } else {
        digest_lines(buf, "inputs", a->in, b->in);
    }
    digest_lines(buf, "output", a->out, b->out);
}

static void other_roots(const struct compare *c, struct buf *buf)
{
    const struct trace_comparison *t = &c->traces;
    char place[COMPARE_LINE_SIZE];
    char number[TEXT_NUMBER_SIZE];
    int shown = 0;

    if (t->roots < 2) {
        return;
    }
    compare_line_format(buf, "Other roots",
                        "%s record%s with equal inputs and another output",
                        text_number(t->roots - 1, number), t->roots == 2 ? "" : "s");
    for (int i = 0; i < c->place_count && shown < ROOTS_SHOWN; i++) {
        const struct trace_place_comparison *p = &t->places[c->places[i]];

        if (p->first_root >= 0 && (p->first_root != t->root || p->roots > 1)) {
            compare_where(c, &c->a.trace, p->first_root, place, sizeof place);
            compare_line_format(
                buf, "", "%s: %s of them%s", place,
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
    char line[COMPARE_LINE_SIZE] = "";

    add_count(line, sizeof line, t->first,
              t->first == 1 ? "record agrees" : "records agree");
    compare_line(buf, "Before it", line[0] ? line : "nothing: it is the first record");
    line[0] = '\0';
    add_count(line, sizeof line, t->infected - (first == TRACE_INFECTED), "infected");
    add_count(line, sizeof line, t->absorbed - (first == TRACE_ABSORBED), "absorbed");
    add_count(line, sizeof line, roots, roots == 1 ? "root" : "roots");
    add_count(line, sizeof line, t->same - t->first, "equal");
    compare_line(buf, "Behind it", line[0] ? line : "nothing: it is the last record");
}

static void record_name(const struct compare *c, const struct trace *trace,
                        int64_t position, char *ret_text, size_t size)
{
    if (position < trace->count) {
        compare_where(c, trace, position, ret_text, size);
    } else {
        snprintf(ret_text, size, "nothing: it ends there");
    }
}

static void structure(const struct compare *c, struct buf *buf)
{
    const struct trace_comparison *t = &c->traces;
    char name[COMPARE_LINE_SIZE];
    char n[2][TEXT_NUMBER_SIZE];

    if (t->structure == TRACE_DIVERGES_NOWHERE) {
        compare_line_format(buf, "Structure", "the same: %s records over %s step%s",
                            text_number(t->compared, n[0]), text_number(t->steps, n[1]),
                            t->steps == 1 ? "" : "s");
        return;
    }
    compare_line_format(buf, "Structure",
                        "parts at record %s; nothing behind that is compared",
                        text_number(t->compared + 1, n[0]));
    record_name(c, &c->a.trace, t->compared, name, sizeof name);
    compare_line_format(buf, "", "A has %s", name);
    record_name(c, &c->b.trace, t->compared, name, sizeof name);
    compare_line_format(buf, "", "B has %s", name);
}

void compare_records_text(const struct compare *c, struct buf *buf)
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
            compare_line(buf, "Root cause",
                         "none found: the difference came in where there is no probe");
        } else if (t->first != t->root) {
            difference(c, "Root cause", t->root, buf);
        }
        other_roots(c, buf);
    }
    structure(c, buf);
}
