/* What a matrix shows, counted by subject: never one number for what our models and what
 * a library did. */
#ifndef DAEMON_EVIDENCE_MATRIX_COUNT_H
#define DAEMON_EVIDENCE_MATRIX_COUNT_H

#include "daemon/evidence/matrix.h"

/* The cells of the rows that are shown, of one subject by name. */
struct matrix_tally {
    enum subject subject;
    const char *name; /* NULL for a model; borrowed */
    int cells;        /* all but absent ones and those of sources without a workload */
    int states[SOLUTION_STATES];
    int agree, differ; /* of those with a measured code, with what the documents say */
    int facts;         /* different variants that the measured codes rest on */
};

enum { MATRIX_TALLIES_MAX = PROFILE_NAMES_MAX + 1 };

/* Returns how many: frameworks, then libraries, then models. */
int matrix_count(const struct matrix *matrix,
                 struct matrix_tally ret_tallies[MATRIX_TALLIES_MAX]);

enum { MATRIX_HEADLINE_SIZE = 2048 };

/* One sentence: whose computations the codes are of, and who took no part. */
void matrix_headline(const struct matrix *matrix, char ret_text[MATRIX_HEADLINE_SIZE]);

#endif
