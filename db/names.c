#include "db/names.h"

#include "db/tx.h"

/* ?1: the workload of a variant, NULL for any. */
#define OF_WORKLOAD " (?1 IS NULL OR workload = ?1)"

static const char *const has[] = {
    [NAME_WORKLOAD] = "SELECT 1 FROM case_key WHERE ?1 IS NULL AND workload = ?2 LIMIT 1",
    [NAME_VARIANT] =
        ("SELECT 1 FROM case_key WHERE" OF_WORKLOAD " AND variant = ?2 LIMIT 1"),
    [NAME_DEVICE] = "SELECT 1 FROM device WHERE ?1 IS NULL AND id = ?2",
    [NAME_JOB] = "SELECT 1 FROM job WHERE ?1 IS NULL AND id = ?2",
};

static const char *const each[] = {
    [NAME_WORKLOAD] = "SELECT DISTINCT workload FROM case_key WHERE ?1 IS NULL",
    [NAME_VARIANT] = ("SELECT DISTINCT variant FROM case_key WHERE" OF_WORKLOAD),
    [NAME_DEVICE] = "SELECT id FROM device WHERE ?1 IS NULL",
};

enum err_code names_has(struct tx *tx, enum name_kind kind, const char *of,
                        const char *name, bool *ret_has, struct err *err)
{
    struct query q;

    query_begin(&q, tx, has[kind], or_null(of), name);
    *ret_has = query_step(&q);
    return query_end(&q, err);
}

enum err_code names_list(struct tx *tx, enum name_kind kind, const char *of,
                         struct choices *ret_choices, struct err *err)
{
    struct query q;

    query_begin(&q, tx, each[kind], or_null(of));
    while (query_step(&q)) {
        choices_add(ret_choices, query_borrow_text(&q));
    }
    return query_end(&q, err);
}
