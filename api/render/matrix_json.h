/* The documents view of the matrix, as JSON and as CSV. */
#ifndef API_RENDER_MATRIX_JSON_H
#define API_RENDER_MATRIX_JSON_H

#include "daemon/base/buf.h"
#include "daemon/base/json_out.h"
#include "daemon/evidence/matrix.h"

void matrix_json(const struct matrix *matrix, struct json_out *out);
void matrix_csv(const struct matrix *matrix, struct buf *buf);

#endif
