#include "daemon/evidence/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/base/text.h"
#include "daemon/evidence/profile_parse.h"

/* A parsed table keeps its JSON: every text of it points in there. */
struct owned_table {
    struct profile_table table;
    json_t *json;
    char *file;
};

/* The first of the UTF-8 in TEXT that acts on a terminal; 0: there is none. */
static int control_character(const char *text)
{
    for (size_t left = strlen(text); left > 0; text++, left--) {
        int control = text_control(text, left);

        if (control >= 0) {
            return control;
        }
    }
    return 0;
}

void profile_check_text(struct in_reader *reader, const json_t *value)
{
    const char *text = json_string_value(value);
    int control = control_character(text);

    if (control) {
        in_refuse(reader, NULL, "has a control character (U+%04X)", (unsigned)control);
    } else if (!text[strspn(text, " ")]) {
        in_refuse(reader, NULL, "must not be blank");
    }
}

static const struct in_member a_text = { PROFILE_A_TEXT };

static const struct in_member of_recipe[] = { PROFILE_TEXT("name"),
                                              PROFILE_TEXT("title") };
static const struct in_shape recipe_shape = IN_SHAPE(of_recipe, NOT_A_MEMBER);
static const struct in_member a_recipe = { .kind = IN_OBJECT, .shape = &recipe_shape };

static void check_version(struct in_reader *reader, const json_t *value)
{
    const char *text = json_string_value(value);

    if (!*text || text[strspn(text, "0123456789.")]) {
        in_refuse(reader, NULL, "must be numbers and dots: 2.7");
    }
}

static const struct in_member of_versions[] = {
    PROFILE_TEXT("framework"),
    { "from", IN_TEXT, .check = check_version },
    { "to", IN_TEXT, .flags = IN_OPTIONAL, .check = check_version },
};
static const struct in_shape versions_shape = IN_SHAPE(of_versions, NOT_A_MEMBER);

static const struct in_member of_column[] = {
    PROFILE_TEXT("id"),
    PROFILE_TEXT("title"),
    { "recipes", IN_ARRAY, .least = 1, .most = PROFILE_RECIPES_MAX - 1, .item = &a_text },
    { "extra_recipes", IN_ARRAY, .flags = IN_OPTIONAL, .item = &a_text },
    { "images", IN_ARRAY, .flags = IN_OPTIONAL, .item = &a_text },
    { "versions", IN_OBJECT, .flags = IN_OPTIONAL, .shape = &versions_shape },
};
static const struct in_shape column_shape = IN_SHAPE(of_column, NOT_A_MEMBER);
static const struct in_member a_column = { .kind = IN_OBJECT, .shape = &column_shape };

static const struct in_member of_image[] = { PROFILE_TEXT("name"),
                                             PROFILE_TEXT("framework") };
static const struct in_shape image_shape = IN_SHAPE(of_image, NOT_A_MEMBER);
static const struct in_member an_image = { .kind = IN_OBJECT, .shape = &image_shape };

static const struct in_member of_table[] = {
    PROFILE_TEXT("table"),
    PROFILE_TEXT("title"),
    PROFILE_TEXT("source"),
    { "recipes", IN_ARRAY, .least = 1, .item = &a_recipe },
    { "images", IN_ARRAY, .flags = IN_OPTIONAL, .item = &an_image },
    { "columns", IN_ARRAY, .least = 1, .item = &a_column },
    { "rows", IN_ARRAY, .least = 1 },
};
static const struct in_shape table_shape = IN_SHAPE(of_table, NOT_A_MEMBER);

