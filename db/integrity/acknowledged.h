/* What a person acknowledged of a damaged database (db/integrity/accept.h), for a check
 * that need not tell it again: faults, by the line that tells them, and cells. */
#ifndef DB_INTEGRITY_ACKNOWLEDGED_H
#define DB_INTEGRITY_ACKNOWLEDGED_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"

struct tx;

struct acknowledged {
    char **lines; /* of table accepted_loss, in the order of strcmp */
    int64_t
        *cells; /* in quarantine, all of whose rows there are acknowledged; ascending */
    int line_count, cell_count;
};

/* Released with acknowledged_release, whatever it returned. */
enum err_code acknowledged_load(struct tx *tx, struct acknowledged *ret_acknowledged,
                                struct err *err);
void acknowledged_release(struct acknowledged *acknowledged);

bool acknowledged_has_line(const struct acknowledged *acknowledged, const char *line);

/* Its place among those cells, whose verdicts are inconclusive whatever their runs give;
 * -1: it is none. */
int acknowledged_cell(const struct acknowledged *acknowledged, int64_t cell);

#endif
