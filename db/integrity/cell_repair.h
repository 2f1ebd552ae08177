/* A cell that is not what its runs give. */
#ifndef DB_INTEGRITY_CELL_REPAIR_H
#define DB_INTEGRITY_CELL_REPAIR_H

#include <stdint.h>

#include "daemon/base/err.h"

struct tx;

enum cell_repair {
    CELL_REBUILT,  /* it is what its runs give, which are all intact */
    CELL_ISOLATED, /* it is in quarantine, and judged so, as what depends on it */
};

/* Makes CELL right again if that can be known: where all its runs are what was stored,
 * and its own row either is not, or counts what they give.  One whose runs cannot be
 * read, since what they refer to is missing, is isolated. */
enum err_code cell_repair(struct tx *tx, int64_t cell, int64_t now_ms,
                          enum cell_repair *ret_repair, struct err *err);

#endif
