#include <stdlib.h>
#include <string.h>

#include "daemon/base/embed.h"
#include "daemon/base/mem.h"
#include "workloads/evidence/profile.h"

enum { TABLES_MAX = 32 };

struct profile_set {
    struct profile_table *tables[TABLES_MAX];
    int count;
    struct err err;
};

static void load_one(void *arg, const struct embed *file)
{
    struct profile_set *set = arg;
    struct profile_table *table = NULL;

    if (set->err.code != ERR_OK) {
        return;
    }
    if (set->count == TABLES_MAX) {
        err_set(&set->err, ERR_TOO_LARGE, "more than %d profile tables", TABLES_MAX);
    } else if (profile_parse(file->name, file->start, embed_size(file), &table,
                             &set->err) == ERR_OK) {
        set->tables[set->count++] = table;
    }
}

enum err_code profile_set_load(struct profile_set **ret_set, struct err *err)
{
    struct profile_set *set = xcalloc(1, sizeof *set);

    embed_each("workloads/profiles/", load_one, set);
    if (set->err.code != ERR_OK) {
        *err = set->err;
        profile_set_free(set);
        return err->code;
    }
    *ret_set = set;
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
