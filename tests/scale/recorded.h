/* Results of real runs, as record.py wrote them, and what reads such files.
 *
 * A line, with tabs: workload, variant, "control" or "", digest of the inputs,
 * elements, bytes of an iteration, algorithm, environment, libraries, what a check says
 * after its digest and sum, and recorded sums of weights, separated by blanks, each with
 * its digest behind a colon.  A control never shows a digest twice, as a real one. */
#ifndef TESTS_SCALE_RECORDED_H
#define TESTS_SCALE_RECORDED_H

#include <stddef.h>

enum { FIELDS = 11, SHOWN_MAX = 256 };

struct result {
    char *fields[FIELDS];
    char *sums[SHOWN_MAX], *digests[SHOWN_MAX];
    int shown;
};
enum {
    WORKLOAD,
    VARIANT,
    CONTROL,
    INPUTS,
    ELEMENTS,
    BYTES,
    ALGORITHM,
    ENVIRONMENT,
    LIBRARIES,
    CHECK,
    SHOWN
};

struct text {
    char *data;
    size_t length, capacity;
};

/* Ends the process. */
__attribute__((noreturn)) void die(const char *what);
void *must(void *memory); /* MEMORY, or ends the process */

void text_add(struct text *text, const char *data, size_t length);
char *read_file(const char *path); /* caller frees */

/* Reads the results of PATH, once. */
void recorded_read(const char *path);
const struct result *recorded_find(const char *workload, const char *variant);

#endif
