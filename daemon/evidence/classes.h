/* Digest classes: cases as rows, environments or devices as columns, and in each row the
 * columns that showed the same digest under the same letter.  Pure.
 *
 * Letters are a row's own: A is the digest of its first column that has one.  So they
 * depend on the order of the columns alone, never on the order in which cells come in.
 * What varies has no letter, since none of its digests is the one of its column.  Nor has
 * what was measured under other conditions than the others of its row: these may be why
 * it differs. */
#ifndef DAEMON_EVIDENCE_CLASSES_H
#define DAEMON_EVIDENCE_CLASSES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/evidence/subject.h"
#include "daemon/evidence/verdict.h"
#include "daemon/jobs/case.h"

/* What the runs of a case in a column add up to. */
struct class_cell {
    struct case_key key;
    bool is_control;
    enum subject subject;
    char subject_name[SUBJECT_NAME_SIZE]; /* "" for a model */
    int64_t id;                           /* the cell's */
    enum verdict verdict;                 /* as it stands now */
    int64_t runs;                         /* completed */
    int64_t distinct_digests;
    bool damaged; /* it is not what was stored: then it has no runs and no digest */
    char digest[DIGEST_TEXT_SIZE]; /* the only one; "" where there is none or several */
    bool apart; /* it was measured, but not under the conditions (daemon/jobs/options.h)
                   under which its row is compared: then it has no digest here */
};

struct class_entry {
    int64_t cell; /* 0: nothing is known, and the verdict is `unmeasured` */
    int64_t runs;
    int digest; /* which of its row; -1: none, or several */
    enum verdict verdict;
    bool apart;  /* as of a cell: it says nothing of whether its column differs */
    int members; /* columns that it stands for (classes_merge) in which it was measured */
};

struct class_row {
    struct case_key key;
    bool is_control;
    enum subject subject;
    char subject_name[SUBJECT_NAME_SIZE];
    char (*digests)[DIGEST_TEXT_SIZE]; /* in the order in which they came in */
    int *letters;                      /* of each; 0 is A.  Filled by classes_settle */
    int digest_count;
    bool varies;  /* one of its columns has several digests */
    bool differs; /* two of its columns have different digests, or one varies and another
                     does not */
    struct class_entry *entries; /* one a column */
};

/* An environment, a device, devices of a host that agree, or the devices that show what
 * most show. */
struct class_column {
    char id[CASE_TITLE_SIZE]; /* of the environment or device; of several, their host, or
                               "majority" */
    char host[CASE_TITLE_SIZE];  /* of devices; "" of the majority */
    char model[CASE_TITLE_SIZE]; /* likewise */
    json_t *facts;               /* of an environment; owned; NULL: none are known */
    int64_t first_ms, last_ms;   /* when it was used */
    int members;                 /* how many devices it stands for; of environments 1 */
    int hosts;                   /* of the majority: how many it stands for; else 0 */
};

struct classes {
    struct class_column *columns;
    int column_count;
    struct class_row
        *rows; /* in order of workload, variant, size, dtype, seed, version */
    int row_count;
};

/* Takes COLUMNS over, in the order in which they are shown. */
void classes_init(struct classes *classes, struct class_column *columns, int count);
void classes_release(struct classes *classes);

/* Takes in what is known of a case in COLUMN, in any order; once for each of these. */
void classes_add(struct classes *classes, int column, const struct class_cell *cell);

/* The same in two steps, for a case with many columns: its row, which another case's may
 * move, and what is known of it in COLUMN. */
struct class_row *classes_row(struct classes *classes, const struct class_cell *cell);
void classes_put(struct class_row *row, int column, const struct class_cell *cell);

/* Removes the columns that stand for nothing (members 0); none of them has cells. */
void classes_drop_empty(struct classes *classes);

/* Makes one column of adjacent devices of a host where no two of them contradict each
 * other in any row: where both were measured, they have the same digest, or both none and
 * the same verdict.  Such a column has the weakest verdict of those that were measured,
 * and says how many these are. */
void classes_merge_hosts(struct classes *classes);

/* The same wherever they stand: makes the first column of all that in each row show what
 * most devices show there, or were not measured.  Nothing is done to fewer than two. */
void classes_merge_majority(struct classes *classes);

/* After the last cell: gives the letters, and says which rows differ.  BY_SIZE: A is the
 * digest of most columns (of equally many, the smallest), and so on; else the one of the
 * first column that has one. */
void classes_settle(struct classes *classes, bool by_size);

/* -1: it has none. */
int classes_letter(const struct class_row *row, const struct class_entry *entry);

/* How many digests ROW has; those of varying columns are not known here. */
int classes_count(const struct class_row *row);

/* "A", …, "Z", "AA", …; returns RET_NAME. */
enum { CLASS_NAME_SIZE = 8 };
const char *classes_name(int letter, char ret_name[CLASS_NAME_SIZE]);

/* The order of rows: < 0, 0, > 0. */
int classes_compare_keys(const struct case_key *a, const struct case_key *b);

#endif
