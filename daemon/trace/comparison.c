#include "daemon/trace/comparison.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/trace/trace_reads.h"

const char *trace_kind_name(enum trace_kind kind)
{
    static const char *const names[] = { [TRACE_SAME] = "equal",
                                         [TRACE_ABSORBED] = "absorbed",
                                         [TRACE_INFECTED] = "infected",
                                         [TRACE_ROOT] = "root" };

    return names[kind];
}

/* For each place of B, the index of its name in A, or -1. */
static int32_t *map_places(const struct trace *a, const struct trace *b)
{
    int32_t *map = xcalloc((size_t)b->place_count + 1, sizeof *map);

    for (int i = 0; i < b->place_count; i++) {
        map[i] = trace_find_place(a, b->places[i]);
    }
    return map;
}

static enum trace_kind kind_of(const struct trace_record *x, const struct trace_record *y,
                               bool reads_same)
{
    if (digest_equal(x->out, y->out)) {
        return digest_equal(x->in, y->in) ? TRACE_SAME : TRACE_ABSORBED;
    }
    return reads_same ? TRACE_ROOT : TRACE_INFECTED;
}

static void count(struct trace_comparison *c, int32_t place, enum trace_kind kind)
{
    struct trace_place_comparison *p = &c->places[place];

    c->same += kind == TRACE_SAME;
    c->absorbed += kind == TRACE_ABSORBED;
    c->infected += kind == TRACE_INFECTED;
    c->roots += kind == TRACE_ROOT;
    p->absorbed += kind == TRACE_ABSORBED;
    p->infected += kind == TRACE_INFECTED;
    p->roots += kind == TRACE_ROOT;
    p->compared++;
    if (kind != TRACE_SAME) {
        p->first = p->first < 0 ? c->compared : p->first;
        c->first = c->first < 0 ? c->compared : c->first;
    }
    if (kind == TRACE_ROOT) {
        p->first_root = p->first_root < 0 ? c->compared : p->first_root;
        c->root = c->root < 0 ? c->compared : c->root;
    }
    c->kinds[c->compared++] = (unsigned char)kind;
}

static bool same_step(const struct trace_record *x, const struct trace_record *y)
{
    return x->iteration == y->iteration && x->step == y->step;
}

void trace_compare(const struct trace *a, const struct trace *b,
                   struct trace_comparison *ret_comparison)
{
    struct trace_comparison c = { .first = -1, .root = -1 };
    int64_t both = a->count < b->count ? a->count : b->count;
    int32_t *map = map_places(a, b);
    struct trace_reads reads_a, reads_b;

    trace_reads_init(&reads_a, a);
    trace_reads_init(&reads_b, b);
    c.kinds = xcalloc((size_t)both + 1, sizeof *c.kinds);
    c.places = xcalloc((size_t)a->place_count + 1, sizeof *c.places);
    for (int i = 0; i < a->place_count; i++) {
        c.places[i].first = c.places[i].first_root = -1;
    }
    for (int64_t i = 0; i < both; i++) {
        const struct trace_record *x = &a->records[i];
        const struct trace_record *y = &b->records[i];

        if (!same_step(x, y) || x->place != map[y->place]) {
            c.structure = TRACE_DIVERGES_IN_RECORDS;
            break;
        }
        c.steps += i == 0 || !same_step(x, x - 1);
        count(&c, x->place,
              kind_of(
                  x, y,
                  digest_equal(trace_reads_next(&reads_a), trace_reads_next(&reads_b))));
    }
    if (c.structure == TRACE_DIVERGES_NOWHERE && a->count != b->count) {
        c.structure = TRACE_DIVERGES_IN_LENGTH;
    }
    trace_reads_release(&reads_a);
    trace_reads_release(&reads_b);
    free(map);
    *ret_comparison = c;
}

void trace_comparison_release(struct trace_comparison *comparison)
{
    free(comparison->kinds);
    free(comparison->places);
    memset(comparison, 0, sizeof *comparison);
}

static int compare_digests(const void *a, const void *b)
{
    const struct digest *x = a;
    const struct digest *y = b;

    return x->hi != y->hi ? (x->hi > y->hi) - (x->hi < y->hi)
                          : (x->lo > y->lo) - (x->lo < y->lo);
}

/* Whether X and Y, COUNT each, are the same except for their order.  Sorts both. */
static bool same_set(struct digest *x, struct digest *y, int64_t n)
{
    qsort(x, (size_t)n, sizeof *x, compare_digests);
    qsort(y, (size_t)n, sizeof *y, compare_digests);
    for (int64_t i = 0; i < n; i++) {
        if (!digest_equal(x[i], y[i])) {
            return false;
        }
    }
    return true;
}

struct trace_aspect trace_compare_role(const struct trace *a, const struct trace *b,
                                       const struct trace_comparison *comparison,
                                       enum trace_role role)
{
    struct trace_aspect aspect = { .first = -1 };
    bool *wanted = xcalloc((size_t)a->place_count + 1, sizeof *wanted);
    struct digest *x = xcalloc((size_t)comparison->compared + 1, sizeof *x);
    struct digest *y = xcalloc((size_t)comparison->compared + 1, sizeof *y);

