#include "db/views/classes.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "db/case_keys.h"
#include "db/cells_rows.h"
#include "db/fleet.h"
#include "db/tx.h"
#include "db/views/class_conditions.h"

enum { ENVIRONMENTS_MAX = 1000 };

#define CLASS_CELL_COLUMNS                                                               \
    CASE_KEY_COLUMNS                                                                     \
    ", k.is_control, c.subject, c.subject_name, c.id, c.verdict,"                        \
    " c.last_completed_ms, c.vouched_ms, c.completed,"                                   \
    " c.distinct_digests, c.digest, NOT " CELL_INTACT
/* Binds the filter's workload twice, then its subject likewise. */
#define CLASS_CELL_FILTER                                                                \
    "NOT k.challenge AND (? IS NULL OR k.workload = ?) AND (? IS NULL OR c.subject = ?)"

static void bind_filter(struct query *q, const struct classes_filter *filter)
{
    const char *subject =
        filter->subject == SUBJECT_COUNT ? NULL : subject_word(filter->subject);

    query_bind(q, filter->workload, filter->workload, subject, subject);
}

static void take_cell(struct query *q, const struct classes_filter *filter,
                      struct class_cell *ret_cell)
{
    int64_t last_ms;
    int64_t vouched_ms;

    ret_cell->apart = false;
    case_keys_take(q, &ret_cell->key);
    query_take(q, &ret_cell->is_control);
    ret_cell->subject = cell_rows_take_subject(q);
    query_take(q, ret_cell->subject_name, &ret_cell->id);
    ret_cell->verdict = cell_rows_take_verdict(q);
    query_take(q, &last_ms, &vouched_ms, &ret_cell->runs, &ret_cell->distinct_digests,
               ret_cell->digest, &ret_cell->damaged);
    ret_cell->verdict = verdict_at(ret_cell->verdict, last_ms, vouched_ms, filter->now_ms,
                                   filter->stale_after_ms);
    if (ret_cell->distinct_digests != 1) {
        ret_cell->digest[0] = '\0';
    }
    if (ret_cell->damaged) { /* nothing of it is known to have been measured */
        ret_cell->verdict = VERDICT_INCONCLUSIVE;
        ret_cell->runs = ret_cell->distinct_digests = 0;
        ret_cell->digest[0] = '\0';
    }
}

static enum err_code each_cell(struct query *q, const struct classes_filter *filter,
                               void (*visit)(void *arg, const struct class_cell *cell,
                                             const char *environment),
                               void *arg, struct err *err)
{
    while (query_step(q)) {
        struct class_cell cell;
        char environment[DIGEST_TEXT_SIZE];

        take_cell(q, filter, &cell);
        query_take(q, environment);
        visit(arg, &cell, environment);
    }
    return query_end(q, err);
}

enum err_code classes_each_cell(struct tx *tx, const struct classes_filter *filter,
                                const char *environment,
                                void (*visit)(void *arg, const struct class_cell *cell,
                                              const char *environment),
                                void *arg, struct err *err)
{
    struct query q;

    if (environment) {
        query_begin(&q, tx,
                    "SELECT " CLASS_CELL_COLUMNS
                    ", e.id FROM environment e"
                    " CROSS JOIN cell c ON c.environment = e.number"
                    " CROSS JOIN case_key k ON k.number = c.case_key"
                    " WHERE e.id = ? AND " CLASS_CELL_FILTER,
                    environment);
    } else {
        query_begin(&q, tx,
                    "SELECT " CLASS_CELL_COLUMNS
                    ", e.id FROM case_key k"
                    " CROSS JOIN environment e"
                    " CROSS JOIN cell c ON c.environment = e.number"
                    " AND c.case_key = k.number WHERE " CLASS_CELL_FILTER);
    }
    bind_filter(&q, filter);
    return each_cell(&q, filter, visit, arg, err);
}

/* By environment. */

struct columns {
    struct class_column *list;
    int count;
};

