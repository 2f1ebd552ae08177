#include "daemon/evidence/profile.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/array.h"
#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"

/* A parsed table keeps its JSON: every text of it points in there. */
struct owned_table {
    struct profile_table table;
    json_t *json;
    char *file;
};

struct parser {
    const char *file;
    struct profile_table *table;
    const json_t *columns; /* as the file has them */
    struct err *err;
};

#define TEXT(name)                                                                       \
    {                                                                                    \
        .key = (name), .kind = IN_TEXT                                                   \
    }
#define NOT_A_MEMBER "there is no member"

static const struct in_member a_text = { .kind = IN_TEXT };

static const struct in_member of_recipe[] = { TEXT("name"), TEXT("title") };
static const struct in_shape recipe_shape = IN_SHAPE(of_recipe, NOT_A_MEMBER);
static const struct in_member a_recipe = { .kind = IN_OBJECT, .shape = &recipe_shape };

static const struct in_member of_column[] = {
    TEXT("id"),
    TEXT("title"),
    { "recipes", IN_ARRAY, .least = 1, .most = PROFILE_RECIPES_MAX - 1, .item = &a_text },
    { "extra_recipes", IN_ARRAY, .flags = IN_OPTIONAL, .item = &a_text },
};
static const struct in_shape column_shape = IN_SHAPE(of_column, NOT_A_MEMBER);
static const struct in_member a_column = { .kind = IN_OBJECT, .shape = &column_shape };

static const struct in_member of_table[] = {
    TEXT("table"),
    TEXT("title"),
    TEXT("source"),
    { "recipes", IN_ARRAY, .least = 1, .item = &a_recipe },
    { "columns", IN_ARRAY, .least = 1, .item = &a_column },
    { "rows", IN_ARRAY, .least = 1 },
};
static const struct in_shape table_shape = IN_SHAPE(of_table, NOT_A_MEMBER);

static const struct in_member of_cell[] = {
    { "model", IN_OBJECT, .flags = IN_OPTIONAL, .item = &a_text },
    { "library", IN_OBJECT, .flags = IN_OPTIONAL, .item = &a_text },
    { "framework", IN_OBJECT, .flags = IN_OPTIONAL, .item = &a_text },
    { "documented", IN_TEXT, .flags = IN_OPTIONAL },
    { "note", IN_TEXT, .flags = IN_OPTIONAL },
};
static const struct in_shape cell_shape = IN_SHAPE(of_cell, NOT_A_MEMBER);

static void check_name(struct in_reader *r, const json_t *value)
{
    for (const char *c = json_string_value(value); *c; c++) {
        if ((unsigned char)*c < ' ') {
            in_refuse(r, NULL, "has a control character");
            return;
        }
    }
}

#define SUBJECT_NAME                                                                     \
    .flags = IN_OPTIONAL, .least = 1, .most = SUBJECT_NAME_SIZE - 1, .check = check_name

/* The rows of JSON: their cells are those of the table's columns. */
static enum err_code check_rows(const struct parser *p, const json_t *json,
                                const char *where)
{
    int count = p->table->column_count;
    struct in_member *of_cells = xcalloc((size_t)count, sizeof *of_cells);
    const struct in_shape cells_shape = { of_cells, count, "this table has no column" };
    const struct in_member of_row[] = { TEXT("workload"),
                                        TEXT("title"),
                                        { "subject", IN_TEXT, .names = subject_words },
                                        { "library", IN_TEXT, SUBJECT_NAME },
                                        { "framework", IN_TEXT, SUBJECT_NAME },
                                        { "cells", IN_OBJECT, .shape = &cells_shape } };
    const struct in_shape row_shape = IN_SHAPE(of_row, NOT_A_MEMBER);
    const struct in_member a_row = { .kind = IN_OBJECT, .shape = &row_shape };
    const struct in_member rows = { "rows", IN_ARRAY, .item = &a_row };
    const struct in_shape rows_shape = { &rows, 1, NULL };
    enum err_code code;

    for (int i = 0; i < count; i++) {
        of_cells[i] = (struct in_member){ .key = p->table->columns[i].name,
                                          .kind = IN_OBJECT,
                                          .flags = IN_OPTIONAL,
                                          .shape = &cell_shape };
    }
    code = in_read_file(&rows_shape, json, where, NULL, p->err);
    free(of_cells);
    return code;
}

