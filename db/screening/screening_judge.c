#include "db/screening/screening_judge.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/id.h"
#include "daemon/base/mem.h"
#include "daemon/evidence/screening.h"
#include "daemon/evidence/verdict.h"
#include "daemon/jobs/options.h"
#include "db/dissent/device_states.h"
#include "db/screening/screening_end.h"
#include "db/tx.h"

/* An item of a screening's jobs on its device. */
struct item {
    int64_t job, seq;
    char options[RUN_OPTIONS_SIZE];
    bool is_control;
    int64_t answered, failed;
    bool is_cut;  /* it was to have more runs, and will not */
    int64_t cell; /* of its runs; 0: none is known */
};

struct items {
    struct item *list;
    int count;
};

static enum err_code load_items(struct tx *tx, int64_t screening, const char *device,
                                struct items *items, struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT i.job, i.seq, i.options, k.is_control, i.runs_answered,"
                " i.runs_failed, i.runs_answered < i.runs_wanted AND"
                " i.given_up_reason IS NULL FROM screening_job t"
                " JOIN job_item i ON i.job = t.job JOIN case_key k"
                " ON k.number = i.case_key WHERE t.screening = ? AND i.device = ?"
                " ORDER BY i.job, i.seq",
                screening, device);
    while (query_step(&q)) {
        struct item *item;

        items->list = xgrow(items->list, items->count, sizeof *items->list);
        item = &items->list[items->count++];
        *item = (struct item){ .job = query_take_int(&q) };
        query_take(&q, &item->seq, item->options, &item->is_control, &item->answered,
                   &item->failed, &item->is_cut);
    }
    return query_end(&q, err);
}

static int compare_items(const void *a, const void *b)
{
    const struct item *x = a;
    const struct item *y = b;

    return x->job != y->job   ? (x->job < y->job ? -1 : 1)
           : x->seq != y->seq ? (x->seq < y->seq ? -1 : 1)
                              : 0;
}

/* In which cell the runs of each item count: one walk over the device's runs since. */
static enum err_code find_cells(struct tx *tx, const char *device, int64_t since_ms,
                                struct items *items, struct err *err)
{
    char first[ID_SIZE];
    struct query q;

    id_first(since_ms, first);
    query_begin(&q, tx,
                "SELECT job, item, cell FROM run INDEXED BY run_device WHERE device = ?"
                " AND id >= ? AND cell IS NOT NULL AND NOT challenge",
                device, first);
    while (query_step(&q)) {
        struct item key = { .job = query_take_int(&q) };
        struct item *item;

        query_take(&q, &key.seq, &key.cell);
        item =
            bsearch(&key, items->list, (size_t)items->count, sizeof key, compare_items);
        if (item) {
            item->cell = key.cell;
        }
    }
    return query_end(&q, err);
}

/* What the device and its equals showed in a cell, under the conditions of an item. */
struct shown {
    bool dissents;         /* the device is named */
    bool measured, varied; /* the device's own completed runs */
    int64_t same, other;   /* equals that showed its one digest, or not */
    char verdict[CASE_NAME_SIZE];
};

/* Where a cell has one digest, which the device showed, all its equals showed it: there
 * may be thousands, and whether there is one is all that matters. */
#define ONE_DIGEST "c.distinct_digests = 1 AND d.device IS NOT NULL"

static enum err_code load_shown(struct tx *tx, const char *device,
                                const struct item *item, struct shown *ret,
                                struct err *err)
{
    *ret = (struct shown){ .dissents = false };
    return tx_fetch(tx,
                    TX_TARGETS(ret->verdict, &ret->dissents, &ret->measured, &ret->varied,
                               &ret->same, &ret->other),
                    err,
                    "SELECT c.verdict, EXISTS (SELECT 1 FROM cell_dissenter x"
                    " WHERE x.cell = c.id AND x.device = ?2),"
                    " d.device IS NOT NULL, d.device IS NOT NULL AND d.digest IS NULL,"
                    " iif(" ONE_DIGEST ", EXISTS (SELECT 1 FROM cell_device y"
                    " WHERE y.cell = c.id AND y.options = ?3 AND y.device <> ?2),"
                    " (SELECT count(DISTINCT y.device) FROM cell_device y"
                    " WHERE y.cell = c.id AND y.options = ?3 AND y.device <> ?2"
                    " AND y.digest = d.digest)),"
                    " iif(" ONE_DIGEST ", 0, (SELECT count(*) FROM cell_device y"
                    " WHERE y.cell = c.id"
                    " AND y.options = ?3 AND y.device <> ?2 AND y.digest IS NOT d.digest"
                    " AND y.state = " DEVICE_STATE_NOW("?2") "))"
                    " FROM cell c LEFT JOIN cell_device d ON d.cell = c.id"
                    " AND d.device = ?2 AND d.options = ?3"
                    " AND d.state = " DEVICE_STATE_NOW("?2") " WHERE c.id = ?1",
                    item->cell, device, item->options);
}

static void count_item(const struct item *item, const struct shown *s,
                       struct screening_counts *c)
{
    bool majority = s->same + 1 > s->other;