static void add_environment(void *arg, const struct environment *e)
{
    struct columns *columns = arg;
    struct class_column *column;

    columns->list = xgrow(columns->list, columns->count, sizeof *columns->list);
    column = &columns->list[columns->count++];
    *column = (struct class_column){ .facts = json_loads(e->json, 0, NULL),
                                     .first_ms = e->first_seen_ms,
                                     .last_ms = e->last_seen_ms,
                                     .members = 1 };
    copy_text(column->id, sizeof column->id, e->id);
}

static int by_first_use(const void *a, const void *b)
{
    const struct class_column *left = a;
    const struct class_column *right = b;

    return left->first_ms != right->first_ms ? (left->first_ms < right->first_ms ? 1 : -1)
                                             : strcmp(left->id, right->id);
}

struct filling {
    struct classes *classes;
    const struct class_column **by_id; /* of its columns */
    int count;
};

static int by_id(const void *a, const void *b)
{
    return strcmp((*(const struct class_column *const *)a)->id,
                  (*(const struct class_column *const *)b)->id);
}

static int compare_id(const void *id, const void *column)
{
    return strcmp(id, (*(const struct class_column *const *)column)->id);
}

static struct filling filling_of(struct classes *classes)
{
    struct filling f = { .classes = classes, .count = classes->column_count };

    f.by_id = xcalloc((size_t)f.count + 1, sizeof(struct class_column *));
    for (int i = 0; i < f.count; i++) {
        f.by_id[i] = &classes->columns[i];
    }
    qsort(f.by_id, (size_t)f.count, sizeof(struct class_column *), by_id);
    return f;
}

/* -1: there is none. */
static int find_column(const struct filling *f, const char *id)
{
    const struct class_column **found = bsearch(
        id, f->by_id, (size_t)f->count, sizeof(struct class_column *), compare_id);

    return found ? (int)(*found - f->classes->columns) : -1;
}

/* Cells with their columns, until those of each row are there. */
struct gathering {
    struct gathered *cells;
    int count;
};

static void gather(void *arg, const struct class_cell *cell, const char *environment)
{
    struct gathering *g = arg;
    struct gathered *gathered;

    g->cells = xgrow(g->cells, g->count, sizeof *g->cells);
    gathered = &g->cells[g->count++];
    gathered->cell = *cell;
    copy_text(gathered->environment, sizeof gathered->environment, environment);
}

static int by_row(const void *a, const void *b)
{
    return classes_compare_keys(&((const struct gathered *)a)->cell.key,
                                &((const struct gathered *)b)->cell.key);
}

/* Row by row: its cells are compared under equal conditions. */
static void fill_rows(struct gathering *g, const struct class_conditions *conditions,
                      const struct filling *filling)
{
    if (g->count > 0) {
        qsort(g->cells, (size_t)g->count, sizeof *g->cells, by_row);
    }
    for (int first = 0, end; first < g->count; first = end) {
        for (end = first + 1;
             end < g->count && by_row(&g->cells[first], &g->cells[end]) == 0; end++) {
        }
        class_conditions_apply(conditions, g->cells + first, end - first);
        for (int i = first; i < end; i++) {
            int column = find_column(filling, g->cells[i].environment);

            if (column >= 0 && g->cells[i].cell.id) {
                classes_add(filling->classes, column, &g->cells[i].cell);
            }
        }
    }
}

enum err_code classes_read_environments(struct tx *tx,
                                        const struct classes_filter *filter,
                                        struct classes *ret_classes, struct err *err)
{
    struct columns columns = { NULL, 0 };
    struct gathering g = { NULL, 0 };
    struct class_conditions conditions;
    struct filling f;
    enum err_code code =
        environments_each(tx, 0, 0, ENVIRONMENTS_MAX, add_environment, &columns, err);

