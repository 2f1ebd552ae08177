/* GET /v1/operations: operations of frameworks, version by version: the codes that each
 * earned, and whether its bits are those of the version that was measured before. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/http/handlers.h"
#include "api/http/page.h"
#include "api/http/params.h"
#include "api/http/reply.h"
#include "api/render/nouns_json.h"
#include "daemon/base/buf.h"
#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "daemon/evidence/facts.h"
#include "daemon/operations/operations.h"
#include "db/matrix.h"
#include "db/views/operations.h"

enum { ENVIRONMENTS_MAX = 32 };

/* What one environment has of one framework. */
struct column {
    const char *framework;
    struct matrix matrix;
    int before; /* the column that it is compared with; -1: none */
};

struct row {
    int column;
    struct operation operation;
};

struct table {
    char framework[SUBJECT_NAME_SIZE]; /* "": all */
    int64_t now_ms, stale_after_ms;
    const struct profile_table *profile; /* a matrix wants one */
    struct framework_environment *environments;
    struct column columns[ENVIRONMENTS_MAX];
    int column_count;
    struct row *rows;
    int row_count;
};

static void table_free(void *state)
{
    struct table *t = state;

    for (int i = 0; i < t->column_count; i++) {
        matrix_release(&t->columns[i].matrix);
    }
    free(t->environments);
    free(t->rows);
    free(t);
}

static bool same_fact(const struct matrix *a, const struct matrix *b, const char *name)
{
    const char *left = json_string_value(json_object_get(a->facts, name));
    const char *right = json_string_value(json_object_get(b->facts, name));

    return left && right && strcmp(left, right) == 0;
}

/* The one measured before it, of the same framework on the same model of device. */
static int column_before(const struct table *t, int column)
{
    const struct column *own = &t->columns[column];

    for (int i = column - 1; i >= 0; i--) {
        const struct column *other = &t->columns[i];

        if (strcmp(other->framework, own->framework) == 0 &&
            same_fact(&other->matrix, &own->matrix, "backend") &&
            same_fact(&other->matrix, &own->matrix, "model")) {
            return i;
        }
    }
    return -1;
}

static enum err_code read_columns(struct tx *tx, struct table *t, struct err *err)
{
    int count;

    if (operations_environments(tx, t->framework[0] ? t->framework : NULL,
                                ENVIRONMENTS_MAX, &t->environments, &count,
                                err) != ERR_OK) {
        return err->code;
    }
    for (int i = 0; i < count; i++) {
        struct column *column = &t->columns[t->column_count];

        column->framework = t->environments[i].framework;
        matrix_init(&column->matrix, t->profile, NULL, t->now_ms, false,
                    t->stale_after_ms);
        t->column_count++;
        if (matrix_read(tx, t->environments[i].environment, &column->matrix, err) !=
            ERR_OK) {
            return err->code;
        }
        column->before = column_before(t, i);
    }
    return ERR_OK;
}

static int by_name(const void *a, const void *b)
{
    const struct row *left = a, *right = b;
    int order = strcmp(left->operation.workload, right->operation.workload);

    return order ? order : left->column - right->column;
}

