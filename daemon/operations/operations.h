/* Operations of a framework in one environment: what was seen of each, and which of the
 * framework's own switches made it reproducible.  Pure. */
#ifndef DAEMON_OPERATIONS_OPERATIONS_H
#define DAEMON_OPERATIONS_OPERATIONS_H

#include "daemon/evidence/matrix.h"

enum {
    OPERATION_VARIANTS_MAX = 32,
    OPERATION_RUNS_MIN = 2 /* of a case, before its bits are compared */
};

/* One workload of a pack; everything is borrowed from the matrix. */
struct operation {
    const char *workload;
    const struct matrix_variant *variants[OPERATION_VARIANTS_MAX]; /* the control first */
    int count;
    int left_out; /* further variants; with any there is no code */
    /* The code names the variants that cure it.  A variant that cannot be computed here
     * is no attempt: whether it raises or is not known to this version, its runs say.  No
     * code is earned where a name would read as another code, or the names have no room
     * in one. */
    struct solution solution;
};

/* The next operation of FRAMEWORK (a subject_name) among MATRIX's variants from *AT,
 * which moves behind it.  False: there is none. */
bool operations_next(const struct matrix *matrix, const char *framework, int *at,
                     struct operation *ret_operation);

/* Cases of an environment that have one digest each, in OPERATION_RUNS_MIN runs or more:
 * with one run a case that varies looks as if it did not.  Zero-initialised is empty. */
struct operation_cases {
    struct operation_case {
        struct case_key key;
        char digest[DIGEST_TEXT_SIZE];
    } * list;
    int count;
};

/* Keeps CELL if it is such a case of FRAMEWORK. */
void operation_cases_add(struct operation_cases *cases, const char *framework,
                         const struct cell *cell);
void operation_cases_release(struct operation_cases *cases);

/* How the digests of OPERATION's cases compare, variant by variant and size by size. */
enum operation_bits {
    OPERATION_BITS_UNKNOWN, /* no case of its version has one digest in both */
    OPERATION_BITS_SAME,    /* all that have one in both have the same */
    OPERATION_BITS_OTHER,
    OPERATION_BITS_STATES
};
const char *operation_bits_name(enum operation_bits bits);
enum operation_bits operation_bits(const struct operation *operation,
                                   const struct operation_cases *before,
                                   const struct operation_cases *after);

#endif
