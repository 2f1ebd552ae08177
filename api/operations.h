/* What GET /v1/operations is made of: read by api/operations.c, shown by
 * api/render/operations_json.c. */
#ifndef API_OPERATIONS_H
#define API_OPERATIONS_H

#include "daemon/base/json_out.h"
#include "daemon/operations/documented.h"
#include "daemon/operations/operations.h"
#include "db/views/operations.h"

struct tx;

enum { OPERATIONS_ENVIRONMENTS_MAX = 32 };

/* What one environment has of one framework. */
struct operations_column {
    const char *framework;
    const char *version; /* NULL: not known */
    struct matrix matrix;
    struct operation_cases cases;
    int before; /* the column that it is compared with; -1: none */
};

struct operations_row {
    int column;
    struct operation operation;
};

/* A row that is shown: of one source of the table that was asked for. */
struct operations_line {
    const struct operations_row *row;
    struct documented documented; /* table NULL: of all tables */
};

struct operations_table {
    char framework[SUBJECT_NAME_SIZE]; /* "": all */
    int64_t now_ms, stale_after_ms;
    const struct profile_set *profiles;
    const struct profile_table *only; /* its rows; NULL: whatever was measured */
    struct framework_environment *environments;
    int left_out; /* environments beyond OPERATIONS_ENVIRONMENTS_MAX */
    struct operations_column columns[OPERATIONS_ENVIRONMENTS_MAX];
    int column_count;
    struct operations_row *rows;
    int row_count;
    struct operations_line *lines;
    int line_count;
};

/* As documented_next, for ROW. */
bool operations_documented(const struct operations_table *table,
                           const struct operations_row *row,
                           const struct profile_table *profile, int *at,
                           struct documented *ret_documented);

/* One item; ERR of what it reads of runs. */
enum err_code operations_line_json(struct tx *tx, const struct operations_table *table,
                                   const struct operations_line *line,
                                   struct json_out *out, struct err *err);

#endif
