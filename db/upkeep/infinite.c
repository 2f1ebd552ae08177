#include "db/upkeep/infinite.h"

#include <stdlib.h>

#include "daemon/base/mem.h"
#include "db/case_keys.h"
#include "db/cells.h"
#include "db/cells_judge.h"
#include "db/inputs.h"
#include "db/jobs_progress.h"
#include "db/runs.h"
#include "db/tx.h"

struct refused {
    char id[ID_SIZE];
    int64_t cell, job, siblings, asked; /* ASKED: the siblings of its item's case */
    int item;
};

struct refused_list {
    struct refused *runs;
    int count;
};

#define INFINITE " IN ('7ff0000000000000', 'fff0000000000000')"

static enum err_code list_refused(struct tx *tx, struct refused_list *ret_list,
                                  struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT r.id, r.cell, r.job, r.item, k.siblings, a.siblings FROM run r"
                " JOIN case_key k ON k.number = r.case_key"
                " JOIN job_item i ON i.job = r.job AND i.seq = r.item"
                " JOIN case_key a ON a.number = i.case_key"
                " WHERE (r.outcome = 'completed' OR r.refused)"
                " AND (r.weight_sum" INFINITE " OR r.loss" INFINITE
                ")"
                " AND r.sum IS " RUN_SUM_R " ORDER BY r.id");
    while (query_step(&q)) {
        struct refused *run;

        ret_list->runs = xgrow(ret_list->runs, ret_list->count, sizeof *ret_list->runs);
        run = &ret_list->runs[ret_list->count++];
        query_take(&q, run->id, &run->cell, &run->job, &run->item, &run->siblings,
                   &run->asked);
    }
    return query_end(&q, err);
}

static enum err_code refuse(struct tx *tx, const struct refused *run, int64_t now_ms,
                            struct err *err)
{
    if (tx_run(tx, err,
               "UPDATE run SET outcome = 'invalid', refused = 0, cause ="
               " iif(weight_sum" INFINITE ", 'weight_sum', 'loss') ||"
               " ' is infinite: equal infinities prove nothing' WHERE id = ?",
               run->id) != ERR_OK ||
        runs_seal(tx, run->id, err) != ERR_OK ||
        jobs_recount_failed(tx, run->job, run->item, err) != ERR_OK) {
        return err->code;
    }
    return cells_rebuild(tx, run->cell, now_ms, err);
}

static enum err_code settle(struct tx *tx, int64_t siblings, int64_t now_ms,
                            struct err *err)
{
    struct inputs inputs;

    if (case_inputs_recount(tx, siblings, err) != ERR_OK ||
        case_inputs_load(tx, siblings, &inputs, err) != ERR_OK) {
        return err->code;
    }
    return case_inputs_settle(tx, siblings, &inputs, now_ms, err);
}

static enum err_code refuse_all(struct tx *tx, int64_t now_ms, struct err *err)
{
    struct refused_list list = { NULL, 0 };
    enum err_code code = list_refused(tx, &list, err);

    for (int i = 0; i < list.count && code == ERR_OK; i++) {
        code = refuse(tx, &list.runs[i], now_ms, err);
    }
    for (int i = 0; i < list.count && code == ERR_OK; i++) {
        code = settle(tx, list.runs[i].siblings, now_ms, err);
        if (code == ERR_OK && list.runs[i].asked != list.runs[i].siblings) {
            code = settle(tx, list.runs[i].asked, now_ms, err); /* it was a challenge */
        }
    }
    free(list.runs);
    return code;
}

enum err_code infinite_runs_refuse_outdated(struct tx *tx, int64_t now_ms,
                                            struct err *err)
{
    return cells_under_new_rules(tx, refuse_all, now_ms, err);
}
