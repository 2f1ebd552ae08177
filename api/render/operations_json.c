/* The items of GET /v1/operations. */
#include "api/operations.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/cells.h"
#include "daemon/base/buf.h"
#include "daemon/base/mem.h"
#include "daemon/evidence/facts.h"
#include "db/cells.h"
#include "db/views/cell_witness.h"

/* A variant's cell, where another operation varied beside it. */
struct witnessed {
    bool found;
    struct cell cell;
    struct cell_witness witness;
};

bool operations_documented(const struct operations_table *table,
                           const struct operations_row *row,
                           const struct profile_table *profile, int *at,
                           struct documented *ret_documented)
{
    const struct operations_column *column = &table->columns[row->column];

    return documented_next(
        profile, row->operation.workload, column->framework, column->version,
        json_string_value(json_object_get(column->matrix.facts, "backend")), at,
        ret_documented);
}

static bool has_row_before(const struct operations_table *t,
                           const struct operations_row *row)
{
    for (const struct operations_row *other = row;
         other >= t->rows &&
         strcmp(other->operation.workload, row->operation.workload) == 0;
         other--) {
        if (other->column == t->columns[row->column].before) {
            return true;
        }
    }
    return false;
}

/* Null where nothing was measured before, "new" where the operation was not. */
static const char *bits_of(const struct operations_table *t,
                           const struct operations_row *row)
{
    const struct operations_column *column = &t->columns[row->column];

    if (column->before < 0) {
        return NULL;
    }
    return has_row_before(t, row)
               ? operation_bits_name(operation_bits(
                     &row->operation, &t->columns[column->before].cases, &column->cases))
               : "new";
}

static enum err_code look_for_witness(struct tx *tx, const struct matrix_variant *v,
                                      struct witnessed *ret, struct err *err)
{
    ret->found = false;
    if (v->known.verdict != VERDICT_INCONCLUSIVE) {
        return ERR_OK;
    }
    if (cells_get(tx, v->cell, &ret->cell, err) != ERR_OK) {
        return err->code;
    }
    return cell_witness_of(tx, &ret->cell, &ret->found, &ret->witness, err);
}

/* "default varies 9/3, deterministic reproducible 1/3": digests and runs.  "default
 * inconclusive 1/3 (witnessed)" where it has a witness. */
static void seen_words(const struct operation *operation,
                       const struct witnessed *witnessed, struct json_out *out)
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
        buf_printf(&words, "%s", witnessed[i].found ? " (witnessed)" : "");
    }
    out_text(out, "seen", words.data);
    buf_release(&words);
}

/* Whether OWN is one of WORDS, which "; " separates: "TDP (X)" is not in "TCD or TDP
 * (X)".
 */
static bool has_words(const struct buf *words, const char *own)
{
    size_t length = strlen(own);
    const char *next = words->length > 0 ? words->data : NULL;

    while (next) {
        if (strncmp(next, own, length) == 0 && (!next[length] || next[length] == ';')) {
            return true;
        }
        next = strstr(next, "; ");
        next = next ? next + 2 : NULL;
    }
    return false;
}

/* "UDA (PyTorch 2.2-2.7)", once. */
static void documented_words(const struct documented *d, struct buf *words)
{
    const char *code = documented_code(d);
    const char *of = d->applies                             ? ""
                     : strcmp(d->row->backend, "cuda") == 0 ? ", of GPUs"
                                                            : ", of CPUs";
    char *own =
        xasprintf("%s (%s%s)", code ? code : "no code",
                  d->column < 0 ? "no column" : d->table->columns[d->column].title, of);

    if (!has_words(words, own)) {
        buf_printf(words, "%s%s", words->length > 0 ? "; " : "", own);
    }
    free(own);
}

static void documented_item(const struct documented *d, struct json_out *out)
{
    bool known = d->column >= 0;

    out_open(out, NULL, '{');
    out_text(out, "table", d->table->id);
    out_text(out, "row", d->row->id);
    out_text(out, "title", d->row->title);
    out_text(out, "column", known ? d->table->columns[d->column].name : NULL);
    out_text(out, "column_title", known ? d->table->columns[d->column].title : NULL);
    out_text(out, "code", documented_code(d));
    out_text(out, "note", known ? d->row->cells[d->column].note : NULL);
    out_text(out, "backend", d->row->backend);
    out_bool(out, "applies", d->applies);
    out_close(out, '}');
}

