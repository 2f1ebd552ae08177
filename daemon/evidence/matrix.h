/* The documents view of the matrix: every row and column of a table of profiles with the
 * code that the cells of one environment earn, and the measured facts behind it.  Pure:
 * cells come in one by one, in the order of cells_each. */
#ifndef DAEMON_EVIDENCE_MATRIX_H
#define DAEMON_EVIDENCE_MATRIX_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/evidence/profile.h"
#include "daemon/evidence/rate.h"
#include "daemon/evidence/relation.h"
#include "daemon/evidence/solution.h"
#include "daemon/jobs/cell.h"
#include "daemon/jobs/device.h"

/* What is known about one variant of one workload, over its cases. */
struct matrix_variant {
    struct case_key key; /* of the cell whose verdict it carries */
    bool is_control;
    enum subject subject;
    char subject_name[SUBJECT_NAME_SIZE]; /* "" for a model */
    struct variant_knowledge known;
    int64_t cell;                      /* that cell */
    char digest[DIGEST_TEXT_SIZE];     /* of that cell */
    int64_t distinct_digests;          /* of that cell */
    int64_t claimed, warned;           /* of that cell: as in struct evidence */
    bool departs;                      /* that cell, as far as departures_of tells */
    struct departures departures;      /* if it does */
    int64_t mean_ns;                   /* of that cell's iterations; 0: unknown */
    struct quartiles times;            /* of that cell */
    struct cost cost;                  /* of that cell; where that is too short on a GPU,
                                          of the same case in another size that is not: the
                                          one whose control is the fastest.  Not known of
                                          controls */
    char cost_against[CASE_NAME_SIZE]; /* the control's variant */
    char cost_size[CASE_NAME_SIZE];    /* of both; "" where there is no control */
    const struct relation *relation;   /* what is expected of its digest; NULL: nothing */
    enum relation_seen seen; /* over all cases in which both variants have one digest
                                each: a departure, if one of them shows it */
    const struct case_key *seen_in; /* such a case; NULL: there is none */
};

/* The times of a case: of a control's, with which others of its subject are compared, or
 * of one that is compared. */
struct matrix_base {
    struct case_key key;
    enum subject subject;
    struct quartiles times;
};

/* The digest of a case that has one, where something is expected of it. */
struct matrix_bits {
    struct case_key key;
    char digest[DIGEST_TEXT_SIZE];
};

struct matrix {
    const struct profile_table *table; /* borrowed */
    struct relations relations;        /* which digests have to equal or differ */
    int64_t as_of_ms;
    bool historic;          /* as_of was asked for */
    int64_t stale_after_ms; /* 0: never */
    int64_t valid_until_ms; /* when time alone changes it: the next cell becomes stale */
    bool has_environment;
    struct environment environment;
    char *environment_json; /* owned; NULL without an environment */
    json_t *facts;          /* the same, parsed by matrix_settle; owned */
    enum subject only; /* rows and variants that are shown; SUBJECT_COUNT: all.  Set it
                          before matrix_settle */
    struct matrix_variant *variants; /* by workload, then variant */
    int variant_count;
    struct matrix_base *bases; /* in the order the cells came in */
    int base_count;
    struct matrix_base *timed; /* likewise: what has runs enough, and is no control */
    int timed_count;
    struct matrix_bits *bits; /* likewise */
    int bits_count;
    struct solution *solutions; /* row by row; absent cells have SOLUTION_ABSENT */
};

/* TABLE is borrowed.  The relations of CATALOGUE are copied; NULL: none are expected.
 * HISTORIC: AS_OF_MS was asked for, else it is now. */
void matrix_init(struct matrix *matrix, const struct profile_table *table,
                 const struct catalogue *catalogue, int64_t as_of_ms, bool historic,
                 int64_t stale_after_ms);
void matrix_release(struct matrix *matrix);

/* Takes in one cell of the environment. */
void matrix_add(struct matrix *matrix, const struct cell *cell);

/* After the last cell: drops what a newer version supersedes and derives the codes. */
void matrix_settle(struct matrix *matrix);

const struct solution *matrix_solution(const struct matrix *matrix, int row, int column);

/* NULL if no cell of that subject told of it. */
const struct matrix_variant *matrix_find(const struct matrix *matrix,
                                         const char *workload, const char *variant,
                                         enum subject subject);

/* What is known of a choice of ROW, of what it names; NULL if nothing, or if it raises.
 */
const struct matrix_variant *matrix_chosen(const struct matrix *matrix,
                                           const struct profile_row *row,
                                           const struct profile_choice *choice);

/* The row's subject for people: "cuDNN 9.12.0", "our models"; "no model" where no
 * workload stands for its source. */
void matrix_row_subject(const struct matrix *matrix, int row,
                        char ret_text[SUBJECT_TEXT_SIZE]);

bool matrix_shows_row(const struct matrix *matrix, int row);

/* Whether the code is the documented one: 1, 0, or -1 where one of the two is missing. */
int matrix_agrees(const struct matrix *matrix, int row, int column);

#endif
