/* The tables of profiles that are shown: read from their files, and checked against the
 * catalogue. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/choices.h"
#include "daemon/base/embed.h"
#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"
#include "daemon/evidence/profile.h"

enum { TABLES_MAX = 32, FILE_BYTES_MAX = 4 << 20 };

struct profile_set {
    struct profile_table *tables[TABLES_MAX];
    int count;
    int built_in; /* that many of them, the first ones */
    struct err err;
};

static void load_text(struct profile_set *set, const char *name, const char *text,
                      size_t length)
{
    struct profile_table *table = NULL;

    if (set->count == TABLES_MAX) {
        err_set(&set->err, ERR_TOO_LARGE, "%s: more than %d profile tables", name,
                TABLES_MAX);
    } else if (profile_parse(name, text, length, &table, &set->err) == ERR_OK) {
        if (profile_set_find(set, table->id)) {
            err_set(&set->err, ERR_INVALID, "%s: /table: there is a table '%s' already",
                    name, table->id);
            profile_free(table);
        } else {
            set->tables[set->count++] = table;
        }
    }
}

static void load_embedded(void *arg, const struct embed *file)
{
    struct profile_set *set = arg;

    load_text(set, file->name, file->start, embed_size(file));
    set->built_in = set->count;
}

static void load_file(struct profile_set *set, const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text;
    size_t length;

    if (!file) {
        err_set_errno(&set->err, errno, "%s", path);
        return;
    }
    text = xmalloc(FILE_BYTES_MAX + 1);
    length = fread(text, 1, FILE_BYTES_MAX + 1, file);
    if (ferror(file)) {
        err_set_errno(&set->err, errno, "%s", path);
    } else if (length > FILE_BYTES_MAX) {
        err_set(&set->err, ERR_TOO_LARGE, "%s: over %d bytes", path, FILE_BYTES_MAX);
    } else {
        load_text(set, path, text, length);
    }
    free(text);
    fclose(file);
}

enum err_code profile_set_load(const json_t *files, struct profile_set **ret_set,
                               struct err *err)
{
    struct profile_set *set = xcalloc(1, sizeof *set);

    embed_each("workloads/profiles/", load_embedded, set);
    for (size_t i = 0; i < json_array_size(files) && set->err.code == ERR_OK; i++) {
        load_file(set, json_string_value(json_array_get(files, i)));
    }
    if (set->err.code != ERR_OK) {
        *err = set->err;
        profile_set_free(set);
        return err->code;
    }
    *ret_set = set;
    return ERR_OK;
}

static bool is_of_row(const struct catalogue_variant *variant,
                      const struct profile_row *row)
{
    return variant->subject == row->subject &&
           (row->subject == SUBJECT_MODEL ||
            strcmp(variant->subject_name, row->subject_name) == 0);
}

/* Calls VISIT for the variants of ROW's workload that are of its subject, on any backend,
 * until it returns true. */
static bool any_variant(const struct catalogue *catalogue, const struct profile_row *row,
                        bool (*visit)(void *arg, const struct catalogue_variant *variant),
                        void *arg)
{
    for (int i = 0; i < catalogue_count(catalogue); i++) {
        const struct catalogue_workload *w = catalogue_at(catalogue, i);

        for (int v = 0; strcmp(w->name, row->workload) == 0 && v < w->variant_count;
             v++) {
            if (is_of_row(&w->variants[v], row) && visit(arg, &w->variants[v])) {
                return true;
            }
        }
    }
    return false;
}

static bool is_named(void *arg, const struct catalogue_variant *variant)
{
    return strcmp(variant->name, arg) == 0;
}

static bool is_any(void *arg, const struct catalogue_variant *variant)
{
    (void)arg;
    (void)variant;
    return true;
}

static bool add_name(void *arg, const struct catalogue_variant *variant)
{
    choices_add(arg, variant->name);
    return false;
}

