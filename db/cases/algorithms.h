/* Which algorithms the completed runs of a cell say that they used.  A cell with one
 * digest may have several: the choice does not show in its bits, and whoever reads the
 * verdict has to know that they are of more than one.  Private to db/;
 * cells_each_algorithm of db/cells.h lists them. */
#ifndef DB_CASES_ALGORITHMS_H
#define DB_CASES_ALGORITHMS_H

#include <stdint.h>

#include "daemon/base/err.h"

struct tx;

/* RUNS completed runs of CELL said ALGORITHM; "": none, which is not counted. */
enum err_code cell_algorithms_add(struct tx *tx, int64_t cell, const char *algorithm,
                                  int64_t runs, struct err *err);

/* How many different ones. */
enum err_code cell_algorithms_count(struct tx *tx, int64_t cell, int64_t *ret_count,
                                    struct err *err);

/* The second opinion: what the stored runs give, by SQL of its own.  Calls DIFFERS with
 * both as texts if it is not what is stored. */
enum err_code cell_algorithms_recompute(struct tx *tx, int64_t cell,
                                        void (*differs)(void *arg, const char *what,
                                                        const char *stored,
                                                        const char *fresh),
                                        void *arg, struct err *err);

#endif
