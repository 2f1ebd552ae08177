#include "daemon/evidence/profile.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/evidence/profile_shape.h"

/* A parsed table keeps its JSON: every text of it points in there. */
struct owned_table {
    struct profile_table table;
    json_t *json;
    char *file;
};

/* Names of recipes: those every row of the column names, and those only some rows do. */
struct column_recipes {
    json_t *all, *extra; /* arrays; extra is NULL where there are none */
};

struct parser {
    const char *file;
    struct profile_table *table;
    const struct column_recipes *column_recipes; /* one a column */
    struct err *err;
};

static struct profile_cell *allocate_cells(int count)
{
    return xcalloc((size_t)count, sizeof(struct profile_cell));
}

static enum err_code parse_recipes(struct parser *p, json_t *array)
{
    struct profile_recipe *recipes = xcalloc(json_array_size(array), sizeof *recipes);
    size_t i;
    json_t *item;

    p->table->recipes = recipes;
    p->table->recipe_count = (int)json_array_size(array);
    json_array_foreach(array, i, item)
    {
        if (json_unpack(item, "{s:s, s:s}", "name", &recipes[i].name, "title",
                        &recipes[i].title) != 0) {
            return err_set(p->err, ERR_INVALID, "%s: /recipes/%zu: needs name and title",
                           p->file, i);
        }
        if (strcmp(recipes[i].name, "none") == 0) {
            return err_set(p->err, ERR_INVALID,
                           "%s: /recipes/%zu/name: 'none' is the framework as it comes",
                           p->file, i);
        }
    }
    return ERR_OK;
}

