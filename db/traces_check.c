#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/trace/trace_pack.h"
#include "db/runs_trace.h"
#include "db/tx.h"

struct check {
    void (*report)(void *arg, const char *line);
    void *arg;
    int64_t damaged;
};

static void fault(struct check *c, int64_t number, const char *what)
{
    char line[160];

    snprintf(line, sizeof line, "trace %" PRId64 ": %s", number, what);
    c->report(c->arg, line);
    c->damaged++;
}

/* Of a query whose next columns are how many runs the trace has, and the least and the
 * most that they say of its records, kept and dropped. */
static void check_runs(struct check *c, struct query *q, int64_t number,
                       const struct trace *trace)
{
    const int64_t counts[] = { trace->count, trace->count, trace->dropped,
                               trace->dropped };

    if (query_take_int(q) == 0) {
        fault(c, number, "it belongs to no run");
        return;
    }
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        if (query_take_int(q) != counts[i]) {
            fault(c, number, "its runs say other numbers of records");
            return;
        }
    }
}

/* Of a query whose next columns are the trace's digest, length and bytes, then those of
 * check_runs. */
static void check_trace(struct check *c, struct query *q, int64_t number)
{
    char stored[DIGEST_HEX_SIZE];
    char digest[DIGEST_HEX_SIZE];
    struct trace trace;
    struct err err;
    size_t length;
    const void *bytes;

    query_take_text(q, stored, sizeof stored);
    length = (size_t)query_take_int(q);
    bytes = query_borrow_blob(q);
    if (trace_unpack(bytes, length, &trace, &err) != ERR_OK) {
        fault(c, number, "its bytes are not those of a trace");
        return;
    }
    digest_hex(trace_packed_digest(bytes, length), digest);
    if (strcmp(stored, digest) != 0) {
        fault(c, number, "its digest is not that of its bytes");
    }
    check_runs(c, q, number, &trace);
    trace_release(&trace);
}

enum err_code traces_check(struct tx *tx, void (*report)(void *arg, const char *line),
                           void *arg, int64_t *ret_traces, int64_t *ret_damaged,
                           struct err *err)
{
    struct check c = { .report = report, .arg = arg };
    struct query q;

    *ret_traces = 0;
    query_begin(&q, tx,
                "SELECT t.number, t.digest, length(t.packed), t.packed, count(r.run),"
                " min(r.records), max(r.records), min(r.dropped), max(r.dropped)"
                " FROM trace t LEFT JOIN run_trace r ON r.trace = t.number"
                " GROUP BY t.number");
    while (query_step(&q)) {
        int64_t number = query_take_int(&q);

        check_trace(&c, &q, number);
        ++*ret_traces;
    }
    *ret_damaged = c.damaged;
    return query_end(&q, err);
}
