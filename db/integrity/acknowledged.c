#include "db/integrity/acknowledged.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "db/tx.h"

static enum err_code load_lines(struct tx *tx, struct acknowledged *a, struct err *err)
{
    struct query q;

    query_begin(&q, tx, "SELECT DISTINCT what FROM accepted_loss ORDER BY what");
    while (query_step(&q)) {
        a->lines = xgrow(a->lines, a->line_count, sizeof *a->lines);
        a->lines[a->line_count++] = xstrdup(query_borrow_text(&q));
    }
    return query_end(&q, err);
}

static enum err_code load_cells(struct tx *tx, struct acknowledged *a, struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT cell FROM quarantine GROUP BY cell"
                " HAVING count(*) = count(accepted_ms) ORDER BY cell");
    while (query_step(&q)) {
        a->cells = xgrow(a->cells, a->cell_count, sizeof *a->cells);
        a->cells[a->cell_count++] = query_take_int(&q);
    }
    return query_end(&q, err);
}

enum err_code acknowledged_load(struct tx *tx, struct acknowledged *ret_acknowledged,
                                struct err *err)
{
    *ret_acknowledged = (struct acknowledged){ .lines = NULL };
    return load_lines(tx, ret_acknowledged, err) == ERR_OK
               ? load_cells(tx, ret_acknowledged, err)
               : err->code;
}

void acknowledged_release(struct acknowledged *acknowledged)
{
    for (int i = 0; i < acknowledged->line_count; i++) {
        free(acknowledged->lines[i]);
    }
    free(acknowledged->lines);
    free(acknowledged->cells);
    *acknowledged = (struct acknowledged){ .lines = NULL };
}

static int compare_lines(const void *line, const void *other)
{
    return strcmp(line, *(char *const *)other);
}

bool acknowledged_has_line(const struct acknowledged *acknowledged, const char *line)
{
    return acknowledged->line_count > 0 &&
           bsearch(line, acknowledged->lines, (size_t)acknowledged->line_count,
                   sizeof acknowledged->lines[0], compare_lines);
}

static int compare_cells(const void *cell, const void *other)
{
    int64_t a = *(const int64_t *)cell, b = *(const int64_t *)other;

    return (a > b) - (a < b);
}

int acknowledged_cell(const struct acknowledged *acknowledged, int64_t cell)
{
    const int64_t *found =
        acknowledged->cell_count > 0
            ? bsearch(&cell, acknowledged->cells, (size_t)acknowledged->cell_count,
                      sizeof acknowledged->cells[0], compare_cells)
            : NULL;

    return found ? (int)(found - acknowledged->cells) : -1;
}