    if (columns.count > 0) {
        qsort(columns.list, (size_t)columns.count, sizeof *columns.list, by_first_use);
    }
    classes_init(ret_classes, columns.list, columns.count);
    if (code != ERR_OK) {
        return code;
    }
    f = filling_of(ret_classes);
    code = class_conditions_read(tx, &conditions, err);
    if (code == ERR_OK) {
        code = classes_each_cell(tx, filter, NULL, gather, &g, err);
    }
    if (code == ERR_OK) {
        fill_rows(&g, &conditions, &f);
    }
    class_conditions_release(&conditions);
    free(g.cells);
    free(f.by_id);
    classes_settle(ret_classes, false);
    return code;
}

/* By device. */

/* All there are, nothing of which was measured yet: which have runs in an environment,
 * and since when, is seen while their cells are read, once. */
static enum err_code list_devices(struct tx *tx, struct columns *columns, struct err *err)
{
    struct query q;

    query_begin(&q, tx, "SELECT id, host, model FROM device ORDER BY model, host, id");
    while (query_step(&q)) {
        struct class_column *column;

        columns->list = xgrow(columns->list, columns->count, sizeof *columns->list);
        column = &columns->list[columns->count++];
        *column = (struct class_column){ .members = 0 };
        query_take(&q, column->id, column->host, column->model);
    }
    return query_end(&q, err);
}

/* A cell is read and looked through once, however many devices it has. */
struct device_cell {
    struct class_cell cell; /* its verdict is the stored one */
    enum verdict agreeing;
    bool dissents; /* somebody is named */
    int64_t vouched_ms;
};

struct device_cells {
    struct device_cell *list; /* by id */
    int count;
};

static enum err_code list_cells(struct tx *tx, const struct classes_filter *filter,
                                const char *environment, struct device_cells *cells,
                                struct err *err)
{
    struct classes_filter stored = *filter;
    struct query q;

    stored.stale_after_ms = 0; /* each device has an age of its own */
    query_begin(&q, tx,
                "SELECT " CLASS_CELL_COLUMNS
                ", c.agreeing, EXISTS (SELECT 1 FROM cell_dissenter s"
                " WHERE s.cell = c.id), c.vouched_ms FROM environment e"
                " CROSS JOIN cell c ON c.environment = e.number"
                " CROSS JOIN case_key k ON k.number = c.case_key"
                " WHERE e.id = ? AND " CLASS_CELL_FILTER " ORDER BY c.id",
                environment);
    bind_filter(&q, filter);
    while (query_step(&q)) {
        struct device_cell *found;

        cells->list = xgrow(cells->list, cells->count, sizeof *cells->list);
        found = &cells->list[cells->count++];
        take_cell(&q, &stored, &found->cell);
        found->agreeing = cell_rows_take_verdict(&q);
        query_take(&q, &found->dissents, &found->vouched_ms);
    }
    return query_end(&q, err);
}

static void use_column(struct class_column *column, int64_t first_ms, int64_t last_ms)
{
    bool is_new = column->members == 0;

    column->members = 1;
    column->first_ms =
        is_new || first_ms < column->first_ms ? first_ms : column->first_ms;
    column->last_ms = last_ms > column->last_ms ? last_ms : column->last_ms;
}

static void judge_device(const struct classes_filter *filter,
                         const struct device_cell *of,
                         const struct device_evidence *device, struct class_cell *cell)
{
    enum verdict verdict =
        verdict_of_device(of->cell.verdict, of->agreeing, of->vouched_ms, device,
                          filter->now_ms, filter->stale_after_ms);

    if (device->varied || verdict == VERDICT_FAILING || verdict == VERDICT_UNSUPPORTED) {
        cell->digest[0] = '\0';
    }
    cell->runs = device->runs;
    cell->distinct_digests = cell->digest[0] ? 1 : 2;
    cell->verdict = verdict;
}

/* What the rows of one device in a cell come to, and where it goes. */
struct device_sum {
    int column; /* -1: nothing yet */
    int64_t first_ms;
    struct device_evidence shown;
    char digest[DIGEST_TEXT_SIZE]; /* the smallest */
};

