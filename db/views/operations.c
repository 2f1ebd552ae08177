#include "db/views/operations.h"

#include "daemon/base/mem.h"
#include "db/tx.h"

enum err_code operations_environments(struct tx *tx, const char *framework, int limit,
                                      struct framework_environment **ret_list,
                                      int *ret_count, int *ret_left_out, struct err *err)
{
    struct query q;
    int64_t all = 0;

    *ret_list = NULL;
    *ret_count = 0;
    query_begin(&q, tx,
                "SELECT subject_name, id, n FROM (SELECT DISTINCT c.subject_name, e.id,"
                " e.first_seen_ms, e.number, count(*) OVER () AS n FROM (SELECT DISTINCT"
                " subject_name, environment FROM cell WHERE subject = 'framework'"
                " AND (?1 IS NULL OR subject_name = ?1 COLLATE NOCASE)) c"
                " JOIN environment e ON e.number = c.environment"
                " ORDER BY e.first_seen_ms DESC, e.number DESC LIMIT ?2)"
                " ORDER BY subject_name, first_seen_ms, number",
                or_null(framework ? framework : ""), limit);
    while (query_step(&q)) {
        struct framework_environment *one;

        *ret_list = xgrow(*ret_list, *ret_count, sizeof **ret_list);
        one = &(*ret_list)[(*ret_count)++];
        query_take(&q, one->framework, one->environment, &all);
    }
    *ret_left_out = (int)all - *ret_count;
    return query_end(&q, err);
}

enum err_code operations_frameworks(struct tx *tx,
                                    void (*visit)(void *arg, const char *framework),
                                    void *arg, struct err *err)
{
    struct query q;
    char name[SUBJECT_NAME_SIZE];

    query_begin(&q, tx,
                "SELECT DISTINCT subject_name FROM cell WHERE subject = 'framework'"
                " ORDER BY 1");
    while (query_step(&q)) {
        query_take(&q, name);
        visit(arg, name);
    }
    return query_end(&q, err);
}

enum err_code operations_cause(struct tx *tx, int64_t cell,
                               char ret_cause[CASE_TITLE_SIZE], struct err *err)
{
    struct query q;

    ret_cause[0] = '\0';
    query_begin(&q, tx,
                "SELECT ifnull(cause, '') FROM run INDEXED BY run_cell WHERE cell = ?"
                " AND outcome = 'unsupported' ORDER BY id DESC LIMIT 1",
                cell);
    if (query_step(&q)) {
        query_take_text(&q, ret_cause, CASE_TITLE_SIZE);
    }
    return query_end(&q, err);
}