static enum err_code unknown_variant(const struct profile_table *table, int row,
                                     int column, const struct profile_choice *choice,
                                     const struct catalogue *catalogue, struct err *err)
{
    const struct profile_row *r = &table->rows[row];
    struct choices known = { .count = 0 };
    char *id = in_pointer(table->columns[column].name);
    char *recipe = in_pointer(choice->recipe);
    char hint[NEAREST_HINT_SIZE];

    any_variant(catalogue, r, add_name, &known);
    err_set(err, ERR_INVALID, "%s: /rows/%d/cells%s/%s%s: %s has no variant '%s' of %s%s",
            table->file, r->index, id, subject_word(r->subject), recipe, r->workload,
            choice->variant, r->subject_name ? r->subject_name : "our models",
            choices_hint(&known, choice->variant, hint));
    choices_release(&known);
    free(id);
    free(recipe);
    return err->code;
}

static enum err_code check_cell(const struct profile_table *table, int row, int column,
                                const struct catalogue *catalogue, struct err *err)
{
    const struct profile_row *r = &table->rows[row];
    const struct profile_cell *cell = &r->cells[column];

    for (int i = 0; i < cell->choice_count; i++) {
        const char *variant = cell->choices[i].variant;

        if (variant && !any_variant(catalogue, r, is_named, (void *)variant)) {
            return unknown_variant(table, row, column, &cell->choices[i], catalogue, err);
        }
    }
    return ERR_OK;
}

static enum err_code unknown_workload(const struct profile_table *table, int row,
                                      const struct catalogue *catalogue, struct err *err)
{
    int count = catalogue_count(catalogue);
    const char *workload = table->rows[row].workload;
    const char **names = xcalloc((size_t)count + 1, sizeof *names);
    char hint[NEAREST_HINT_SIZE];

    for (int i = 0; i < count; i++) {
        names[i] = catalogue_at(catalogue, i)->name;
    }
    err_set(err, ERR_INVALID, "%s: /rows/%d/workload: no worker has a workload '%s'%s",
            table->file, table->rows[row].index, workload,
            nearest_hint(workload, names, count, hint));
    free(names);
    return err->code;
}

enum err_code profile_check(const struct profile_table *table,
                            const struct catalogue *catalogue, bool may_lack,
                            struct err *err)
{
    for (int r = 0; r < table->row_count; r++) {
        if (!table->rows[r].workload) {
            continue;
        }
        if (!catalogue_find(catalogue, table->rows[r].workload, NULL)) {
            if (!may_lack) {
                return unknown_workload(table, r, catalogue, err);
            }
            continue;
        }
        if (may_lack && !any_variant(catalogue, &table->rows[r], is_any, NULL)) {
            continue;
        }
        for (int c = 0; c < table->column_count; c++) {
            if (check_cell(table, r, c, catalogue, err) != ERR_OK) {
                return err->code;
            }
        }
    }
    return ERR_OK;
}

enum err_code profile_set_check(const struct profile_set *set,
                                const struct catalogue *catalogue, struct err *err)
{
    for (int i = 0; i < set->count; i++) {
        if (profile_check(set->tables[i], catalogue, i < set->built_in, err) != ERR_OK) {
            return err->code;
        }
    }
    return ERR_OK;
}

void profile_set_free(struct profile_set *set)
{
    if (!set) {
        return;
    }
    for (int i = 0; i < set->count; i++) {
        profile_free(set->tables[i]);
    }
    free(set);
}

int profile_set_count(const struct profile_set *set)
{
    return set->count;
}

const struct profile_table *profile_set_at(const struct profile_set *set, int index)
{
    return set->tables[index];
}

const struct profile_table *profile_set_find(const struct profile_set *set,
                                             const char *id)
{
    for (int i = 0; i < set->count; i++) {
        if (strcmp(set->tables[i]->id, id) == 0) {
            return set->tables[i];
        }
    }
    return NULL;
}
