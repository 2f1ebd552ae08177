#include "db/upkeep/marks.h"

#include <string.h>

#include "db/cells_rows.h"
#include "db/tx.h"

/* Part of each fingerprint: what was found right by other rules has to be summed up
 * again.  Grows whenever db/upkeep/recompute.c sees more than before. */
#define RULES "5"

/* One text of all that a cell's rows say of its runs; ?1 is the cell. */
#define ROWS_OF(table, columns)                                                          \
    " || ';' || ifnull((SELECT group_concat(json_array(" columns                         \
    "), '') FROM"                                                                        \
    " (SELECT * FROM " table " WHERE cell = ?1 ORDER BY 2, 3)), '')"
#define CELL_TEXT                                                                        \
    "'" RULES                                                                            \
    "' || json_array(c.case_key, c.environment, c.subject, c.subject_name,"              \
    " c.has_reference" CELL_INTEGERS(CELL_COLUMN) CELL_TEXTS(CELL_COLUMN) ")" ROWS_OF(   \
        "cell_digest",                                                                   \
        "digest, runs, iterations, run, weight_sum, loss,"                               \
        " first_runs, only_runs, checked")                                               \
        ROWS_OF("cell_device",                                                           \
                "device, options, state, runs, digest, last_ms, last_digest,"            \
                " varied_ms, iterations, first_ms, first_run, last_run, mode,"           \
                " mode_runs")                                                            \
            ROWS_OF("cell_device_digest",                                                \
                    "device, options, state, digest, runs, iterations,"                  \
                    " only_runs")                                                        \
                ROWS_OF("cell_alike", "options, runs, varied, varied_ms")                \
                    ROWS_OF("cell_time", "bucket, runs")                                 \
                        ROWS_OF("cell_algorithm", "algorithm, runs")

enum err_code marks_read(struct tx *tx, int64_t cell, int64_t since_ms,
                         struct mark *ret_mark, bool *ret_verified, struct err *err)
{
    struct query q;

    *ret_mark = (struct mark){ .cell = cell };
    *ret_verified = false;
    query_begin(&q, tx,
                "SELECT " CELL_TEXT
                ", ifnull(h.changes, 0), v.fingerprint, v.at_ms >= ?2"
                " AND v.changes = ifnull(h.changes, 0) FROM cell c"
                " LEFT JOIN cell_changes h ON h.cell = c.id"
                " LEFT JOIN cell_verified v ON v.cell = c.id WHERE c.id = ?1",
                cell, since_ms);
    if (query_step(&q)) {
        const char *text = query_borrow_text(&q);
        const char *stored;

        digest_hex(digest_bytes(text, strlen(text)), ret_mark->fingerprint);
        ret_mark->changes = query_take_int(&q);
        stored = query_borrow_text(&q);
        *ret_verified =
            strcmp(stored, ret_mark->fingerprint) == 0 && query_take_int(&q) == 1;
    }
    return query_end(&q, err);
}

enum err_code marks_store(struct tx *tx, const struct mark *marks, int count,
                          int64_t now_ms, struct err *err)
{
    for (int i = 0; i < count; i++) {
        if (tx_run(tx, err,
                   "INSERT OR REPLACE INTO cell_verified (cell, changes, fingerprint,"
                   " at_ms) VALUES (?, ?, ?, ?)",
                   marks[i].cell, marks[i].changes, marks[i].fingerprint,
                   now_ms) != ERR_OK) {
            return err->code;
        }
    }
    return ERR_OK;
}
