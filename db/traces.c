#include "db/traces.h"

#include <inttypes.h>
#include <stdio.h>

#include "daemon/base/mem.h"
#include "daemon/trace/trace_pack.h"
#include "db/tx.h"

/* The number of the trace that is PACKED, 0 where there is none.  The digest finds it,
 * its bytes decide. */
static enum err_code find(struct tx *tx, const char *digest, const struct buf *packed,
                          int64_t *ret_number, struct err *err)
{
    *ret_number = 0;
    return tx_fetch_int(tx, ret_number, err,
                        "SELECT number FROM trace WHERE digest = ? AND packed = ?",
                        digest, tx_blob(packed->data, (int64_t)packed->length));
}

static enum err_code add(struct tx *tx, const char *digest, const struct buf *packed,
                         int64_t *ret_number, struct err *err)
{
    return tx_fetch_int(
        tx, ret_number, err,
        "INSERT INTO trace (digest, packed) VALUES (?, ?) RETURNING number", digest,
        tx_blob(packed->data, (int64_t)packed->length));
}

static enum err_code place(struct tx *tx, const struct trace *trace, int64_t *ret_number,
                           struct err *err)
{
    struct buf packed = BUF_INIT;
    char digest[DIGEST_HEX_SIZE];
    enum err_code code;

    trace_pack(trace, &packed);
    digest_hex(trace_packed_digest(packed.data, packed.length), digest);
    code = find(tx, digest, &packed, ret_number, err);
    if (code == ERR_OK && *ret_number == 0) {
        code = add(tx, digest, &packed, ret_number, err);
    }
    buf_release(&packed);
    return code;
}

enum err_code runs_store_trace(struct tx *tx, const char *id, const struct trace *trace,
                               struct err *err)
{
    int64_t number;

    if (!trace) {
        return ERR_OK;
    }
    if (place(tx, trace, &number, err) != ERR_OK ||
        tx_run(tx, err,
               "INSERT INTO run_trace (run, trace, records, dropped, sum)"
               " VALUES (?1, ?2, ?3, ?4, reprod_sum(?1, ?2, ?3, ?4))",
               id, number, trace->count, trace->dropped) != ERR_OK) {
        return err_wrap(err, "trace of run %s", id);
    }
    return ERR_OK;
}

/* Of a query whose next columns are length and bytes. */
static enum err_code take_trace(struct query *q, struct trace *ret_trace, struct err *err)
{
    size_t length = (size_t)query_take_int(q);

    return trace_unpack(query_borrow_blob(q), length, ret_trace, err);
}

enum err_code traces_get(struct tx *tx, int64_t number, struct trace *ret_trace,
                         struct err *err)
{
    enum err_code code = ERR_NOT_FOUND;
    struct query q;

    trace_init(ret_trace);
    query_begin(&q, tx, "SELECT length(packed), packed FROM trace WHERE number = ?",
                number);
    if (query_step(&q)) {
        code = take_trace(&q, ret_trace, err);
    }
    if (query_end(&q, err) != ERR_OK) {
        trace_release(ret_trace);
        return err->code;
    }
    if (code == ERR_NOT_FOUND) {
        err_set(err, ERR_NOT_FOUND, "no trace %" PRId64, number);
    }
    return code == ERR_OK ? ERR_OK : err_wrap(err, "trace %" PRId64, number);
}

enum err_code runs_trace(struct tx *tx, const char *id, struct trace *ret_trace,
                         int64_t *ret_number, struct err *err)
{
    int64_t number = 0;

    trace_init(ret_trace);
    if (tx_fetch_int(tx, &number, err, "SELECT trace FROM run_trace WHERE run = ?", id) !=
        ERR_OK) {
        return err->code;
    }
    if (!number) {
        return err_set(err, ERR_NOT_FOUND, "run %s has no trace", id);
    }
    if (ret_number) {
        *ret_number = number;
    }
    return traces_get(tx, number, ret_trace, err);
}

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
            fault(c, number, "it has other numbers of records than its runs say");
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
