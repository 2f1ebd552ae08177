#include "db/views/class_conditions.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/jobs/options.h"
#include "db/tx.h"

struct class_shown {
    int64_t cell;
    char options[RUN_OPTIONS_SIZE];
    char digest[DIGEST_TEXT_SIZE]; /* "": several */
};

enum err_code class_conditions_read(struct tx *tx,
                                    struct class_conditions *ret_conditions,
                                    struct err *err)
{
    struct class_conditions *c = ret_conditions;
    struct query q;

    *c = (struct class_conditions){ NULL, 0 };
    query_begin(&q, tx,
                "SELECT x.cell, x.options, iif(count(x.digest) = count(*)"
                " AND min(x.digest) = max(x.digest), min(x.digest), '')"
                " FROM (SELECT DISTINCT cell FROM cell_device WHERE options <> '') n"
                " CROSS JOIN cell_device x ON x.cell = n.cell"
                " GROUP BY x.cell, x.options ORDER BY x.cell, x.options");
    while (query_step(&q)) {
        struct class_shown *shown;

        c->shown = xgrow(c->shown, c->count, sizeof *c->shown);
        shown = &c->shown[c->count++];
        query_take(&q, &shown->cell, shown->options, shown->digest);
    }
    return query_end(&q, err);
}

void class_conditions_release(struct class_conditions *conditions)
{
    free(conditions->shown);
    *conditions = (struct class_conditions){ NULL, 0 };
}

/* What CELL showed under all conditions, RET_COUNT of them; none if these are plain. */
static const struct class_shown *shown_by(const struct class_conditions *c,
                                          const struct class_cell *cell, int *ret_count)
{
    int low = 0;
    int high = c->count;

    while (low < high) {
        int middle = low + (high - low) / 2;

        if (c->shown[middle].cell < cell->id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (*ret_count = 0;
         low + *ret_count < c->count && c->shown[low + *ret_count].cell == cell->id;
         (*ret_count)++) {
    }
    return c->shown + low;
}

/* Whether CELL was measured under OPTIONS; then RET_DIGEST is what it showed, "" where
 * that is several digests. */
static bool measured(const struct class_conditions *c, const struct class_cell *cell,
                     const char *options, const char **ret_digest)
{
    int count;
    const struct class_shown *shown = shown_by(c, cell, &count);

    *ret_digest = cell->digest;
    if (cell->runs == 0 || count == 0) {
        return cell->runs > 0 && *options == '\0';
    }
    for (int i = 0; i < count; i++) {
        if (strcmp(shown[i].options, options) == 0) {
            *ret_digest = shown[i].digest;
            return true;
        }
    }
    return false;
}

static int count_measured(const struct class_conditions *c, const struct gathered *cells,
                          int count, const char *options)
{
    const char *digest;
    int measured_there = 0;

    for (int i = 0; i < count; i++) {
        measured_there += measured(c, &cells[i].cell, options, &digest);
    }
    return measured_there;
}

void class_conditions_apply(const struct class_conditions *conditions,
                            struct gathered *cells, int count)
{
    const char *chosen = "";
    int most = count_measured(conditions, cells, count, chosen);

    for (int i = 0; i < count; i++) {
        int rows;
        const struct class_shown *shown = shown_by(conditions, &cells[i].cell, &rows);

        for (int r = 0; r < rows; r++) {
            const char *options = shown[r].options;
            int there = count_measured(conditions, cells, count, options);

            if (there > most ||
                (there == most && *chosen && strcmp(options, chosen) < 0)) {
                chosen = options;
                most = there;
            }
        }
    }
    for (int i = 0; i < count; i++) {
        struct class_cell *cell = &cells[i].cell;
        const char *digest;

        if (cell->runs == 0) {
            continue;
        }
        cell->apart = !measured(conditions, cell, chosen, &digest);
        if (cell->apart) {
            cell->digest[0] = '\0';
        } else {
            memmove(cell->digest, digest, strlen(digest) + 1);
        }
    }
}
