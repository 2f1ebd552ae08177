/* Drift of many cases: their order, groups, counts and headline. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/evidence/classes.h"
#include "daemon/evidence/drift.h"

/* Order, groups, counts. */

static int compare_groups(const struct drift_case *a, const struct drift_case *b)
{
    int order = (int)a->kind - (int)b->kind;

    order = order ? order : strcmp(a->key.workload, b->key.workload);
    order = order ? order : (int)a->subject - (int)b->subject;
    order = order ? order : strcmp(a->subject_name, b->subject_name);
    order = order ? order : strcmp(a->from.algorithm, b->from.algorithm);
    return order ? order : strcmp(a->to.algorithm, b->to.algorithm);
}

static int compare_cases(const void *a, const void *b)
{
    const struct drift_case *left = a;
    const struct drift_case *right = b;
    int order = compare_groups(left, right);

    return order ? order : classes_compare_keys(&left->key, &right->key);
}

void drift_sort(struct drift_case *cases, int count)
{
    if (count > 0) {
        qsort(cases, (size_t)count, sizeof *cases, compare_cases);
    }
}

bool drift_same_group(const struct drift_case *a, const struct drift_case *b)
{
    return compare_groups(a, b) == 0;
}

static int by_number(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;

    return left < right ? -1 : left > right;
}

/* The median of the ratios above 1, or below. */
static double median_ratio(const struct drift_case *cases, int count, bool above,
                           int *ret_count)
{
    double *ratios = xcalloc((size_t)count + 1, sizeof *ratios);
    int n = 0;
    double median;

    for (int i = 0; i < count; i++) {
        if (cases[i].cost_changed && (cases[i].cost.median > 1) == above) {
            ratios[n++] = cases[i].cost.median;
        }
    }
    qsort(ratios, (size_t)n, sizeof *ratios, by_number);
    median = n ? ratios[(n - 1) / 2] : 1;
    free(ratios);
    *ret_count = n;
    return median;
}

struct drift_counts drift_count(const struct drift_case *cases, int count)
{
    struct drift_counts counts = { .same_bits = 0 };

    for (int i = 0; i < count; i++) {
        counts.kinds[cases[i].kind]++;
        counts.same_bits += cases[i].bits_told && cases[i].bits_same;
        counts.proven += cases[i].proven;
        counts.disagree_too +=
            cases[i].kind != DRIFT_DISAGREE_NOW && cases[i].newly_dissenting > 0;
    }
    counts.dearer_median = median_ratio(cases, count, true, &counts.dearer);
    counts.cheaper_median = median_ratio(cases, count, false, &counts.cheaper);
    return counts;
}

struct line {
    char *text;
    size_t size, length;
};

__attribute__((format(printf, 2, 3))) static void add(struct line *line,
                                                      const char *format, ...)
{
    va_list args;
    int written;

    va_start(args, format);
    written =
        vsnprintf(line->text + line->length, line->size - line->length, format, args);
    va_end(args);
    line->length += (size_t)written;
    if (line->length >= line->size) {
        line->length = line->size - 1;
    }
}

enum { NAMED_MAX = 3 };

/* ": conv_wgrad algo_1, ctc_loss ordered and 2 more" */
static void name_cases(struct line *line, const struct drift_case *cases, int count,
                       enum drift_kind kind)
{
    const struct case_key *last = NULL;
    int named = 0;
    int more = 0;

    for (int i = 0; i < count; i++) {
        const struct case_key *key = &cases[i].key;

        if (cases[i].kind != kind ||
            (last && strcmp(last->workload, key->workload) == 0 &&
             strcmp(last->variant, key->variant) == 0)) {
            continue; /* another size, dtype or seed of it */
        }
        last = key;
        if (named < NAMED_MAX) {
            add(line, "%s%s %s", named ? ", " : ": ", key->workload, key->variant);
            named++;
        } else {
            more++;
        }
    }
    if (more) {
        add(line, " and %d more", more);
    }
}

void drift_headline(const struct drift_case *cases, int count,
                    char ret_text[DRIFT_HEADLINE_SIZE])
{
    static const enum drift_kind named[] = { DRIFT_BITS, DRIFT_VARIES_NOW,
                                             DRIFT_DISAGREE_NOW, DRIFT_FAILS_NOW,
                                             DRIFT_ALGORITHM };
    static const enum drift_kind counted[] = { DRIFT_VERDICT, DRIFT_DISAPPEARED,
                                               DRIFT_APPEARED, DRIFT_UNKNOWN };
    struct drift_counts counts = drift_count(cases, count);
    struct line line = { ret_text, DRIFT_HEADLINE_SIZE, 0 };

    add(&line, "%d case%s same bits", counts.same_bits, counts.same_bits == 1 ? "" : "s");
    if (counts.proven < counts.same_bits) {
        add(&line, " (%d of them not proven reproducible)",
            counts.same_bits - counts.proven);
    }
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) {
        if (counts.kinds[named[i]]) {
            add(&line, "; %d %s", counts.kinds[named[i]],
                named[i] == DRIFT_BITS ? "changed" : drift_kind_words(named[i]));
            name_cases(&line, cases, count, named[i]);
        }
    }
    if (counts.disagree_too) {
        add(&line, "; in %d of these devices disagree now, too", counts.disagree_too);
    }
    if (counts.dearer) {
        add(&line, "; %d cost more (median +%.0f %%)", counts.dearer,
            100 * (counts.dearer_median - 1));
    }
    if (counts.cheaper) {
        add(&line, "; %d cost less (median -%.0f %%)", counts.cheaper,
            100 * (1 - counts.cheaper_median));
    }
    for (size_t i = 0; i < sizeof counted / sizeof counted[0]; i++) {
        if (counts.kinds[counted[i]]) {
            add(&line, "; %d %s", counts.kinds[counted[i]], drift_kind_words(counted[i]));
        }
    }
}