static void collect(struct table *t)
{
    for (int i = 0; i < t->column_count; i++) {
        struct row row = { .column = i };
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

static const struct row *row_before(const struct table *t, const struct row *row)
{
    int before = t->columns[row->column].before;

    for (const struct row *other = row;
         other >= t->rows && before >= 0 &&
         strcmp(other->operation.workload, row->operation.workload) == 0;
         other--) {
        if (other->column == before) {
            return other;
        }
    }
    return NULL;
}

/* Null where nothing was measured before, "new" where the operation was not. */
static const char *bits_of(const struct table *t, const struct row *row)
{
    const struct row *before = row_before(t, row);

    if (t->columns[row->column].before < 0) {
        return NULL;
    }
    return before
               ? operation_bits_name(operation_bits(&before->operation, &row->operation))
               : "new";
}

/* "default varies 9/3, deterministic reproducible 1/3": digests and runs. */
static void seen_words(const struct operation *operation, struct json_out *out)
{
    struct buf words = BUF_INIT;

    for (int i = 0; i < operation->count; i++) {
        const struct matrix_variant *v = operation->variants[i];

        buf_printf(&words, "%s%s %s", i ? ", " : "", v->key.variant,
                   verdict_name(v->known.verdict));
        if (v->known.runs > 0) {
            buf_printf(&words, " %" PRId64 "/%" PRId64, v->distinct_digests,
                       v->known.runs);
        }
    }
    out_text(out, "seen", words.data);
    buf_release(&words);
}

static enum err_code variant_json(struct tx *tx, const struct matrix_variant *v,
                                  struct json_out *out, struct err *err)
{
    char cause[CASE_TITLE_SIZE] = "";

    if (v->known.verdict == VERDICT_UNSUPPORTED &&
        operations_cause(tx, v->cell, cause, err) != ERR_OK) {
        return err->code;
    }
    out_open(out, NULL, '{');
    out_text(out, "variant", v->key.variant);
    out_bool(out, "is_control", v->is_control);
    out_text(out, "verdict", verdict_name(v->known.verdict));
    out_text(out, "reason", cause[0] ? cause : v->known.reason);
    out_int(out, "runs", v->known.runs);
    out_int(out, "iterations", v->known.iterations);
    out_int(out, "distinct_digests", v->distinct_digests);
    out_name(out, "digest", v->digest);
    out_format(out, "href", "/v1/cells/%" PRId64, v->cell);
    out_close(out, '}');
    return ERR_OK;
}

static enum err_code row_json(struct tx *tx, const struct table *t, const struct row *row,
                              struct json_out *out, struct err *err)
{
    const struct column *column = &t->columns[row->column];
    const struct solution *s = &row->operation.solution;
    enum err_code code = ERR_OK;

    out_open(out, NULL, '{');
    out_text(out, "framework", column->framework);
    out_text(out, "version", facts_version(column->matrix.facts, column->framework));
    out_text(out, "operation", row->operation.workload);
    out_int(out, "operation_version", row->operation.variants[0]->key.version);
    out_name(out, "code", s->code);
    out_text(out, "state", solution_state_name(s->state));
    out_name(out, "reason", s->reason);
    seen_words(&row->operation, out);
    out_text(out, "bits", bits_of(t, row));
    out_text(out, "environment", column->matrix.environment.id);
    out_text(out, "environment_title", column->matrix.environment.title);
    out_text(out, "before",
             column->before < 0 ? NULL
                                : t->columns[column->before].matrix.environment.id);
    out_open(out, "variants", '[');
    for (int i = 0; i < row->operation.count && code == ERR_OK; i++) {
        code = variant_json(tx, row->operation.variants[i], out, err);
    }
    out_close(out, ']');
    out_close(out, '}');
    return code;
}

static enum err_code read_table(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct table *t = r->state;
    struct json_out out = JSON_OUT_INIT;
    enum err_code code = read_columns(tx, t, err);

    collect(t);
    list_open(&out);
    for (int i = 0; i < t->row_count && code == ERR_OK; i++) {
        code = row_json(tx, t, &t->rows[i], &out, err);
    }
    if (code != ERR_OK) {
        buf_release(&out.buf);
        return code;
    }
    list_reply(r, &out);
    return ERR_OK;
}

void operations_get(struct request *r)
{
    struct table *t = xcalloc(1, sizeof *t);

    request_keep(r, t, table_free);
    param_text(r, "framework", t->framework, sizeof t->framework);
    t->now_ms = clock_wall_ms();
    t->stale_after_ms = r->api->stale_after_ms;
    t->profile = profile_set_at(r->api->hooks.profiles(r->api->hooks.arg), 0);
    if (!params_refused(r)) {
        request_read(r, read_table, NULL);
    }
}
