#include "daemon/evidence/profile_shape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/base/nearest.h"
#include "daemon/evidence/catalogue.h"

enum { POINTER_SIZE = 4 * PROFILE_TOKEN_SIZE };

struct checker {
    const char *file;
    struct err *err;
};

const char *profile_token(const char *text, char ret_token[PROFILE_TOKEN_SIZE])
{
    size_t length = 0;

    for (; *text && length < PROFILE_TOKEN_SIZE - 2; text++) {
        bool escaped = *text == '~' || *text == '/';

        ret_token[length++] = *text == '/' ? '~' : *text;
        if (escaped) {
            ret_token[length++] = *text == '~' ? '0' : '1';
        }
    }
    ret_token[length] = '\0';
    return ret_token;
}

/* Every member of OBJECT, at POINTER, is one of COUNT NAMES. */
static enum err_code check_members(const struct checker *c, const char *pointer,
                                   const json_t *object, const char *what,
                                   const char *const *names, int count)
{
    char token[PROFILE_TOKEN_SIZE];
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)object, key, value)
    {
        const char *nearest = nearest_name(key, names, count);
        bool known = false;

        for (int i = 0; i < count; i++) {
            known |= strcmp(key, names[i]) == 0;
        }
        if (!known) {
            return err_set(c->err, ERR_INVALID, "%s: %s/%s: not a %s%s%s%s", c->file,
                           pointer, profile_token(key, token), what,
                           nearest ? "; did you mean '" : "", nearest ? nearest : "",
                           nearest ? "'?" : "");
        }
    }
    return ERR_OK;
}

/* The list of TABLE called NAME has objects with MEMBERS, none with the KEY of another.
 */
static enum err_code check_list(const struct checker *c, const json_t *table,
                                const char *name, const char *key,
                                const char *const *members, int count)
{
    const json_t *list = json_object_get(table, name);

    if (list && json_array_size(list) == 0) {
        return err_set(c->err, ERR_INVALID, "%s: /%s: must be a list, and not empty",
                       c->file, name);
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        const json_t *value = json_object_get(item, key);
        char pointer[POINTER_SIZE];

        snprintf(pointer, sizeof pointer, "/%s/%zu", name, i);
        if (check_members(c, pointer, item, "member here", members, count) != ERR_OK) {
            return c->err->code;
        }
        for (size_t j = 0; j < i && json_is_string(value); j++) {
            if (json_equal(json_object_get(json_array_get(list, j), key), value)) {
                return err_set(c->err, ERR_INVALID, "%s: %s/%s: '%s' stands twice",
                               c->file, pointer, key, json_string_value(value));
            }
        }
    }
    return ERR_OK;
}

/* The columns' ids; the caller frees the list. */
static const char **column_ids(const json_t *columns, int *ret_count)
{
    const char **ids = xcalloc(json_array_size(columns) + 1, sizeof *ids);

    *ret_count = 0;
    for (size_t i = 0; i < json_array_size(columns); i++) {
        const char *id =
            json_string_value(json_object_get(json_array_get(columns, i), "id"));

        if (id) {
            ids[(*ret_count)++] = id;
        }
    }
    return ids;
}

static enum err_code check_row(const struct checker *c, size_t index, const json_t *row,
                               const char *const *ids, int count)
{
    static const char *const members[] = { "variants", "documented", "note" };
    json_t *cells = json_object_get(row, "cells");
    char pointer[POINTER_SIZE], token[PROFILE_TOKEN_SIZE];
    const char *id;
    json_t *cell;

    snprintf(pointer, sizeof pointer, "/rows/%zu/cells", index);
    if (check_members(c, pointer, cells, "column of this table", ids, count) != ERR_OK) {
        return c->err->code;
    }
    json_object_foreach(cells, id, cell)
    {
        snprintf(pointer, sizeof pointer, "/rows/%zu/cells/%s", index,
                 profile_token(id, token));
        if (check_members(c, pointer, cell, "member here", members, 3) != ERR_OK) {
            return c->err->code;
        }
    }
    return ERR_OK;
}

enum err_code profile_check_shape(const char *file, const json_t *json, struct err *err)
{
    static const char *const of_table[] = { "table",   "title",   "source",
                                            "recipes", "columns", "rows" };
    static const char *const of_recipe[] = { "name", "title" };
    static const char *const of_column[] = { "id", "title", "recipes", "extra_recipes" };
    static const char *const of_row[] = { "workload", "title", "cells" };
    struct checker c = { file, err };
    const json_t *rows = json_object_get(json, "rows");
    const char **ids;
    int count;

    if (check_members(&c, "", json, "member here", of_table, 6) != ERR_OK ||
        check_list(&c, json, "recipes", "name", of_recipe, 2) != ERR_OK ||
        check_list(&c, json, "columns", "id", of_column, 4) != ERR_OK ||
        check_list(&c, json, "rows", "workload", of_row, 3) != ERR_OK) {
        return err->code;
    }
    ids = column_ids(json_object_get(json, "columns"), &count);
    for (size_t i = 0; i < json_array_size(rows) && err->code == ERR_OK; i++) {
        (void)check_row(&c, i, json_array_get(rows, i), ids, count);
    }
    free(ids);
    return err->code;
}