/* No two objects of the LIST called NAME have the same KEY. */
static enum err_code check_distinct(const struct parser *p, const json_t *list,
                                    const char *name, const char *key)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *text = in_text(json_array_get(list, i), key);

        for (size_t j = 0; j < i; j++) {
            if (strcmp(in_text(json_array_get(list, j), key), text) == 0) {
                return err_set(p->err, ERR_INVALID, "%s: /%s/%zu/%s: '%s' is there twice",
                               p->file, name, i, key, text);
            }
        }
    }
    return ERR_OK;
}

static enum err_code parse_recipes(struct parser *p, const json_t *array)
{
    struct profile_label *recipes = xcalloc(json_array_size(array), sizeof *recipes);
    size_t i;
    json_t *item;

    p->table->recipes = recipes;
    p->table->recipe_count = (int)json_array_size(array);
    json_array_foreach((json_t *)array, i, item)
    {
        recipes[i] =
            (struct profile_label){ in_text(item, "name"), in_text(item, "title") };
        if (strcmp(recipes[i].name, "none") == 0) {
            return err_set(p->err, ERR_INVALID,
                           "%s: /recipes/%zu/name: 'none' is reserved: no recipe",
                           p->file, i);
        }
    }
    return check_distinct(p, array, "recipes", "name");
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
                                        const char *field, const json_t *names)
{
    size_t i;
    json_t *name;

    json_array_foreach((json_t *)names, i, name)
    {
        if (!has_recipe(p->table, json_string_value(name))) {
            return err_set(p->err, ERR_INVALID,
                           "%s: /columns/%zu/%s/%zu: not a recipe of this table", p->file,
                           column, field, i);
        }
        for (size_t j = 0; j < i; j++) {
            if (json_equal(json_array_get(names, j), name)) {
                return err_set(p->err, ERR_INVALID,
                               "%s: /columns/%zu/%s/%zu: '%s' is there twice", p->file,
                               column, field, i, json_string_value(name));
            }
        }
    }
    return ERR_OK;
}

static enum err_code parse_columns(struct parser *p, const json_t *array)
{
    struct profile_label *columns = xcalloc(json_array_size(array), sizeof *columns);
    size_t i;
    json_t *item;

    p->columns = array;
    p->table->columns = columns;
    p->table->column_count = (int)json_array_size(array);
    json_array_foreach((json_t *)array, i, item)
    {
        const json_t *all = json_object_get(item, "recipes");
        const json_t *extra = json_object_get(item, "extra_recipes");

        columns[i] =
            (struct profile_label){ in_text(item, "id"), in_text(item, "title") };
        if (json_array_size(all) + json_array_size(extra) >= PROFILE_RECIPES_MAX) {
            return err_set(p->err, ERR_INVALID,
                           "%s: /columns/%zu: has more than %d recipes", p->file, i,
                           PROFILE_RECIPES_MAX - 1);
        }
        if (check_recipe_names(p, i, "recipes", all) != ERR_OK ||
            check_recipe_names(p, i, "extra_recipes", extra) != ERR_OK) {
            return p->err->code;
        }
    }
    return check_distinct(p, array, "columns", "id");
}

/* Where a parser is: a cell, and the subject whose variants it reads. */
struct place {
    size_t row;
    int column;
    enum subject subject;
};

