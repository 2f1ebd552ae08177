#include "daemon/client/gate_report.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/base/text.h"

static const enum gate_result order[] = { GATE_DIFFERENT, GATE_UNVERIFIED, GATE_EQUAL };

static int all_of(const struct gate_counts *counts)
{
    return counts->of[GATE_EQUAL] + counts->of[GATE_DIFFERENT] +
           counts->of[GATE_UNVERIFIED];
}

/* Why, and where its runs diverge.  Caller frees. */
static char *words_of(const struct gate_case *one)
{
    return xasprintf("%s%s%s", one->words, one->place ? "; " : "",
                     one->place ? one->place : "");
}

/* "2 equal, 1 different, 0 unverified" */
static void count_words(const struct gate_report *r, struct buf *buf)
{
    struct gate_counts counts = gate_count(r->cases, r->count, NULL);

    for (int i = 0; i < GATE_RESULTS; i++) {
        buf_printf(buf, "%s%d %s", i ? ", " : "", counts.of[i],
                   gate_result_name((enum gate_result)i));
    }
    buf_puts(buf, all_of(&counts) == 0 ? ": there was nothing to check" : "");
}

/* What a failed run printed last, indented. */
static void put_log(struct buf *buf, const char *log)
{
    while (log && *log) {
        size_t length = strcspn(log, "\n");

        text_line(buf, "            | %.*s", (int)length, log);
        log += length + (log[length] == '\n');
    }
}

void gate_text(const struct gate_report *r, struct buf *buf)
{
    struct buf words = BUF_INIT;

    for (int k = 0; k < GATE_RESULTS; k++) {
        for (int i = 0; i < r->count; i++) {
            const struct gate_case *one = &r->cases[i];

            if (one->result == order[k] && !one->is_control) {
                char *why = words_of(one);

                text_line(buf, "%-10s  %s: %s", gate_result_name(one->result), one->title,
                          why);
                put_log(buf, one->log);
                free(why);
            }
        }
    }
    count_words(r, &words);
    text_line(buf, "%s (job %s)", words.data, r->job);
    buf_release(&words);
}

/* XML 1.0 has no control characters at all, and neither U+FFFE nor U+FFFF. */
static void xml(struct buf *buf, const char *text)
{
    for (; *text; text++) {
        if (strncmp(text, "\xef\xbf\xbe", 3) == 0 ||
            strncmp(text, "\xef\xbf\xbf", 3) == 0) {
            text += 2;
            buf_puts(buf, *text == '\xbe' ? "\\ufffe" : "\\uffff");
            continue;
        }
        switch (*text) {
        case '&':
            buf_puts(buf, "&amp;");
            break;
        case '<':
            buf_puts(buf, "&lt;");
            break;
        case '>':
            buf_puts(buf, "&gt;");
            break;
        case '"':
            buf_puts(buf, "&quot;");
            break;
        default:
            buf_putc(buf, (unsigned char)*text < 0x20 && *text != '\n' ? ' ' : *text);
        }
    }
}

typedef void put_fn(struct buf *buf, const char *text);

/* A text that may hold anything: shown as people are shown it, then escaped by PUT. */
static void put_shown(put_fn *put, struct buf *buf, const char *text)
{
    struct buf shown = BUF_INIT;

    text_show(&shown, text, strlen(text), "");
    put(buf, shown.data ? shown.data : "");
    buf_release(&shown);
}

static void put_why(put_fn *put, struct buf *buf, const struct gate_case *one)
{
    char *why = words_of(one);

    put_shown(put, buf, why);
    free(why);
}

static void junit_case(const struct gate_report *r, const struct gate_case *one,
                       struct buf *buf)
{
    const char *element = one->result == GATE_DIFFERENT ? "failure" : "error";

    buf_puts(buf, "    <testcase classname=\"");
    put_shown(xml, buf, one->workload);
    buf_puts(buf, "\" name=\"");
    put_shown(xml, buf, one->name);
    buf_puts(buf, "\">");
    if (one->result != GATE_EQUAL) {
        buf_printf(buf, "\n      <%s type=\"%s\" message=\"", element,
                   gate_result_name(one->result));
        put_why(xml, buf, one);
        buf_printf(buf, "\">%s/v1/cells/%lld", r->server, (long long)one->cell);
        if (one->log) {
            struct buf log = BUF_INIT;

            put_log(&log, one->log);
            buf_putc(buf, '\n');
            xml(buf, log.data ? log.data : "");
            buf_release(&log);
        }
        buf_printf(buf, "</%s>\n    ", element);
    }
    buf_puts(buf, "</testcase>\n");
}

