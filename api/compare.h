/* Two runs side by side: what is known of both, what their traces show, and the verdict.
 * GET /v1/compare renders it. */
#ifndef API_COMPARE_H
#define API_COMPARE_H

#include <stdbool.h>

#include "daemon/base/err.h"
#include "daemon/base/json_out.h"
#include "daemon/jobs/device.h"
#include "daemon/jobs/run.h"
#include "daemon/trace/comparison.h"

struct tx;

struct compare_run {
    struct run_record run;
    struct trace trace; /* empty if it has none */
    struct environment environment;
    char *facts; /* of its environment, a JSON object; NULL: it never said */
    char probes[RUN_OPTIONS_SIZE]; /* what it was asked to record, as options; "": nothing
                                    */
    struct comparison_side side;
};

/* A fact of which the two say different things; "" where one says nothing. */
struct compare_fact {
    char *name, *a, *b;
};

struct compare {
    struct compare_run a, b;
    enum comparison_verdict verdict;
    char reason[COMPARISON_REASON_SIZE];
    bool has_traces; /* they were compared; then the next four are filled */
    struct trace_comparison traces;
    struct trace_aspect variables, data, rng;
    int32_t *places; /* in a.trace, those that differ, by their first difference */
    int place_count;
    struct compare_fact *facts; /* of the environment, those that differ */
    int fact_count;
};

/* Reads both runs.  ERR_NOT_FOUND names the one that is not there. */
enum err_code compare_load(struct tx *tx, const char *a, const char *b,
                           struct compare *ret_compare, struct err *err);
void compare_release(struct compare *compare);

void compare_json(const struct compare *compare, struct json_out *out);
void compare_text(const struct compare *compare, struct buf *buf);

#endif
