/* What the tables of the documents say of an operation of a framework in the era of its
 * version.  The documents speak of GPUs, in a few rows of the CPU: what was measured
 * elsewhere neither confirms nor refutes them.  Pure. */
#ifndef DAEMON_OPERATIONS_DOCUMENTED_H
#define DAEMON_OPERATIONS_DOCUMENTED_H

#include "daemon/evidence/profile.h"

struct documented {
    const struct profile_table *table;
    const struct profile_row *row; /* whose very source the operation computes */
    int column;                    /* of the version; -1: the table has none */
    bool applies; /* the row speaks of what the backend is: a GPU, or the CPU */
};

/* The next row from *AT, which moves behind it, that names OPERATION (a workload of a
 * pack).  VERSION of FRAMEWORK and BACKEND, "cpu" or "cuda": where it ran; NULL: not
 * known.  False: there is none. */
bool documented_next(const struct profile_table *table, const char *operation,
                     const char *framework, const char *version, const char *backend,
                     int *at, struct documented *ret_documented);

/* What the documents say there: their code, or NULL. */
const char *documented_code(const struct documented *documented);

/* The column of TABLE that VERSION ("2.4.1+cu121") of FRAMEWORK belongs to; -1: none. */
int documented_column(const struct profile_table *table, const char *framework,
                      const char *version);

#endif
