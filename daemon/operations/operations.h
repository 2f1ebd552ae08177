/* Operations of a framework in one environment: what was seen of each, and which of the
 * framework's own switches made it reproducible.  Pure. */
#ifndef DAEMON_OPERATIONS_OPERATIONS_H
#define DAEMON_OPERATIONS_OPERATIONS_H

#include "daemon/evidence/matrix.h"

enum { OPERATION_VARIANTS_MAX = PROFILE_RECIPES_MAX };

/* One workload of a pack; everything is borrowed from the matrix. */
struct operation {
    const char *workload;
    const struct matrix_variant *variants[OPERATION_VARIANTS_MAX]; /* the control first */
    int count;
    /* The code names the variants that cure it.  A variant that cannot be computed here
     * is no attempt: whether it raises or is not known to this version, its runs say. */
    struct solution solution;
};

/* The next operation of FRAMEWORK (a subject_name) among MATRIX's variants from *AT,
 * which moves behind it.  False: there is none. */
bool operations_next(const struct matrix *matrix, const char *framework, int *at,
                     struct operation *ret_operation);

/* How the digests of two operations compare, variant by variant. */
enum operation_bits {
    OPERATION_BITS_UNKNOWN, /* no variant has one digest in both */
    OPERATION_BITS_SAME,    /* all that have one in both have the same */
    OPERATION_BITS_OTHER,
    OPERATION_BITS_STATES
};
const char *operation_bits_name(enum operation_bits bits);
enum operation_bits operation_bits(const struct operation *before,
                                   const struct operation *after);

#endif
