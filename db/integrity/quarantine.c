#include "db/integrity/quarantine.h"

#include <inttypes.h>
#include <stdio.h>

#include "daemon/base/mem.h"
#include "db/tx.h"

enum err_code quarantine_words(struct tx *tx, int64_t cell,
                               char ret_words[DAMAGED_WORDS_SIZE], struct err *err)
{
    struct query q;
    int64_t count = 0;
    char reason[DAMAGED_WORDS_SIZE] = "";

    ret_words[0] = '\0';
    query_begin(&q, tx,
                "SELECT reason, (SELECT count(*) FROM quarantine WHERE cell = ?1)"
                " FROM quarantine WHERE cell = ?1 ORDER BY run LIMIT 1",
                cell);
    if (query_step(&q)) {
        query_take(&q, reason, &count);
    }
    if (count > 1) {
        snprintf(ret_words, DAMAGED_WORDS_SIZE, "%.110s, and %" PRId64 " more", reason,
                 count - 1);
    } else {
        copy_text(ret_words, DAMAGED_WORDS_SIZE, reason);
    }
    return query_end(&q, err);
}

enum err_code quarantine_put(struct tx *tx, int64_t cell, const char *run,
                             const char *reason, int64_t now_ms, struct err *err)
{
    return tx_run(tx, err,
                  "INSERT INTO quarantine (cell, run, reason, found_ms)"
                  " SELECT id, ?, ?, ? FROM cell WHERE id = ? ON CONFLICT DO NOTHING",
                  run, reason, now_ms, cell);
}

enum err_code quarantine_run(struct tx *tx, const char *id, int64_t cell, int64_t now_ms,
                             struct err *err)
{
    char reason[DAMAGED_WORDS_SIZE];

    snprintf(reason, sizeof reason, "run %s is not what was stored", id);
    return quarantine_put(tx, cell, id, reason, now_ms, err);
}

enum err_code quarantine_open(struct tx *tx, int64_t *ret_count,
                              char ret_words[DAMAGED_WORDS_SIZE], struct err *err)
{
    char words[DAMAGED_WORDS_SIZE] = "";
    enum err_code code;

    *ret_count = 0;
    code = tx_fetch(tx, TX_TARGETS(ret_count, words), err,
                    "SELECT count(*) OVER (), format('cell %d: %s', cell, reason)"
                    " FROM quarantine WHERE accepted_ms IS NULL ORDER BY cell, run"
                    " LIMIT 1");
    copy_text(ret_words, DAMAGED_WORDS_SIZE, words);
    return code;
}

enum err_code quarantine_accept(struct tx *tx, int64_t now_ms, int64_t *ret_count,
                                struct err *err)
{
    if (tx_run(tx, err, "UPDATE quarantine SET accepted_ms = ? WHERE accepted_ms IS NULL",
               now_ms) != ERR_OK) {
        return err->code;
    }
    *ret_count = sqlite3_changes64(tx->db);
    return ERR_OK;
}
