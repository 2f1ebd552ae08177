#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/embed.h"
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

    if (set->err.code == ERR_OK) {
        load_text(set, file->name, file->start, embed_size(file));
        set->built_in = set->count;
    }
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