/* Of the line's source, or of all sources that the operation computes. */
static void documented_json(const struct operations_table *t,
                            const struct operations_line *line, struct json_out *out)
{
    struct documented d = line->documented;
    struct buf words = BUF_INIT;

    out_open(out, "documented", '[');
    if (d.table) {
        documented_item(&d, out);
        documented_words(&d, &words);
    }
    for (int i = 0; !line->documented.table && i < profile_set_count(t->profiles); i++) {
        int at = 0;

        while (operations_documented(t, line->row, profile_set_at(t->profiles, i), &at,
                                     &d)) {
            documented_item(&d, out);
            documented_words(&d, &words);
        }
    }
    out_close(out, ']');
    out_text(out, "documents", words.data);
    out_text(out, "source", line->documented.table ? line->documented.row->title : NULL);
    buf_release(&words);
}

static enum err_code variant_json(struct tx *tx, const struct matrix_variant *v,
                                  const struct witnessed *witnessed, struct json_out *out,
                                  struct err *err)
{
    char cause[CASE_TITLE_SIZE] = "";

    if (v->known.verdict == VERDICT_UNSUPPORTED &&
        operations_cause(tx, v->cell, cause, err) != ERR_OK) {
        return err->code;
    }
    out_open(out, NULL, '{');
    out_text(out, "variant", v->key.variant);
    out_bool(out, "is_control", v->is_control);
    out_text(out, "claim",
             v->claimed > 0  ? "deterministic"
             : v->warned > 0 ? "non-deterministic"
                             : NULL);
    out_text(out, "verdict", verdict_name(v->known.verdict));
    out_text(out, "reason", cause[0] ? cause : v->known.reason);
    out_int(out, "runs", v->known.runs);
    out_int(out, "iterations", v->known.iterations);
    out_int(out, "distinct_digests", v->distinct_digests);
    out_name(out, "digest", v->digest);
    cell_witness_json(&witnessed->cell, witnessed->found ? &witnessed->witness : NULL,
                      out);
    out_format(out, "href", "/v1/cells/%" PRId64, v->cell);
    out_close(out, '}');
    return ERR_OK;
}

/* Of an installed version, some of whose files are not what was installed, not its name
 * alone. */
static void version_json(const struct operations_column *column, struct json_out *out)
{
    if (column->version && facts_have_changed_files(column->matrix.facts)) {
        out_format(out, "version", "%s, with changed files", column->version);
    } else {
        out_text(out, "version", column->version);
    }
}

static void threads_json(const json_t *facts, struct json_out *out)
{
    const json_t *threads = json_object_get(facts, "threads");

    if (json_is_integer(threads)) {
        out_int(out, "threads", json_integer_value(threads));
    } else {
        out_null(out, "threads");
    }
}

static enum err_code line_json(struct tx *tx, const struct operations_table *t,
                               const struct operations_line *line,
                               const struct witnessed *witnessed, struct json_out *out,
                               struct err *err)
{
    const struct operations_row *row = line->row;
    const struct operations_column *column = &t->columns[row->column];
    const struct solution *s = &row->operation.solution;
    enum err_code code = ERR_OK;

    out_open(out, NULL, '{');
    out_text(out, "framework", column->framework);
    version_json(column, out);
    out_text(out, "operation", row->operation.workload);
    out_int(out, "operation_version", row->operation.variants[0]->key.version);
    out_name(out, "code", s->code);
    out_text(out, "state", solution_state_name(s->state));
    out_name(out, "reason", s->reason);
    seen_words(&row->operation, witnessed, out);
    out_text(out, "bits", bits_of(t, row));
    documented_json(t, line, out);
    out_text(out, "backend",
             json_string_value(json_object_get(column->matrix.facts, "backend")));
    out_text(out, "model",
             json_string_value(json_object_get(column->matrix.facts, "model")));
    threads_json(column->matrix.facts, out);
    out_text(out, "environment", column->matrix.environment.id);
    out_text(out, "environment_title", column->matrix.environment.title);
    out_text(out, "before",
             column->before < 0 ? NULL
                                : t->columns[column->before].matrix.environment.id);
    out_open(out, "variants", '[');
    for (int i = 0; i < row->operation.count && code == ERR_OK; i++) {
        code = variant_json(tx, row->operation.variants[i], &witnessed[i], out, err);
    }
    out_close(out, ']');
    out_close(out, '}');
    return code;
}

enum err_code operations_line_json(struct tx *tx, const struct operations_table *t,
                                   const struct operations_line *line,
                                   struct json_out *out, struct err *err)
{
    const struct operation *operation = &line->row->operation;
    struct witnessed *witnessed = xcalloc((size_t)operation->count, sizeof *witnessed);
    enum err_code code = ERR_OK;

    for (int i = 0; i < operation->count && code == ERR_OK; i++) {
        code = look_for_witness(tx, operation->variants[i], &witnessed[i], err);
    }
    if (code == ERR_OK) {
        code = line_json(tx, t, line, witnessed, out, err);
    }
    free(witnessed);
    return code;
}
