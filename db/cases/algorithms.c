#include "db/cases/algorithms.h"

#include "db/tx.h"

enum { SHOWN_SIZE = 400 };

enum err_code cell_algorithms_add(struct tx *tx, int64_t cell, const char *algorithm,
                                  int64_t runs, struct err *err)
{
    return algorithm[0] ? tx_run(tx, err,
                                 "INSERT INTO cell_algorithm (cell, algorithm, runs)"
                                 " VALUES (?, ?, ?) ON CONFLICT (cell, algorithm)"
                                 " DO UPDATE SET runs = runs + excluded.runs",
                                 cell, algorithm, runs)
                        : ERR_OK;
}

enum err_code cell_algorithms_count(struct tx *tx, int64_t cell, int64_t *ret_count,
                                    struct err *err)
{
    return tx_fetch_int(tx, ret_count, err,
                        "SELECT count(*) FROM cell_algorithm WHERE cell = ?", cell);
}

#define AS_TEXT(from) "(SELECT ifnull(group_concat(what, '; '), '') FROM (" from "))"

enum err_code cell_algorithms_recompute(struct tx *tx, int64_t cell,
                                        void (*differs)(void *arg, const char *what,
                                                        const char *stored,
                                                        const char *fresh),
                                        void *arg, struct err *err)
{
    struct query q;

    query_begin(
        &q, tx,
        "WITH fresh (what) AS (SELECT sum(runs) || ' ' || algorithm FROM ("
        " SELECT algorithm, count(*) AS runs FROM run WHERE cell = ?1"
        " AND outcome = 'completed' GROUP BY 1 UNION ALL"
        " SELECT algorithm, runs FROM run_summary WHERE cell = ?1"
        " AND NOT refused) WHERE ifnull(algorithm, '') <> '' GROUP BY algorithm),"
        " stored (what) AS (SELECT runs || ' ' || algorithm FROM cell_algorithm"
        " WHERE cell = ?1)"
        " SELECT " AS_TEXT(
            "SELECT * FROM stored EXCEPT SELECT * FROM fresh") ", " AS_TEXT("SELECT * "
                                                                            "FROM fresh "
                                                                            "EXCEPT "
                                                                            "SELECT * "
                                                                            "FROM "
                                                                            "stored"),
        cell);
    if (query_step(&q)) {
        char stored[SHOWN_SIZE], fresh[SHOWN_SIZE];

        query_take(&q, stored, fresh);
        if (stored[0] || fresh[0]) {
            differs(arg, "algorithms of the runs", stored, fresh);
        }
    }
    return query_end(&q, err);
}