static bool has_recipe(const struct profile_table *table, const char *name)
{
    for (int i = 0; i < table->recipe_count; i++) {
        if (strcmp(table->recipes[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static enum err_code check_recipe_names(struct parser *p, size_t column,
                                        const char *field, json_t *names)
{
    size_t i;
    json_t *name;

    json_array_foreach(names, i, name)
    {
        if (!json_is_string(name) || !has_recipe(p->table, json_string_value(name))) {
            return err_set(p->err, ERR_INVALID,
                           "%s: /columns/%zu/%s/%zu: not a recipe of this table", p->file,
                           column, field, i);
        }
        for (size_t j = 0; j < i; j++) {
            if (json_equal(json_array_get(names, j), name)) {
                return err_set(p->err, ERR_INVALID,
                               "%s: /columns/%zu/%s/%zu: '%s' stands twice", p->file,
                               column, field, i, json_string_value(name));
            }
        }
    }
    return ERR_OK;
}

static enum err_code parse_columns(struct parser *p, json_t *array,
                                   struct column_recipes *recipes)
{
    struct profile_column *columns = xcalloc(json_array_size(array), sizeof *columns);
    size_t i;
    json_t *item;

    p->table->columns = columns;
    p->table->column_count = (int)json_array_size(array);
    json_array_foreach(array, i, item)
    {
        struct column_recipes *r = &recipes[i];

        if (json_unpack(item, "{s:s, s:s, s:o, s?o}", "id", &columns[i].id, "title",
                        &columns[i].title, "recipes", &r->all, "extra_recipes",
                        &r->extra) != 0 ||
            json_array_size(r->all) < 1 ||
            json_array_size(r->all) + json_array_size(r->extra) >= PROFILE_RECIPES_MAX) {
            return err_set(p->err, ERR_INVALID,
                           "%s: /columns/%zu: needs id, title and 1 to %d recipes",
                           p->file, i, PROFILE_RECIPES_MAX - 1);
        }
        if (r->extra && !json_is_array(r->extra)) {
            return err_set(p->err, ERR_INVALID,
                           "%s: /columns/%zu/extra_recipes: must be a list", p->file, i);
        }
        if (check_recipe_names(p, i, "recipes", r->all) != ERR_OK ||
            check_recipe_names(p, i, "extra_recipes", r->extra) != ERR_OK) {
            return p->err->code;
        }
    }
    return ERR_OK;
}

static enum err_code parse_choice(struct parser *p, json_t *variants, const char *recipe,
                                  size_t row, const char *column,
                                  struct profile_cell *cell)
{
    const char *variant = json_string_value(json_object_get(variants, recipe));

    if (!variant) {
        return err_set(p->err, ERR_INVALID,
                       "%s: /rows/%zu/cells/%s/variants: no variant for %s", p->file, row,
                       column, recipe);
    }
    cell->choices[cell->choice_count++] = (struct profile_choice){
        .recipe = recipe,
        .variant = strcmp(variant, "raises") == 0 ? NULL : variant,
    };
    return ERR_OK;
}

/* "none", every recipe of the column, and those of the extra ones that are named. */
static enum err_code parse_choices(struct parser *p, json_t *variants, size_t row,
                                   int column, struct profile_cell *cell)
{
    const char *id = p->table->columns[column].id;
    enum err_code code = parse_choice(p, variants, "none", row, id, cell);
    size_t i;
    json_t *recipe;

    json_array_foreach(p->column_recipes[column].all, i, recipe)
    {
        if (code == ERR_OK) {
            code = parse_choice(p, variants, json_string_value(recipe), row, id, cell);
        }
    }
    json_array_foreach(p->column_recipes[column].extra, i, recipe)
    {
        if (code == ERR_OK && json_object_get(variants, json_string_value(recipe))) {
            code = parse_choice(p, variants, json_string_value(recipe), row, id, cell);
        }
    }
    return code;
}

static enum err_code check_offered(struct parser *p, json_t *variants, size_t row,
                                   const char *column, const struct profile_cell *cell)
{
    char token[PROFILE_TOKEN_SIZE];
    const char *recipe;
    json_t *value;

    json_object_foreach(variants, recipe, value)
    {
        bool offered = false;

        for (int i = 0; i < cell->choice_count; i++) {
            offered |= strcmp(cell->choices[i].recipe, recipe) == 0;
        }
        if (!offered) {
            return err_set(p->err, ERR_INVALID,
                           "%s: /rows/%zu/cells/%s/variants/%s: not a recipe of this "
                           "column",
                           p->file, row, column, profile_token(recipe, token));
        }
    }
    return ERR_OK;
}

static enum err_code parse_cell(struct parser *p, json_t *object, size_t row, int column,
                                struct profile_cell *cell)
{
    const char *id = p->table->columns[column].id;
    json_t *variants;

    if (!object) {
        cell->absent = true;
        return ERR_OK;
    }
    if (json_unpack(object, "{s:o, s?s, s?s}", "variants", &variants, "documented",
                    &cell->documented, "note", &cell->note) != 0) {
        return err_set(p->err, ERR_INVALID, "%s: /rows/%zu/cells/%s: needs variants",
                       p->file, row, id);
    }
    if (parse_choices(p, variants, row, column, cell) != ERR_OK) {
        return p->err->code;
    }
    return check_offered(p, variants, row, id, cell);
}

static enum err_code parse_row(struct parser *p, json_t *object, size_t index,
                               struct profile_row *row)
{
    struct profile_cell *cells = allocate_cells(p->table->column_count);
    json_t *by_column;

    row->cells = cells;
    if (json_unpack(object, "{s:s, s:s, s:o}", "workload", &row->workload, "title",
                    &row->title, "cells", &by_column) != 0) {
        return err_set(p->err, ERR_INVALID,
                       "%s: /rows/%zu: needs workload, title and cells", p->file, index);
    }
    for (int c = 0; c < p->table->column_count; c++) {
        json_t *cell = json_object_get(by_column, p->table->columns[c].id);

        if (parse_cell(p, cell, index, c, &cells[c]) != ERR_OK) {
            return p->err->code;
        }
    }
    return ERR_OK;
}

static int footnote_number(const char *note, const char **notes, int *count)
{
    for (int i = 0; i < *count; i++) {
        if (strcmp(notes[i], note) == 0) {
            return i + 1;
        }
    }
    notes[(*count)++] = note;
    return *count;
}

/* In the order of reading. */
static void number_footnotes(struct profile_row *rows, int row_count, int column_count)
{
    const char **notes =
        xcalloc((size_t)row_count * (size_t)column_count + 1, sizeof *notes);
    int count = 0;

    for (int r = 0; r < row_count; r++) {
        struct profile_cell *cells = (struct profile_cell *)rows[r].cells;

        for (int c = 0; c < column_count; c++) {
            if (cells[c].note) {
                cells[c].footnote = footnote_number(cells[c].note, notes, &count);
            }
        }
    }
    free(notes);
}

static enum err_code parse_rows(struct parser *p, json_t *array)
{
    struct profile_row *rows = xcalloc(json_array_size(array), sizeof *rows);
    size_t i;
    json_t *item;

    p->table->rows = rows;
    p->table->row_count = (int)json_array_size(array);
    json_array_foreach(array, i, item)
    {
        if (parse_row(p, item, i, &rows[i]) != ERR_OK) {
            return p->err->code;
        }
    }
    number_footnotes(rows, p->table->row_count, p->table->column_count);
    return ERR_OK;
}

static enum err_code parse_table(const char *file, json_t *json,
                                 struct profile_table *table, struct err *err)
{
    json_t *recipes;
    json_t *columns;
    json_t *rows;
    struct column_recipes *column_recipes;
    struct parser p = { .file = file, .table = table, .err = err };

    if (json_unpack(json, "{s:s, s:s, s:s, s:o, s:o, s:o}", "table", &table->id, "title",
                    &table->title, "source", &table->source, "recipes", &recipes,
                    "columns", &columns, "rows", &rows) != 0) {
        return err_set(err, ERR_INVALID,
                       "%s: needs table, title, source, recipes, columns and rows", file);
    }
    column_recipes = xcalloc(json_array_size(columns), sizeof *column_recipes);
    p.column_recipes = column_recipes;
    if (parse_recipes(&p, recipes) == ERR_OK &&
        parse_columns(&p, columns, column_recipes) == ERR_OK) {
        (void)parse_rows(&p, rows);
    }
    free(column_recipes);
    return err->code;
}

enum err_code profile_parse(const char *name, const char *text, size_t length,
                            struct profile_table **ret_table, struct err *err)
{
    json_error_t where;
    struct owned_table *owned = xcalloc(1, sizeof *owned);
    enum err_code code;

    err->code = ERR_OK;
    owned->table.file = owned->file = xstrdup(name);
    owned->json = json_loadb(text, length, JSON_REJECT_DUPLICATES, &where);
    if (!owned->json) {
        code = err_set(err, ERR_INVALID, "%s: line %d: %s", name, where.line, where.text);
    } else if (profile_check_shape(name, owned->json, err) != ERR_OK) {
        code = err->code;
    } else {
        code = parse_table(name, owned->json, &owned->table, err);
    }
    if (code != ERR_OK) {
        profile_free(&owned->table);
        return code;
    }
    *ret_table = &owned->table;
    return ERR_OK;
}

void profile_free(struct profile_table *table)
{
    /* The table is the first member of its owned_table. */
    struct owned_table *owned = (struct owned_table *)table;

    if (!owned) {
        return;
    }
    for (int i = 0; i < table->row_count; i++) {
        free((void *)table->rows[i].cells);
    }
    free((void *)table->rows);
    free((void *)table->columns);
    free((void *)table->recipes);
    json_decref(owned->json);
    free(owned->file);
    free(owned);
}