__attribute__((format(printf, 4, 5))) static enum err_code refuse(struct parser *p,
                                                                  const struct place *at,
                                                                  const char *recipe,
                                                                  const char *format, ...)
{
    char *column = in_pointer(p->table->columns[at->column].name);
    char *token = recipe ? in_pointer(recipe) : xstrdup("");
    char reason[128];
    va_list args;

    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    err_set(p->err, ERR_INVALID, "%s: /rows/%zu/cells%s/%s%s: %s", p->file, at->row,
            column, subject_word(at->subject), token, reason);
    free(column);
    free(token);
    return p->err->code;
}

static enum err_code parse_choice(struct parser *p, const struct place *at,
                                  const json_t *variants, const char *recipe,
                                  struct profile_cell *cell)
{
    const char *variant = in_text(variants, recipe);

    if (!variant) {
        return refuse(p, at, NULL, "no variant for %.64s", recipe);
    }
    cell->choices[cell->choice_count++] = (struct profile_choice){
        .recipe = recipe,
        .variant = strcmp(variant, "raises") == 0 ? NULL : variant,
    };
    return ERR_OK;
}

/* "none", every recipe of the column, and those of the extra ones that are named. */
static enum err_code parse_choices(struct parser *p, const struct place *at,
                                   const json_t *variants, struct profile_cell *cell)
{
    const json_t *json = json_array_get(p->columns, (size_t)at->column);
    enum err_code code = parse_choice(p, at, variants, "none", cell);
    size_t i;
    json_t *recipe;

    json_array_foreach(json_object_get(json, "recipes"), i, recipe)
    {
        if (code == ERR_OK) {
            code = parse_choice(p, at, variants, json_string_value(recipe), cell);
        }
    }
    json_array_foreach(json_object_get(json, "extra_recipes"), i, recipe)
    {
        if (code == ERR_OK && json_object_get(variants, json_string_value(recipe))) {
            code = parse_choice(p, at, variants, json_string_value(recipe), cell);
        }
    }
    return code;
}

static enum err_code check_offered(struct parser *p, const struct place *at,
                                   const json_t *variants,
                                   const struct profile_cell *cell)
{
    const char *recipe;
    json_t *value;

    json_object_foreach((json_t *)variants, recipe, value)
    {
        bool offered = false;

        for (int i = 0; i < cell->choice_count; i++) {
            offered |= strcmp(cell->choices[i].recipe, recipe) == 0;
        }
        if (!offered) {
            return refuse(p, at, recipe, "not a recipe of this column");
        }
    }
    return ERR_OK;
}

