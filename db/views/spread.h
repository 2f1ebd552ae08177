/* How much a cell varies, where it does: read from its runs when somebody asks. */
#ifndef DB_VIEWS_SPREAD_H
#define DB_VIEWS_SPREAD_H

#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/base/id.h"
#include "daemon/trace/spread.h"

struct tx;

/* Rows of runs, the newest, and rows of summaries that are looked at. */
enum { CELL_SPREAD_ROWS_MAX = 10000 };

struct cell_spread {
    /* Completed runs, folded ones too, each with the sum and loss of its last iteration:
     * those of others are not stored.  Left out: runs whose row is not what was stored,
     * and what is beyond CELL_SPREAD_ROWS_MAX. */
    int64_t runs;
    struct spread weight_sum, loss; /* fewer runs: the others have none */
    /* The newest localisation that compared elements which two runs of this cell
     * captured, "" if there is none; what it has to say of them.  Caller frees it. */
    char localisation[ID_SIZE];
    char *search, *difference; /* as in struct localisation */
};

/* Of cell ID; one without runs has none.  Caller releases it after ERR_OK. */
enum err_code cell_spread_read(struct tx *tx, int64_t id, struct cell_spread *ret_spread,
                               struct err *err);
void cell_spread_release(struct cell_spread *spread);

#endif
