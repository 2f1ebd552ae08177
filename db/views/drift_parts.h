/* What the readers of drift share.  Private to db/views/. */
#ifndef DB_VIEWS_DRIFT_PARTS_H
#define DB_VIEWS_DRIFT_PARTS_H

#include "db/views/classes.h"
#include "db/views/drift.h"

/* An environment and who is named there; drift_read_end: and the places that have it. */
enum err_code drift_read_facts(struct tx *tx, const char *id, struct drift_end *end,
                               struct err *err);
enum err_code drift_read_end(struct tx *tx, const char *id, struct drift_end *end,
                             struct err *err);

/* Adds a case of which CELL is one side. */
void drift_add_cell(struct drift *drift, const struct class_cell *cell, bool to);

/* Says that algorithms were chosen in each run, if they were. */
void drift_name_algorithms(struct drift_side *side);

enum err_code drift_read_contested(struct tx *tx, struct drift_case *x, struct err *err);

#endif
