/* GET /v1/operations: operations of frameworks, version by version: the codes that each
 * earned, what documents say of them, and whether its bits are those of the version that
 * was measured before. */
#include <stdlib.h>
#include <string.h>

#include "api/operations.h"

#include "api/http/handlers.h"
#include "api/http/page.h"
#include "api/http/params.h"
#include "api/http/reply.h"
#include "api/unknown.h"
#include "daemon/base/choices.h"
#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "daemon/evidence/facts.h"
#include "db/cells.h"
#include "db/matrix.h"

static void table_free(void *state)
{
    struct operations_table *t = state;

    for (int i = 0; i < t->column_count; i++) {
        matrix_release(&t->columns[i].matrix);
        operation_cases_release(&t->columns[i].cases);
    }
    free(t->environments);
    free(t->rows);
    free(t->lines);
    free(t);
}

static bool same_fact(const struct matrix *a, const struct matrix *b, const char *name)
{
    const char *left = json_string_value(json_object_get(a->facts, name));
    const char *right = json_string_value(json_object_get(b->facts, name));

    return left && right && strcmp(left, right) == 0;
}

static bool same_threads(const struct matrix *a, const struct matrix *b)
{
    const json_t *left = json_object_get(a->facts, "threads");
    const json_t *right = json_object_get(b->facts, "threads");

    return left == right || json_equal(left, right); /* both may say nothing of it */
}

/* The one measured before it, of the same framework on the same model of device with as
 * many threads. */
static int column_before(const struct operations_table *t, int column)
{
    const struct operations_column *own = &t->columns[column];

    for (int i = column - 1; i >= 0; i--) {
        const struct operations_column *other = &t->columns[i];

        if (strcmp(other->framework, own->framework) == 0 &&
            same_fact(&other->matrix, &own->matrix, "backend") &&
            same_fact(&other->matrix, &own->matrix, "model") &&
            same_threads(&other->matrix, &own->matrix)) {
            return i;
        }
    }
    return -1;
}

static void add_case(void *arg, const struct cell *cell)
{
    struct operations_column *column = arg;

    operation_cases_add(&column->cases, column->framework, cell);
}

static enum err_code read_column(struct tx *tx, struct operations_table *t,
                                 const char *environment,
                                 struct operations_column *column, struct err *err)
{
    matrix_init(&column->matrix, profile_set_at(t->profiles, 0), NULL, t->now_ms, false,
                t->stale_after_ms);
    t->column_count++;
    if (matrix_read(tx, environment, &column->matrix, err) != ERR_OK) {
        return err->code;
    }
    column->version = facts_version(column->matrix.facts, column->framework);
    return cells_each(tx, environment, 0, add_case, column, err);
}

static enum err_code read_columns(struct tx *tx, struct operations_table *t,
                                  struct err *err)
{
    int count;

    if (operations_environments(tx, t->framework[0] ? t->framework : NULL,
                                OPERATIONS_ENVIRONMENTS_MAX, &t->environments, &count,
                                &t->left_out, err) != ERR_OK) {
        return err->code;
    }
    for (int i = 0; i < count; i++) {
        struct operations_column *column = &t->columns[i];

        column->framework = t->environments[i].framework;
        if (read_column(tx, t, t->environments[i].environment, column, err) != ERR_OK) {
            return err->code;
        }
        column->before = column_before(t, i);
    }
    return ERR_OK;
}

static int by_name(const void *a, const void *b)
{
    const struct operations_row *left = a, *right = b;
    int order = strcmp(left->operation.workload, right->operation.workload);

    return order ? order : left->column - right->column;
}

static void collect(struct operations_table *t)
{
    for (int i = 0; i < t->column_count; i++) {
        struct operations_row row = { .column = i };
        int at = 0;

        while (operations_next(&t->columns[i].matrix, t->columns[i].framework, &at,
                               &row.operation)) {
            t->rows = xgrow(t->rows, t->row_count, sizeof *t->rows);
            t->rows[t->row_count++] = row;
        }
    }
    if (t->row_count > 0) {
        qsort(t->rows, (size_t)t->row_count, sizeof *t->rows, by_name);
    }
}

static void add_line(struct operations_table *t, const struct operations_row *row,
                     const struct documented *documented)
{
    t->lines = xgrow(t->lines, t->line_count, sizeof *t->lines);
    t->lines[t->line_count++] = (struct operations_line){ row, *documented };
}

/* As the table has its rows; in one, as by_name has them. */
static int by_source(const void *a, const void *b)
{
    const struct operations_line *left = a, *right = b;
    int order = left->documented.row->index - right->documented.row->index;

    return order ? order : by_name(left->row, right->row);
}

static void make_lines(struct operations_table *t)
{
    for (int i = 0; i < t->row_count; i++) {
        struct documented documented = { .table = NULL };
        int at = 0;

        if (!t->only) {
            add_line(t, &t->rows[i], &documented);
            continue;
        }
        while (operations_documented(t, &t->rows[i], t->only, &at, &documented)) {
            add_line(t, &t->rows[i], &documented);
        }
    }
    if (t->only && t->line_count > 0) {
        qsort(t->lines, (size_t)t->line_count, sizeof *t->lines, by_source);
    }
}

static void add_framework(void *arg, const char *framework)
{
    choices_add(arg, framework);
}

/* Refuses the NAME of no framework that was measured; before any was, it may be the next.
 */
static enum err_code refuse_framework(struct tx *tx, struct request *r, const char *name,
                                      struct err *err)
{
    struct choices known = { .count = 0 };
    char hint[NEAREST_HINT_SIZE];
    enum err_code code = operations_frameworks(tx, add_framework, &known, err);

    if (code == ERR_OK && known.count > 0) {
        problems_add_parameter(&r->problems, PROBLEM_UNKNOWN_FRAMEWORK, "framework",
                               "no operation of '%.64s' was measured here%s", name,
                               choices_hint(&known, name, hint));
        reply_problems(r);
    }
    choices_release(&known);
    return code;
}

static enum err_code read_table(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct operations_table *t = r->state;
    struct json_out out = JSON_OUT_INIT;
    enum err_code code = read_columns(tx, t, err);

    if (code == ERR_OK && t->column_count == 0 && t->framework[0]) {
        code = refuse_framework(tx, r, t->framework, err);
        if (code != ERR_OK || r->problems.count > 0) {
            return code;
        }
    }
    collect(t);
    make_lines(t);
    list_open(&out);
    for (int i = 0; i < t->line_count && code == ERR_OK; i++) {
        code = operations_line_json(tx, t, &t->lines[i], &out, err);
    }
    if (code != ERR_OK) {
        buf_release(&out.buf);
        return code;
    }
    out_close(&out, ']');
    if (r->format == FORMAT_JSON || t->left_out > 0) {
        out_int(&out, "environments_left_out", t->left_out);
    }
    out_null(&out, "next");
    out_close(&out, '}');
    reply_json(r, 200, &out);
    return ERR_OK;
}

void operations_get(struct request *r)
{
    struct operations_table *t = xcalloc(1, sizeof *t);

    request_keep(r, t, table_free);
    param_text(r, "framework", t->framework, sizeof t->framework);
    t->now_ms = clock_wall_ms();
    t->stale_after_ms = r->api->stale_after_ms;
    t->profiles = r->api->hooks.profiles(r->api->hooks.arg);
    if (request_parameter(r, "table")) {
        t->only = param_table(r, t->profiles);
    }
    if (!params_refused(r)) {
        request_read(r, read_table, NULL);
    }
}