enum err_code profile_distinct(const struct parser *p, const json_t *list,
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

bool profile_reads_as_code(const char *name)
{
    return strcmp(name, "DET") == 0 || strncmp(name, "NS", 2) == 0 ||
           strstr(name, " or ");
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
        if (profile_reads_as_code(recipes[i].name)) {
            return err_set(p->err, ERR_INVALID,
                           "%s: /recipes/%zu/name: '%.40s' would read as another code",
                           p->file, i, recipes[i].name);
        }
    }
    return profile_distinct(p, array, "recipes", "name");
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

/* The NAMES that the FIELD of COLUMN lists are distinct. */
static enum err_code check_once(struct parser *p, size_t column, const char *field,
                                const json_t *names)
{
    for (size_t i = 0; i < json_array_size(names); i++) {
        const json_t *name = json_array_get(names, i);

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
    }
    return check_once(p, column, field, names);
}

static enum err_code parse_images(struct parser *p, const json_t *array)
{
    struct profile_label *images = xcalloc(json_array_size(array) + 1, sizeof *images);
    size_t i;
    json_t *item;

    p->table->images = images;
    p->table->image_count = (int)json_array_size(array);
    json_array_foreach((json_t *)array, i, item)
    {
        images[i] =
            (struct profile_label){ in_text(item, "name"), in_text(item, "framework") };
    }
    return profile_distinct(p, array, "images", "name");
}

const char *profile_image(const struct profile_table *table, const char *name)
{
    for (int i = 0; i < table->image_count; i++) {
        if (strcmp(table->images[i].name, name) == 0) {
            return table->images[i].title;
        }
    }
    return NULL;
}

/* The NAMES of COLUMN are of the table's images. */
static enum err_code check_images(struct parser *p, size_t column, const json_t *names)
{
    size_t i;
    json_t *name;

    json_array_foreach((json_t *)names, i, name)
    {
        if (!profile_image(p->table, json_string_value(name))) {
            return err_set(p->err, ERR_INVALID,
                           "%s: /columns/%zu/images/%zu: not an image of this table",
                           p->file, column, i);
        }
    }
    return check_once(p, column, "images", names);
}

static enum err_code parse_columns(struct parser *p, const json_t *array)
{
    struct profile_label *columns = xcalloc(json_array_size(array), sizeof *columns);
    const json_t **images = xcalloc(json_array_size(array),
                                    sizeof *images); // NOLINT(bugprone-sizeof-expression)
    struct profile_versions *versions = xcalloc(json_array_size(array), sizeof *versions);
    size_t i;
    json_t *item;

    p->columns = array;
    p->table->column_versions = versions;
    p->table->columns = columns;
    p->table->column_images = images;
    p->table->column_count = (int)json_array_size(array);
    json_array_foreach((json_t *)array, i, item)
    {
        const json_t *all = json_object_get(item, "recipes");
        const json_t *extra = json_object_get(item, "extra_recipes");
        const json_t *of = json_object_get(item, "versions");

        columns[i] =
            (struct profile_label){ in_text(item, "id"), in_text(item, "title") };
        if (json_array_size(all) + json_array_size(extra) >= PROFILE_RECIPES_MAX) {
            return err_set(p->err, ERR_INVALID,
                           "%s: /columns/%zu: has more than %d recipes", p->file, i,
                           PROFILE_RECIPES_MAX - 1);
        }
        images[i] = json_object_get(item, "images");
        versions[i] = (struct profile_versions){ in_text(of, "framework"),
                                                 in_text(of, "from"), in_text(of, "to") };
        if (check_recipe_names(p, i, "recipes", all) != ERR_OK ||
            check_recipe_names(p, i, "extra_recipes", extra) != ERR_OK ||
            check_images(p, i, images[i]) != ERR_OK) {
            return p->err->code;
        }
    }
    return profile_distinct(p, array, "columns", "id");
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
        parse_images(p, json_object_get(json, "images")) != ERR_OK ||
        parse_columns(p, json_object_get(json, "columns")) != ERR_OK) {
        return p->err->code;
    }
    return profile_rows_parse(p, json, where);
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
    free((void *)table->column_images);
    free((void *)table->column_versions);
    free((void *)table->images);
    free((void *)table->recipes);
    json_decref(owned->json);
    free(owned->file);
    free(owned);
}
