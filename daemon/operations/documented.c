#include "daemon/operations/documented.h"

#include <stdlib.h>
#include <string.h>

/* The next number of *TEXT, which moves behind it and a dot; -1: there is none. */
static long next_number(const char **text)
{
    char *end;
    long number;

    if (**text < '0' || **text > '9') {
        return -1;
    }
    number = strtol(*text, &end, 10);
    *text = *end == '.' ? end + 1 : end;
    return number;
}

/* How VERSION is to BOUND, as far as BOUND goes: 2.7.1 is 2.7, 2.10 is greater. */
static int compare(const char *version, const char *bound)
{
    for (;;) {
        long limit = next_number(&bound), number = next_number(&version);

        if (limit < 0) {
            return 0;
        }
        if (number != limit) {
            return number > limit ? 1 : -1;
        }
    }
}

int documented_column(const struct profile_table *table, const char *framework,
                      const char *version)
{
    for (int i = 0; version && i < table->column_count; i++) {
        const struct profile_versions *v = &table->column_versions[i];

        if (v->framework && strcmp(v->framework, framework) == 0 &&
            compare(version, v->from) >= 0 && (!v->to || compare(version, v->to) <= 0)) {
            return i;
        }
    }
    return -1;
}

static bool names(const json_t *operations, const char *operation)
{
    size_t i;
    json_t *name;

    json_array_foreach((json_t *)operations, i, name)
    {
        if (strcmp(json_string_value(name), operation) == 0) {
            return true;
        }
    }
    return false;
}

bool documented_next(const struct profile_table *table, const char *operation,
                     const char *framework, const char *version, const char *backend,
                     int *at, struct documented *ret_documented)
{
    for (; *at < table->row_count; ++*at) {
        const struct profile_row *row = &table->rows[*at];

        if (row->is_source && names(row->operations, operation)) {
            *ret_documented = (struct documented){
                .table = table,
                .row = row,
                .column = documented_column(table, framework, version),
                .applies = backend && strcmp(backend, row->backend) == 0,
            };
            ++*at;
            return true;
        }
    }
    return false;
}

const char *documented_code(const struct documented *documented)
{
    return documented->column < 0 ? NULL
                                  : documented->row->cells[documented->column].documented;
}