static void add_row(struct query *q, struct device_sum *sum)
{
    char digest[DIGEST_TEXT_SIZE];
    int64_t first_ms, last_ms, runs;
    bool is_first = sum->shown.runs == 0;

    query_take(q, &first_ms, &last_ms, &runs, digest, &sum->shown.dissents);
    sum->shown.varied |= !digest[0] || (!is_first && strcmp(sum->digest, digest) != 0);
    if (is_first || strcmp(digest, sum->digest) < 0) {
        memcpy(sum->digest, digest, sizeof digest);
    }
    sum->first_ms = is_first || first_ms < sum->first_ms ? first_ms : sum->first_ms;
    sum->shown.last_ms = last_ms > sum->shown.last_ms ? last_ms : sum->shown.last_ms;
    sum->shown.runs += runs;
}

/* CELL is the one of OF, as it was shown for another device. */
static void put_device(const struct classes_filter *filter, const struct device_cell *of,
                       const struct device_sum *sum, struct class_row *row,
                       struct classes *classes, struct class_cell *cell)
{
    if (sum->column < 0) {
        return;
    }
    if (!cell->damaged) {
        memcpy(cell->digest, sum->digest, sizeof cell->digest);
        judge_device(filter, of, &sum->shown, cell);
    }
    classes_put(row, sum->column, cell);
    use_column(&classes->columns[sum->column], sum->first_ms, sum->shown.last_ms);
}

/* Rows come by device, as do the columns by id: neither is looked for. */
static enum err_code each_device(struct tx *tx, const struct classes_filter *filter,
                                 const struct device_cell *of, const struct filling *f,
                                 struct err *err)
{
    struct class_row *row = NULL;
    struct class_cell cell = of->cell;
    struct device_sum sum = { .column = -1 };
    struct query q;
    int at = 0;

    query_begin(&q, tx,
                "SELECT x.device, x.first_ms, x.last_ms, x.runs, x.digest,"
                " ?1 AND EXISTS (SELECT 1 FROM cell_dissenter s"
                " WHERE s.cell = x.cell AND s.device = x.device)"
                " FROM cell_device x WHERE x.cell = ?2 ORDER BY x.device",
                of->dissents, of->cell.id);
    while (query_step(&q)) {
        const char *device = query_borrow_text(&q);
        int order = -1;

        while (at < f->count && (order = strcmp(f->by_id[at]->id, device)) < 0) {
            at++;
        }
        if (order != 0) {
            continue;
        }
        row = row ? row : classes_row(f->classes, &of->cell);
        if (f->by_id[at] - f->classes->columns != sum.column) {
            put_device(filter, of, &sum, row, f->classes, &cell);
            sum = (struct device_sum){ .column =
                                           (int)(f->by_id[at] - f->classes->columns) };
        }
        add_row(&q, &sum);
    }
    put_device(filter, of, &sum, row, f->classes, &cell);
    return query_end(&q, err);
}

enum err_code classes_read_devices(struct tx *tx, const struct classes_filter *filter,
                                   const char *environment, struct classes *ret_classes,
                                   struct err *err)
{
    struct columns columns = { NULL, 0 };
    struct device_cells cells = { NULL, 0 };
    struct filling f;
    enum err_code code = list_devices(tx, &columns, err);

    classes_init(ret_classes, columns.list, columns.count);
    if (code == ERR_OK) {
        code = list_cells(tx, filter, environment, &cells, err);
    }
    f = filling_of(ret_classes);
    for (int i = 0; i < cells.count && code == ERR_OK; i++) {
        code = each_device(tx, filter, &cells.list[i], &f, err);
    }
    free(cells.list);
    free(f.by_id);
    if (code != ERR_OK) {
        return code;
    }
    classes_drop_empty(ret_classes);
    classes_merge_hosts(ret_classes);
    if (ret_classes->column_count > CLASSES_APART_MAX && !filter->each_host) {
        classes_merge_majority(ret_classes);
    }
    classes_settle(ret_classes, true);
    return code;
}