    for (int i = 0; i < a->place_count; i++) {
        wanted[i] = trace_place_role(a->places[i]) == role;
    }
    for (int64_t i = 0; i < comparison->compared; i++) {
        int32_t place = a->records[i].place;

        if (!wanted[place]) {
            continue;
        }
        wanted[place] = role != TRACE_ROLE_VARIABLE;
        x[aspect.compared] = a->records[i].out;
        y[aspect.compared++] = b->records[i].out;
        if (!digest_equal(a->records[i].out, b->records[i].out)) {
            aspect.first = aspect.different++ ? aspect.first : i;
        }
    }
    aspect.reordered = aspect.different > 0 && same_set(x, y, aspect.compared);
    free(wanted);
    free(x);
    free(y);
    return aspect;
}

const char *comparison_verdict_name(enum comparison_verdict verdict)
{
    static const char *const names[] = {
#define X(verdict, name) [verdict] = (name),
        COMPARISON_MAP(X)
#undef X
    };

    return names[verdict];
}

__attribute__((format(printf, 3, 4))) static enum comparison_verdict
conclude(char *ret_reason, enum comparison_verdict verdict, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(ret_reason, COMPARISON_REASON_SIZE, format, args);
    va_end(args);
    return verdict;
}

static bool is_complete(const struct comparison_side *side)
{
    return side->finished && side->outcome == OUTCOME_COMPLETED;
}

enum comparison_results comparison_results(const struct comparison_side *a,
                                           const struct comparison_side *b)
{
    if (!is_complete(a) || !is_complete(b)) {
        return COMPARISON_RESULTS_UNKNOWN;
    }
    if (strcmp(a->digest, b->digest) != 0 ||
        (a->iterations == b->iterations && a->distinct_digests != b->distinct_digests)) {
        return COMPARISON_RESULTS_DIFFERENT;
    }
    return a->distinct_digests == 1 && b->distinct_digests == 1
               ? COMPARISON_RESULTS_EQUAL
               : COMPARISON_RESULTS_UNKNOWN;
}

/* Why two runs were not to compute, or to record, the same; NULL: they were. */
static const char *asked_otherwise(const struct comparison_side *a,
                                   const struct comparison_side *b)
{
    if (strcmp(a->key->variant, b->key->variant) != 0) {
        return "they are of different variants";
    }
    if (a->key->version != b->key->version) {
        return "they are of different versions of the workload";
    }
    if (a->iterations != b->iterations) {
        return "they have different numbers of iterations";
    }
    return strcmp(a->probes, b->probes) != 0 ? "they were probed differently" : NULL;
}

bool comparison_fit(const struct comparison_side *a, const struct comparison_side *b,
                    char ret_reason[COMPARISON_REASON_SIZE])
{
    const struct {
        const char *what, *a, *b;
    } texts[] = { { "workloads", a->key->workload, b->key->workload },
                  { "sizes", a->key->size, b->key->size },
                  { "dtypes", a->key->dtype, b->key->dtype } };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (strcmp(texts[i].a, texts[i].b) != 0) {
            conclude(ret_reason, COMPARISON_NOT_COMPARABLE,
                     "they are of different %s: A of %s, B of %s", texts[i].what,
                     texts[i].a, texts[i].b);
            return false;
        }
    }
    if (!a->finished || !b->finished) {
        conclude(ret_reason, COMPARISON_NOT_COMPARABLE, "%s not finished yet",
                 a->finished   ? "B has"
                 : b->finished ? "A has"
                               : "both have");
        return false;
    }
    if (!a->trace || !b->trace) {
        conclude(ret_reason, COMPARISON_NOT_COMPARABLE, "%s no trace",
                 a->trace   ? "B has"
                 : b->trace ? "A has"
                            : "both have");
        return false;
    }
    return true;
}

/* What a record says that differs although it read the same. */
static const char *cause_of(const struct trace *trace, int64_t position)
{
    if (!trace_reads_nothing(&trace->records[position])) {
        return "equal inputs, another output";
    }
    /* never else: each role has a case (-Wswitch) */
    switch (trace_place_role(trace_place_at(trace, position))) {
    case TRACE_ROLE_DATA:
        return "the data differ";
    case TRACE_ROLE_RNG:
        return "the generator differs";
    case TRACE_ROLE_VARIABLE:
        return "the variable differs before anything was computed";
    case TRACE_ROLE_STATE:
    case TRACE_ROLE_OUTPUT:
    case TRACE_ROLE_OTHER:
        break;
    }
    return "what it reads is not recorded, so it is here or just before";
}

