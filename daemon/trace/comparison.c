#include "daemon/trace/comparison.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

static enum comparison_verdict judge_parting(const struct comparison_side *a,
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
    switch (comparison_results(a, b)) {
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
    switch (traces->parting) {
    case TRACE_PARTS_IN_RECORDS:
        return judge_parting(a, b, traces, ret_reason);
    case TRACE_PARTS_IN_LENGTH:
        return judge_length(a, b, traces, ret_reason);
    case TRACE_PARTS_NOWHERE:
        break;
    }
    return judge_agreement(a, b, traces, ret_reason);
}