/* Whether the workload of case I stands in an earlier one that is no control. */
static bool began(const struct gate_report *r, int i)
{
    for (int k = 0; k < i; k++) {
        if (!r->cases[k].is_control &&
            strcmp(r->cases[k].workload, r->cases[i].workload) == 0) {
            return true;
        }
    }
    return false;
}

static void counts_attributes(const struct gate_counts *counts, struct buf *buf)
{
    buf_printf(buf, " tests=\"%d\" failures=\"%d\" errors=\"%d\"", all_of(counts),
               counts->of[GATE_DIFFERENT], counts->of[GATE_UNVERIFIED]);
}

static void junit_suite(const struct gate_report *r, const char *workload,
                        struct buf *buf)
{
    struct gate_counts counts = gate_count(r->cases, r->count, workload);

    buf_puts(buf, "  <testsuite name=\"");
    put_shown(xml, buf, workload);
    buf_putc(buf, '"');
    counts_attributes(&counts, buf);
    buf_puts(buf, ">\n");
    for (int i = 0; i < r->count; i++) {
        if (!r->cases[i].is_control && strcmp(r->cases[i].workload, workload) == 0) {
            junit_case(r, &r->cases[i], buf);
        }
    }
    buf_puts(buf, "  </testsuite>\n");
}

/* A file without a test would be read as a success. */
static void junit_nothing(struct buf *buf)
{
    buf_puts(buf,
             "  <testsuite name=\"reprod\" tests=\"1\" failures=\"0\" errors=\"1\">\n"
             "    <testcase classname=\"reprod\" name=\"something to check\">\n"
             "      <error type=\"unverified\" message=\"there was nothing to check\"/>\n"
             "    </testcase>\n  </testsuite>\n");
}

void gate_junit(const struct gate_report *r, struct buf *buf)
{
    struct gate_counts counts = gate_count(r->cases, r->count, NULL);
    bool is_nothing = all_of(&counts) == 0;

    counts.of[GATE_UNVERIFIED] += is_nothing;
    buf_puts(buf,
             "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"reprod "
             "check\"");
    counts_attributes(&counts, buf);
    buf_puts(buf, ">\n");
    if (is_nothing) {
        junit_nothing(buf);
    }
    for (int i = 0; i < r->count; i++) {
        if (!r->cases[i].is_control && !began(r, i)) {
            junit_suite(r, r->cases[i].workload, buf);
        }
    }
    buf_puts(buf, "</testsuites>\n");
}

/* Within a table's cell, and without markup of its own. */
static void markdown(struct buf *buf, const char *text)
{
    for (; *text; text++) {
        if (strchr("\\`*_{}[]<>()#+!|&", *text)) {
            buf_putc(buf, '\\');
        }
        buf_putc(buf, *text);
    }
}

void gate_markdown(const struct gate_report *r, struct buf *buf)
{
    buf_puts(buf, "### reprod: ");
    count_words(r, buf);
    buf_puts(buf, "\n\n| result | case | why |\n|---|---|---|\n");
    for (int k = 0; k < GATE_RESULTS; k++) {
        for (int i = 0; i < r->count; i++) {
            const struct gate_case *one = &r->cases[i];

            if (one->result != order[k] || one->is_control) {
                continue;
            }
            buf_printf(buf, "| %s | ", gate_result_name(one->result));
            put_shown(markdown, buf, one->title);
            buf_puts(buf, " | ");
            put_why(markdown, buf, one);
            buf_puts(buf, " |\n");
        }
    }
}

/* Its own escapes: docs.github.com, "Workflow commands for GitHub Actions". */
static void annotation(struct buf *buf, const char *text)
{
    for (; *text; text++) {
        if (*text == '%') {
            buf_puts(buf, "%25");
        } else {
            buf_putc(buf, *text);
        }
    }
}

void gate_annotations(const struct gate_report *r, struct buf *buf)
{
    for (int i = 0; i < r->count; i++) {
        const struct gate_case *one = &r->cases[i];

        if (one->result == GATE_EQUAL || one->is_control) {
            continue;
        }
        buf_printf(buf, "::error title=reprod%%3A %s::", gate_result_name(one->result));
        put_shown(annotation, buf, one->title);
        buf_puts(buf, ": ");
        put_why(annotation, buf, one);
        buf_putc(buf, '\n');
    }
}
