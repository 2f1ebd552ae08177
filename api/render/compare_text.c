#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/render/compare_lines.h"
#include "api/render/compare_map.h"
#include "daemon/base/clock.h"
#include "daemon/base/decimal.h"
#include "daemon/base/text.h"

static void headline(const struct compare *c, struct buf *buf)
{
    static const char *const words[] = { [COMPARISON_EQUAL] = "EQUAL",
                                         [COMPARISON_DIFFERENT] = "DIFFERENT",
                                         [COMPARISON_NOT_COMPARABLE] = "NOT COMPARABLE" };

    compare_line(buf, words[c->verdict], c->reason);
    buf_putc(buf, '\n');
}

static void run_line(const char *name, const struct run_record *run, struct buf *buf)
{
    char when[CLOCK_RFC3339_SIZE];

    clock_rfc3339(run->finished_ms ? run->finished_ms : run->intent_ms, when);
    compare_line_format(buf, name, "%s, %s %s on %s", run->id,
                        run->finished ? outcome_name(run->outcome)
                                      : "not finished, queued",
                        when, run->device);
}

static void case_text(const struct case_key *key, char *ret_text, size_t size)
{
    snprintf(ret_text, size, "%s %d, %s, %s, %s, seed %" PRIu64, key->workload,
             key->version, key->variant, key->size, key->dtype, key->seed);
}

static void runs(const struct compare *c, struct buf *buf)
{
    char a[COMPARE_LINE_SIZE];
    char b[COMPARE_LINE_SIZE];

    run_line("A", &c->a.run, buf);
    run_line("B", &c->b.run, buf);
    case_text(&c->a.run.key, a, sizeof a);
    case_text(&c->b.run.key, b, sizeof b);
    if (strcmp(a, b) == 0) {
        compare_line_format(buf, "Case", "equal: %s", a);
    } else {
        compare_line_format(buf, "Case", "A  %s", a);
        compare_line_format(buf, "", "B  %s", b);
    }
    buf_putc(buf, '\n');
}

static void aspect(const struct compare *c, const char *name,
                   const struct trace_aspect *a, struct buf *buf)
{
    char place[COMPARE_LINE_SIZE];
    char n[2][TEXT_NUMBER_SIZE];

    if (a->compared == 0) {
        compare_line(buf, name, "not recorded");
    } else if (a->different == 0) {
        compare_line_format(buf, name, "equal (%s)", text_number(a->compared, n[0]));
    } else {
        compare_where(c, &c->a.trace, a->first, place, sizeof place);
        compare_line_format(buf, name, "different: %s of %s, first %s%s",
                            text_number(a->different, n[0]),
                            text_number(a->compared, n[1]), place,
                            a->reordered ? "; the same ones in another order" : "");
    }
}

static void texts(struct buf *buf, const char *name, const char *a, const char *b)
{
    if (!*a || !*b) {
        compare_line(buf, name,
                     *a || *b ? "only one run said it" : "neither run said it");
    } else if (strcmp(a, b) == 0) {
        compare_line_format(buf, name, "equal: %s", a);
    } else {
        compare_line_format(buf, name, "A  %s", a);
        compare_line_format(buf, "", "B  %s", b);
    }
}

static void environment(const struct compare *c, struct buf *buf)
{
    if (strcmp(c->a.run.environment, c->b.run.environment) == 0 || !c->a.facts ||
        !c->b.facts) {
        texts(buf, "Environment", c->a.environment.title, c->b.environment.title);
        return;
    }
    compare_line_format(buf, "Environment", "different in %d fact%s", c->fact_count,
                        c->fact_count == 1 ? "" : "s");
    for (int i = 0; i < c->fact_count; i++) {
        const struct compare_fact *f = &c->facts[i];

        compare_line_format(buf, "", "%s: A %s, B %s", f->name, *f->a ? f->a : "-",
                            *f->b ? f->b : "-");
    }
}

static void result_line(struct buf *buf, const char *name, const struct run_record *run)
{
    char sum[DECIMAL_SIZE];
    char loss[DECIMAL_SIZE];

    decimal_from_bits(run->weight_sum, sum);
    decimal_from_bits(run->loss, loss);
    compare_line_format(buf, "", "%s  %s  %s%s%s", name, run->digest, sum[0] ? sum : "-",
                        loss[0] ? " | " : "", loss);
}

static void results(const struct compare *c, struct buf *buf)
{
    static const char *const words[] = { [COMPARISON_RESULTS_EQUAL] = "equal",
                                         [COMPARISON_RESULTS_DIFFERENT] = "different",
                                         [COMPARISON_RESULTS_UNKNOWN] = "not known" };

    compare_line_format(buf, "Results", "%s (digest, sum of weights | final loss)",
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
    headline(c, buf);
    runs(c, buf);
    if (c->has_traces) {
        compare_records_text(c, buf);
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
