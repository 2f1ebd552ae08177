/* What a workload expects of a variant's digest: that it equals another variant's, or
 * that it differs.  A variant that leaves something out repeats as well as any other; a
 * relation tells whether leaving it out matters.  Pure. */
#ifndef DAEMON_EVIDENCE_RELATION_H
#define DAEMON_EVIDENCE_RELATION_H

#include <stdbool.h>

#include "daemon/evidence/catalogue.h"
#include "daemon/jobs/case.h"

struct relation {
    char workload[CASE_NAME_SIZE], variant[CASE_NAME_SIZE], other[CASE_NAME_SIZE];
    bool equal; /* expected */
};

struct relations {
    struct relation *list;
    int count;
};

/* Copies what CATALOGUE says; NULL says nothing. */
void relations_init(struct relations *relations, const struct catalogue *catalogue);
void relations_release(struct relations *relations);

/* NULL if nothing is expected, or RELATIONS is NULL.  Borrowed from RELATIONS. */
const struct relation *relations_find(const struct relations *relations,
                                      const char *workload, const char *variant);

/* Whether something is expected of VARIANT, or of another compared with it. */
bool relations_involve(const struct relations *relations, const char *workload,
                       const char *variant);

/* Unknown until both have one digest each for the same case. */
enum relation_seen { RELATION_UNKNOWN, RELATION_EQUAL, RELATION_DIFFERENT };

/* "equal", "different", or NULL for unknown. */
const char *relation_seen_name(enum relation_seen seen);

/* In words: "differs from ordered, as it must", or, with the case IN which that was seen
 * (NULL: unknown), "EQUALS ordered (small, float32, seed 1), but must differ from it". */
enum { RELATION_TEXT_SIZE = 4 * CASE_NAME_SIZE + 64 };
void relation_text(const struct relation *relation, enum relation_seen seen,
                   const struct case_key *in, char ret_text[RELATION_TEXT_SIZE]);

#endif
