/* What the digests of an environment's cells say about what is expected of them. */
#ifndef DAEMON_EVIDENCE_MATRIX_RELATIONS_H
#define DAEMON_EVIDENCE_MATRIX_RELATIONS_H

#include "daemon/evidence/matrix.h"

/* Keeps the digest of CELL if it is its only one, and something is expected of it or of
 * another beside it. */
void matrix_relations_add(struct matrix *matrix, const struct cell *cell);

/* Sets the relation of V, one of MATRIX, and what is seen of it: over all cases in which
 * both variants have one digest each, and what departs in one of them is what is seen.
 * After the last cell. */
void matrix_relations_tell(const struct matrix *matrix, struct matrix_variant *v);

#endif