static enum comparison_verdict judge_difference(const struct comparison_side *a,
                                                const struct trace_comparison *c,
                                                char *ret_reason)
{
    int64_t at = c->root >= 0 ? c->root : c->first;
    const struct trace_record *r = &a->trace->records[at];
    char iteration[32] = "";

    if (a->iterations > 1) {
        snprintf(iteration, sizeof iteration, " of iteration %" PRId32, r->iteration);
    }
    return conclude(ret_reason, COMPARISON_DIFFERENT, "%s: %s, step %" PRId64 "%s: %s",
                    c->root < 0 ? "first difference" : "root cause",
                    trace_place_at(a->trace, at), r->step, iteration,
                    c->root < 0 ? "its inputs differ, and no place is seen to cause that"
                                : cause_of(a->trace, at));
}

/* One trace ends where the other goes on: nothing follows from that if it was cut. */
static enum comparison_verdict judge_length(const struct comparison_side *a,
                                            const struct comparison_side *b,
                                            const struct trace_comparison *c,
                                            char *ret_reason)
{
    bool a_ends = a->trace->count < b->trace->count;
    const struct comparison_side *shorter = a_ends ? a : b;
    const char *other = asked_otherwise(a, b);

    if (shorter->trace->dropped > 0 || !is_complete(shorter) || other) {
        return conclude(ret_reason, COMPARISON_NOT_COMPARABLE,
                        "the %" PRId64 " records that both have agree; %s ends there: %s",
                        c->compared, a_ends ? "A" : "B",
                        shorter->trace->dropped > 0 ? "the rest of it was not kept"
                        : !is_complete(shorter)     ? outcome_name(shorter->outcome)
                                                    : other);
    }
    return conclude(ret_reason, COMPARISON_DIFFERENT,
                    "the %" PRId64
                    " records that both have agree, but %s ends there and "
                    "%s goes on",
                    c->compared, a_ends ? "A" : "B", a_ends ? "B" : "A");
}

static enum comparison_verdict judge_records(const struct comparison_side *a,
                                             const struct comparison_side *b,
                                             const struct trace_comparison *c,
                                             char *ret_reason)
{
    const char *other = asked_otherwise(a, b);

    if (!other && (a->outcome == OUTCOME_INVALID || b->outcome == OUTCOME_INVALID)) {
        other = "not all that was written is valid";
    }
    return conclude(ret_reason, other ? COMPARISON_NOT_COMPARABLE : COMPARISON_DIFFERENT,
                    "%" PRId64
                    " records agree, then A has %.128s where B has "
                    "%.128s%s%s",
                    c->compared, trace_place_at(a->trace, c->compared),
                    trace_place_at(b->trace, c->compared), other ? "; " : "",
                    other ? other : "");
}

/* Every record of both agrees. */
static enum comparison_verdict judge_agreement(const struct comparison_side *a,
                                               const struct comparison_side *b,
                                               const struct trace_comparison *c,
                                               char *ret_reason)
{
    if (a->trace->dropped > 0 || b->trace->dropped > 0) {
        return conclude(ret_reason, COMPARISON_NOT_COMPARABLE,
                        "the first %" PRId64 " records agree; the rest was not kept",
                        c->compared);
    }
    if (!is_complete(a) || !is_complete(b)) {
        return conclude(ret_reason, COMPARISON_NOT_COMPARABLE,
                        "all %" PRId64 " records agree, but %s not complete", c->compared,
                        is_complete(a)   ? "B did"
                        : is_complete(b) ? "A did"
                                         : "both did");
    }
    switch (comparison_results(a, b)) { /* never else: each has a case (-Wswitch) */
    case COMPARISON_RESULTS_DIFFERENT:
        return conclude(ret_reason, COMPARISON_DIFFERENT,
                        "all %" PRId64
                        " records agree, but the results do not: the "
                        "difference is where there is no probe",
                        c->compared);
    case COMPARISON_RESULTS_UNKNOWN:
        return conclude(ret_reason, COMPARISON_NOT_COMPARABLE,
                        "all %" PRId64
                        " records agree, but the results vary within "
                        "each run",
                        c->compared);
    case COMPARISON_RESULTS_EQUAL:
        break;
    }
    return conclude(ret_reason, COMPARISON_EQUAL,
                    "all %" PRId64 " records of %" PRId64
                    " step%s agree, and the results",
                    c->compared, c->steps, c->steps == 1 ? "" : "s");
}

enum comparison_verdict comparison_judge(const struct comparison_side *a,
                                         const struct comparison_side *b,
                                         const struct trace_comparison *traces,
                                         char ret_reason[COMPARISON_REASON_SIZE])
{
    if (traces->first >= 0) {
        return judge_difference(a, traces, ret_reason);
    }
    switch (traces->structure) { /* never else: each has a case (-Wswitch) */
    case TRACE_DIVERGES_IN_RECORDS:
        return judge_records(a, b, traces, ret_reason);
    case TRACE_DIVERGES_IN_LENGTH:
        return judge_length(a, b, traces, ret_reason);
    case TRACE_DIVERGES_NOWHERE:
        break;
    }
    return judge_agreement(a, b, traces, ret_reason);
}
