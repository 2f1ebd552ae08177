#include "daemon/evidence/profile.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/base/nearest.h"
#include "daemon/evidence/profile_shape.h"

/* Whether WORKLOAD has VARIANT on some backend. */
static bool variant_exists(const struct catalogue *catalogue, const char *workload,
                           const char *variant)
{
    for (int i = 0; i < catalogue_count(catalogue); i++) {
        const struct catalogue_workload *w = catalogue_at(catalogue, i);

        if (strcmp(w->name, workload) == 0 && catalogue_variant(w, variant)) {
            return true;
        }
    }
    return false;
}

static enum err_code unknown_variant(const struct profile_table *table, int row,
                                     int column, const struct profile_choice *choice,
                                     const struct catalogue *catalogue, struct err *err)
{
    const char *workload = table->rows[row].workload;
    const struct catalogue_workload *w = catalogue_find(catalogue, workload, NULL);
    const char **names = xcalloc((size_t)w->variant_count + 1, sizeof *names);
    char id[PROFILE_TOKEN_SIZE], recipe[PROFILE_TOKEN_SIZE];
    const char *nearest;

    for (int i = 0; i < w->variant_count; i++) {
        names[i] = w->variants[i].name;
    }
    nearest = nearest_name(choice->variant, names, w->variant_count);
    free(names);
    return err_set(err, ERR_INVALID,
                   "%s: /rows/%d/cells/%s/variants/%s: %s has no variant '%s'%s%s%s",
                   table->file, row, profile_token(table->columns[column].id, id),
                   profile_token(choice->recipe, recipe), workload, choice->variant,
                   nearest ? "; did you mean '" : "", nearest ? nearest : "",
                   nearest ? "'?" : "");
}

static enum err_code check_cell(const struct profile_table *table, int row, int column,
                                const struct catalogue *catalogue, struct err *err)
{
    const char *workload = table->rows[row].workload;
    const struct profile_cell *cell = &table->rows[row].cells[column];

    for (int i = 0; i < cell->choice_count; i++) {
        const char *variant = cell->choices[i].variant;

        if (variant && !variant_exists(catalogue, workload, variant)) {
            return unknown_variant(table, row, column, &cell->choices[i], catalogue, err);
        }
    }
    return ERR_OK;
}

static enum err_code unknown_workload(const struct profile_table *table, int row,
                                      const struct catalogue *catalogue, struct err *err)
{
    int count = catalogue_count(catalogue);
    const char **names = xcalloc((size_t)count + 1, sizeof *names);
    const char *nearest;

    for (int i = 0; i < count; i++) {
        names[i] = catalogue_at(catalogue, i)->name;
    }
    nearest = nearest_name(table->rows[row].workload, names, count);
    err_set(err, ERR_INVALID,
            "%s: /rows/%d/workload: no worker has a workload '%s'%s%s%s", table->file,
            row, table->rows[row].workload, nearest ? "; did you mean '" : "",
            nearest ? nearest : "", nearest ? "'?" : "");
    free(names);
    return err->code;
}

enum err_code profile_check(const struct profile_table *table,
                            const struct catalogue *catalogue, bool may_lack,
                            struct err *err)
{
    for (int r = 0; r < table->row_count; r++) {
        if (!catalogue_find(catalogue, table->rows[r].workload, NULL)) {
            if (!may_lack) {
                return unknown_workload(table, r, catalogue, err);
            }
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
