/* The rows of a table: what each source has in each column. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/base/reference.h"
#include "daemon/evidence/profile.h"
#include "daemon/evidence/profile_parse.h"

static const struct in_member a_text = { PROFILE_A_TEXT };

static const struct in_member of_cell[] = {
    { "model", IN_OBJECT, .flags = IN_OPTIONAL, .item = &a_text },
    { "library", IN_OBJECT, .flags = IN_OPTIONAL, .item = &a_text },
    { "framework", IN_OBJECT, .flags = IN_OPTIONAL, .item = &a_text },
    { "documented", PROFILE_A_TEXT, .flags = IN_OPTIONAL },
    { "note", PROFILE_A_TEXT, .flags = IN_OPTIONAL },
};
static const struct in_shape cell_shape = IN_SHAPE(of_cell, NOT_A_MEMBER);

static void check_url(struct in_reader *r, const json_t *value)
{
    profile_check_text(r, value);
    if (!reference_is_url(json_string_value(value))) {
        in_refuse(r, NULL, "must be an https address");
    }
}

static void check_state(struct in_reader *r, const json_t *value)
{
    profile_check_text(r, value);
    if (!reference_is_state(json_string_value(value))) {
        in_refuse(r, NULL, "must be states with their months: 'open 2020-06'");
    }
}

static const struct in_member of_reference[] = {
    { "kind", IN_TEXT, .names = reference_kinds },
    PROFILE_TEXT("id"),
    PROFILE_TEXT("title"),
    { "url", IN_TEXT, .check = check_url },
    { "state", IN_TEXT, .flags = IN_OPTIONAL, .check = check_state },
    { "solved", PROFILE_A_TEXT, .flags = IN_OPTIONAL },
};
static const struct in_shape reference_shape = IN_SHAPE(of_reference, NOT_A_MEMBER);
static const struct in_member a_reference = { .kind = IN_OBJECT,
                                              .shape = &reference_shape };

/* The first is meant where a row does not say. */
static const char *const backends[] = { "cuda", "cpu", NULL };

#define SUBJECT_NAME PROFILE_A_TEXT, .flags = IN_OPTIONAL, .most = SUBJECT_NAME_SIZE - 1

/* The rows of JSON: their cells are those of the table's columns. */
static enum err_code check_rows(const struct parser *p, const json_t *json,
                                const char *where)
{
    int count = p->table->column_count;
    struct in_member *of_cells = xcalloc((size_t)count, sizeof *of_cells);
    const struct in_shape cells_shape = { of_cells, count, "this table has no column" };
    const struct in_member of_row[] = {
        { "id", PROFILE_A_TEXT, .flags = IN_OPTIONAL },
        { "workload", PROFILE_A_TEXT, .flags = IN_OPTIONAL },
        PROFILE_TEXT("title"),
        { "references", IN_ARRAY, .flags = IN_OPTIONAL, .item = &a_reference },
        { "subject", IN_TEXT, .names = subject_words },
        { "library", SUBJECT_NAME },
        { "framework", SUBJECT_NAME },
        { "operations", IN_ARRAY, .flags = IN_OPTIONAL, .least = 1, .item = &a_text },
        { "backend", IN_TEXT, .flags = IN_OPTIONAL, .names = backends },
        { "cells", IN_OBJECT, .shape = &cells_shape }
    };
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

/* Where a parser is: a cell, and the subject whose variants it reads. */
struct place {
    const char *workload; /* of the row; NULL: none */
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
    if (!at->workload && !cell->documented) {
        return err_set(p->err, ERR_INVALID,
                       "%s: /rows/%zu/cells: a row without a workload must say what is "
                       "documented in %.64s",
                       p->file, at->row, p->table->columns[at->column].name);
    }
    if (!at->workload && variants) {
        return refuse(p, at, NULL, "a row without a workload has no variants");
    }
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
    const char *workload = in_text(item, "workload");
    const char *id = in_text(item, "id");
    const char *backend = in_text(item, "backend");
    struct place at = { .workload = workload, .row = index, .subject = subject };

    *row = (struct profile_row){
        .id = id ? id : workload,
        .workload = workload,
        .title = in_text(item, "title"),
        .references = json_object_get(item, "references"),
        .subject = subject,
        .subject_name = subject == SUBJECT_MODEL ? NULL : in_text(item, word),
        .is_source = strcmp(in_text(item, "subject"), word) == 0,
        .index = (int)index,
        .operations = json_object_get(item, "operations"),
        .backend = backend ? backend : backends[0],
        .cells = cells,
    };
    if (subject != SUBJECT_MODEL && !row->subject_name) {
        return err_set(p->err, ERR_INVALID,
                       "%s: /rows/%zu/%s: must name the %s that this row is about",
                       p->file, index, word, word);
    }
    if (!row->id) {
        return err_set(p->err, ERR_INVALID,
                       "%s: /rows/%zu/id: a row without a workload must have one",
                       p->file, index);
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

/* No two sources have one id; no source refers to a document twice. */
static enum err_code check_rows_distinct(const struct parser *p, const json_t *array)
{
    const struct profile_table *t = p->table;

    for (int r = 0; r < t->row_count; r++) {
        const struct profile_row *row = &t->rows[r];
        char list[48];

        for (int i = 0; i < r; i++) {
            if (t->rows[i].index != row->index && strcmp(t->rows[i].id, row->id) == 0) {
                const json_t *item = json_array_get(array, (size_t)row->index);

                return err_set(
                    p->err, ERR_INVALID, "%s: /rows/%d/%s: '%s' is there twice", p->file,
                    row->index, json_object_get(item, "id") ? "id" : "workload", row->id);
            }
        }
        snprintf(list, sizeof list, "rows/%d/references", row->index);
        if (profile_distinct(p, row->references, list, "id") != ERR_OK) {
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
    return check_rows_distinct(p, array);
}

enum err_code profile_rows_parse(struct parser *p, const json_t *json, const char *where)
{
    if (check_rows(p, json, where) != ERR_OK) {
        return p->err->code;
    }
    return parse_rows(p, json_object_get(json, "rows"));
}
