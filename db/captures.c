#include "db/captures.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "db/tx.h"
#include "workloads/instruments/digest.h"

static const char *role_name(bool is_out)
{
    return is_out ? "out" : "in";
}

static void tensor_digest(const struct captured_tensor *tensor,
                          char ret_hex[DIGEST_HEX_SIZE])
{
    char *what = xasprintf("%s %s %" PRId64, tensor->dtype, tensor->shape, tensor->total);
    const struct digest parts[] = {
        digest_bytes(what, strlen(what)),
        digest_bytes(tensor->data, (uint64_t)tensor->bytes),
    };

    digest_hex(digest_combine(parts, 2), ret_hex);
    free(what);
}

static enum err_code store_blob(struct tx *tx, const struct captured_tensor *tensor,
                                const char *digest, struct err *err)
{
    return tx_run(tx, err,
                  "INSERT INTO tensor_blob (digest, dtype, shape, total, bytes, data)"
                  " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                  digest, tensor->dtype, tensor->shape, tensor->total, tensor->bytes,
                  tx_blob(tensor->bytes ? tensor->data : "", tensor->bytes));
}

static enum err_code store_tensor(struct tx *tx, const char *run,
                                  const struct captured_tensor *tensor, struct err *err)
{
    char digest[DIGEST_HEX_SIZE];

    tensor_digest(tensor, digest);
    if (store_blob(tx, tensor, digest, err) != ERR_OK) {
        return err->code;
    }
    return tx_run(tx, err,
                  "INSERT INTO run_tensor (run, role, seq, name, blob, sum)"
                  " SELECT ?1, ?2, ?3, ?4, number, reprod_sum(?1, ?2, ?3, ?4, number)"
                  " FROM tensor_blob WHERE digest = ?5",
                  run, role_name(tensor->is_out), tensor->index, tensor->name, digest);
}

/* Whether RUN was asked to capture, its job is not cancelled, and there is room. */
static enum err_code may_store(struct tx *tx, const struct run_record *run, bool *ret_may,
                               struct err *err)
{
    *ret_may = false;
    return tx_fetch_int(
        tx, ret_may, err,
        "SELECT json_extract(nullif(i.options, ''), '$.capture') IS NOT NULL"
        " AND (SELECT ifnull(sum(bytes), 0) FROM tensor_blob) < ?"
        " AND j.state <> 'cancelled'"
        " FROM run r JOIN job j ON j.number = r.job"
        " JOIN job_item i ON i.job = r.job AND i.seq = r.item WHERE r.id = ?",
        CAPTURES_BYTES_MAX, run->id);
}

enum err_code captures_store(struct tx *tx, const struct run_record *run,
                             const struct run_result *result, struct err *err)
{
    bool may = false;

    if (result->tensor_count == 0 || run->outcome != OUTCOME_COMPLETED) {
        return ERR_OK;
    }
    if (may_store(tx, run, &may, err) != ERR_OK) {
        return err->code;
    }
    for (int i = 0; i < result->tensor_count && may; i++) {
        if (store_tensor(tx, run->id, &result->tensors[i], err) != ERR_OK) {
            return err_wrap(err, "tensor %d of run %s", i, run->id);
        }
    }
    return ERR_OK;
}

enum err_code captures_each(struct tx *tx, const char *id,
                            void (*visit)(void *arg,
                                          const struct captured_tensor *tensor),
                            void *arg, struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT t.role = 'out', t.seq, t.name, b.dtype, b.total, b.bytes,"
                " b.shape, b.data FROM run_tensor t JOIN tensor_blob b"
                " ON b.number = t.blob WHERE t.run = ? ORDER BY t.role, t.seq",
                id);
    while (query_step(&q)) {
        struct captured_tensor tensor = { .is_out = query_take_int(&q) };

        query_take(&q, &tensor.index, tensor.name, tensor.dtype, &tensor.total,
                   &tensor.bytes);
        tensor.shape = (char *)query_borrow_text(&q);
        tensor.data = (void *)query_borrow_blob(&q);
        visit(arg, &tensor);
    }
    return query_end(&q, err);
}

enum err_code captures_drop(struct tx *tx, int64_t job, const char *const keep[2],
                            struct err *err)
{
    if (tx_run(tx, err,
               "DELETE FROM run_tensor WHERE run NOT IN (?, ?)"
               " AND run IN (SELECT id FROM run WHERE job = ?)",
               keep[0], keep[1], job) != ERR_OK) {
        return err->code;
    }
    return tx_run(tx, err,
                  "DELETE FROM tensor_blob WHERE NOT EXISTS"
                  " (SELECT 1 FROM run_tensor WHERE blob = number)");
}