static enum err_code parse_cell(struct parser *p, const struct place *at,
                                const json_t *object, struct profile_cell *cell)
{
    const json_t *variants = json_object_get(object, subject_word(at->subject));

    if (!object) {
        cell->absent = true;
        return ERR_OK;
    }
    cell->documented = in_text(object, "documented");
    cell->note = in_text(object, "note");
    if (variants && parse_choices(p, at, variants, cell) != ERR_OK) {
        return p->err->code;
    }
    return check_offered(p, at, variants, cell);
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

/* Whether a cell of ROW, as the file has it, gives variants of SUBJECT. */
static bool gives(const json_t *row, enum subject subject)
{
    const char *column;
    json_t *cell;

    json_object_foreach(json_object_get(row, "cells"), column, cell)
    {
        if (json_object_get(cell, subject_word(subject))) {
            return true;
        }
    }
    return false;
}

static enum err_code parse_row(struct parser *p, const json_t *item, size_t index,
                               enum subject subject, struct profile_row *row)
{
    const char *word = subject_word(subject);
    struct profile_cell *cells = xcalloc((size_t)p->table->column_count, sizeof *cells);
    struct place at = { .row = index, .subject = subject };

    *row = (struct profile_row){
        .workload = in_text(item, "workload"),
        .title = in_text(item, "title"),
        .subject = subject,
        .subject_name = subject == SUBJECT_MODEL ? NULL : in_text(item, word),
        .is_source = strcmp(in_text(item, "subject"), word) == 0,
        .index = (int)index,
        .cells = cells,
    };
    if (subject != SUBJECT_MODEL && !row->subject_name) {
        return err_set(p->err, ERR_INVALID,
                       "%s: /rows/%zu/%s: must name the %s that this row is about",
                       p->file, index, word, word);
    }
    for (at.column = 0; at.column < p->table->column_count; at.column++) {
        const json_t *cell = json_object_get(json_object_get(item, "cells"),
                                             p->table->columns[at.column].name);

        if (parse_cell(p, &at, cell, &cells[at.column]) != ERR_OK) {
            return p->err->code;
        }
    }
    return ERR_OK;
}

/* Counting by subject has room for so many. */
static enum err_code check_names(const struct parser *p)
{
    const struct profile_table *t = p->table;
    int count = 0;

    for (int r = 0; r < t->row_count; r++) {
        bool known = t->rows[r].subject == SUBJECT_MODEL;

        for (int i = 0; i < r && !known; i++) {
            known = t->rows[i].subject == t->rows[r].subject &&
                    strcmp(t->rows[i].subject_name, t->rows[r].subject_name) == 0;
        }
        count += !known;
        if (count > PROFILE_NAMES_MAX) {
            return err_set(p->err, ERR_INVALID,
                           "%s: /rows/%d/%s: more than %d libraries and frameworks",
                           p->file, t->rows[r].index, subject_word(t->rows[r].subject),
                           PROFILE_NAMES_MAX);
        }
    }
    return ERR_OK;
}

/* One row for the subject that the source names, then one for each other that has
 * variants: what is nearest to the source first. */
static enum err_code parse_rows(struct parser *p, const json_t *array)
{
    struct profile_row *rows =
        xcalloc(json_array_size(array) * SUBJECT_COUNT, sizeof *rows);
    size_t i;
    json_t *item;

    p->table->rows = rows;
    json_array_foreach((json_t *)array, i, item)
    {
        enum subject source = SUBJECT_MODEL;

        subject_parse(in_text(item, "subject"), &source);
        if (parse_row(p, item, i, source, &rows[p->table->row_count++]) != ERR_OK) {
            return p->err->code;
        }
        for (int s = SUBJECT_COUNT - 1; s >= 0; s--) {
            if (s != (int)source && gives(item, (enum subject)s) &&
                parse_row(p, item, i, (enum subject)s, &rows[p->table->row_count++]) !=
                    ERR_OK) {
                return p->err->code;
            }
        }
    }
    if (check_names(p) != ERR_OK) {
        return p->err->code;
    }
    number_footnotes(rows, p->table->row_count, p->table->column_count);
    return check_distinct(p, array, "rows", "workload");
}

static enum err_code parse_table(struct parser *p, const json_t *json, const char *where)
{
    if (in_read_file(&table_shape, json, where, NULL, p->err) != ERR_OK) {
        return p->err->code;
    }
    p->table->id = in_text(json, "table");
    p->table->title = in_text(json, "title");
    p->table->source = in_text(json, "source");
    if (parse_recipes(p, json_object_get(json, "recipes")) != ERR_OK ||
        parse_columns(p, json_object_get(json, "columns")) != ERR_OK ||
        check_rows(p, json, where) != ERR_OK) {
        return p->err->code;
    }
    return parse_rows(p, json_object_get(json, "rows"));
}

enum err_code profile_parse(const char *name, const char *text, size_t length,
                            struct profile_table **ret_table, struct err *err)
{
    json_error_t where;
    struct owned_table *owned = xcalloc(1, sizeof *owned);
    struct parser p = { .file = name, .table = &owned->table, .err = err };
    char *prefix = xasprintf("%s: ", name);
    enum err_code code;

    owned->table.file = owned->file = xstrdup(name);
    owned->json = json_loadb(text, length, JSON_REJECT_DUPLICATES, &where);
    code = owned->json ? parse_table(&p, owned->json, prefix)
                       : err_set(err, ERR_INVALID, "%s: line %d: %s", name, where.line,
                                 where.text);
    free(prefix);
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
