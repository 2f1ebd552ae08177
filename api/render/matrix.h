/* The documents view of the matrix: for a terminal, as JSON and as CSV. */
#ifndef API_RENDER_MATRIX_H
#define API_RENDER_MATRIX_H

#include "daemon/base/buf.h"
#include "daemon/base/json_out.h"
#include "daemon/evidence/matrix.h"

/* At most 120 columns; the measured facts are at its end. */
void matrix_text(const struct matrix *matrix, struct buf *buf);

/* The measured facts alone: a line a variant. */
void matrix_facts_text(const struct matrix *matrix, struct buf *buf);

void matrix_json(const struct matrix *matrix, struct json_out *out);
void matrix_csv(const struct matrix *matrix, struct buf *buf);

#endif
