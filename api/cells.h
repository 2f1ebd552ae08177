/* What several answers say of a cell. */
#ifndef API_CELLS_H
#define API_CELLS_H

#include <stdbool.h>

#include "daemon/base/err.h"
#include "daemon/base/json_out.h"
#include "daemon/jobs/cell.h"

struct cell_spread;
struct cell_witness;
struct request;
struct tx;

/* Its verdict as of now, and why; MEASURED: and the one that is stored. */
void cell_verdict_show(const struct request *r, const struct cell *cell, bool measured,
                       struct json_out *out);

/* Which devices agree, what each showed (at most LIMIT), and who dissents. */
enum err_code cell_devices_show(const struct request *r, struct tx *tx,
                                const struct cell *cell, int limit, struct json_out *out,
                                struct err *err);

/* Member "witness" of CELL; WITNESS NULL: it has none. */
void cell_witness_json(const struct cell *cell, const struct cell_witness *witness,
                       struct json_out *out);

/* The same, which is looked for (db/views/cell_witness.h). */
enum err_code cell_witness_show(struct tx *tx, const struct cell *cell,
                                struct json_out *out, struct err *err);

/* Member "spread": how much it varies; SPREAD NULL: it does not. */
void cell_spread_json(struct json_out *out, const struct cell *cell,
                      const struct cell_spread *spread);

#endif