    c->cases++;
    if (s->dissents) {
        c->dissents++;
    } else if (item->failed > 0) {
        c->failed++;
    } else if (item->is_cut || item->answered == 0) {
        c->unmeasured++;
    } else if (strcmp(s->verdict, verdict_name(VERDICT_VARIES)) == 0) {
        c->varies++;
    } else if (s->same + s->other == 0) {
        c->alone++;
    } else if (!s->varied && majority &&
               (s->other == 0 ||
                strcmp(s->verdict, verdict_name(VERDICT_DEVICES_DISAGREE)) == 0)) {
        c->agrees++;
    } else {
        c->undecided++;
    }
}

/* What the case's program cannot do on this device is no case. */
static bool is_unsupported(const struct item *item, const struct shown *s)
{
    return item->answered > 0 && item->failed == 0 && !s->measured && !item->is_cut;
}

static enum err_code count_all(struct tx *tx, int64_t screening, const char *device,
                               int64_t since_ms, struct screening_counts *counts,
                               struct err *err)
{
    struct items items = { .count = 0 };
    enum err_code code = load_items(tx, screening, device, &items, err);

    if (code == ERR_OK) {
        code = find_cells(tx, device, since_ms, &items, err);
    }
    for (int i = 0; i < items.count && code == ERR_OK; i++) {
        struct shown shown;

        if (!items.list[i].is_control) {
            code = load_shown(tx, device, &items.list[i], &shown, err);
            if (!is_unsupported(&items.list[i], &shown)) {
                count_item(&items.list[i], &shown, counts);
            }
        }
    }
    free(items.list);
    return code;
}

struct candidate {
    int64_t number, at_ms;
    char device[CASE_TITLE_SIZE];
    bool others_open; /* jobs that were made with its own */
    bool cancelled;   /* a job of it was */
};

struct candidates {
    struct candidate *list;
    int count;
};

/* The devices that have runs left, and the plans that have open jobs, are found once, not
 * once for each screening: the survey of a large fleet has thousands of all. */
static enum err_code load_candidates(struct tx *tx, int64_t after, int limit,
                                     struct candidates *found, struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT s.number, s.at_ms, s.device, s.planned_ms IN"
                " (SELECT o.planned_ms FROM job j"
                " CROSS JOIN screening_job t ON t.job = j.number"
                " CROSS JOIN screening o ON o.number = t.screening"
                " WHERE j.state IN ('queued', 'running')"
                " AND o.planned_ms IS NOT NULL),"
                " EXISTS (SELECT 1 FROM screening_job t JOIN job j ON j.number = t.job"
                " WHERE t.screening = s.number AND j.state = 'cancelled')"
                " FROM screening s INDEXED BY screening_open WHERE s.outcome IS NULL"
                " AND s.number > ? AND s.planned_ms IS NOT NULL AND s.device NOT IN"
                " (SELECT i.device FROM job j JOIN job_item i ON i.job = j.number"
                " WHERE j.state IN ('queued', 'running') AND EXISTS"
                " (SELECT 1 FROM screening_job t WHERE t.job = j.number)"
                " AND i.runs_answered < i.runs_wanted AND i.given_up_reason IS NULL)"
                " ORDER BY s.number LIMIT ?",
                after, limit);
    while (query_step(&q)) {
        struct candidate *c;

        found->list = xgrow(found->list, found->count, sizeof *found->list);
        c = &found->list[found->count++];
        query_take(&q, &c->number, &c->at_ms, c->device, &c->others_open, &c->cancelled);
    }
    return query_end(&q, err);
}

enum err_code screenings_ended(struct tx *tx, bool *ret_ended, struct err *err)
{
    struct candidates found = { .count = 0 };
    enum err_code code = load_candidates(tx, 0, 1, &found, err);

    *ret_ended = found.count > 0;
    free(found.list);
    return code;
}

static enum err_code judge(struct tx *tx, const struct candidate *c, int64_t now_ms,
                           struct err *err)
{
    struct screening_counts counts = { .cases = 0 };
    char words[SCREENING_WORDS_SIZE];
    char cause[SCREENING_WORDS_SIZE + 32];
    enum screening_outcome outcome;

    if (count_all(tx, c->number, c->device, c->at_ms, &counts, err) != ERR_OK) {
        return err->code;
    }
    outcome = screening_conclude(&counts, words);
    if (outcome == SCREENING_INCONCLUSIVE && c->others_open) {
        return ERR_OK;
    }
    copy_text(cause, sizeof cause, c->cancelled ? "its job was cancelled: " : "");
    copy_text(cause + strlen(cause), sizeof cause - strlen(cause), words);
    return screening_end(tx, c->number, outcome, cause, &counts, now_ms, err);
}

enum err_code screenings_judge(struct tx *tx, int64_t after, int limit, int64_t now_ms,
                               int64_t *ret_last, struct err *err)
{
    struct candidates found = { .count = 0 };
    enum err_code code = load_candidates(tx, after, limit, &found, err);

    for (int i = 0; i < found.count && code == ERR_OK; i++) {
        code = judge(tx, &found.list[i], now_ms, err);
    }
    *ret_last = found.count == limit ? found.list[found.count - 1].number : 0;
    free(found.list);
    return code;
}
