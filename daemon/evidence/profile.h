/* Profiles: framework eras as data.  A table is one JSON file (those in
 * workloads/profiles/ are built in, the configuration may name more): columns (profiles),
 * recipes, and for each row and subject which variant each recipe gives the workload.
 * Format: workloads/profiles/README.md. */
#ifndef DAEMON_EVIDENCE_PROFILE_H
#define DAEMON_EVIDENCE_PROFILE_H

#include <jansson.h>
#include <stdbool.h>

#include "daemon/base/err.h"
#include "daemon/evidence/catalogue.h"
#include "daemon/evidence/subject.h"

enum {
    PROFILE_RECIPES_MAX = 8,
    PROFILE_NAMES_MAX = 12 /* different libraries and frameworks of one table */
};

/* Of a recipe or of a column. */
struct profile_label {
    const char *name;  /* "TCD" */
    const char *title; /* "set TF_CUDNN_DETERMINISTIC to 1 or true" */
};

/* Of a framework, those that a column is of. */
struct profile_versions {
    const char *framework; /* "PyTorch"; NULL: the column is of no versions */
    const char *from;      /* "2.2" */
    const char *to;        /* "2.7", with 2.7.1; NULL: and all later ones */
};

/* What one recipe does to one workload in one profile. */
struct profile_choice {
    const char *recipe;  /* "none", or the name of a recipe of the column, in its order */
    const char *variant; /* NULL: asking for determinism raises an error instead */
};

/* One cell as the documents have it. */
struct profile_cell {
    bool absent; /* the documents have no such cell */
    struct profile_choice choices[PROFILE_RECIPES_MAX]; /* the first is "none" */
    int choice_count;       /* 0: no variant of this subject stands for it */
    const char *documented; /* the documents' solution code; NULL: they give none */
    const char *note;       /* footnote; NULL: none */
    int footnote;           /* its number, from 1, equal notes being one; 0: none */
};

/* A row of the documents, for one subject.  The first of a workload's rows is that of the
 * subject that its source names; the others say what else was measured of it. */
struct profile_row {
    const char *id;       /* of the source in its table: its workload, or what it says */
    const char *workload; /* NULL: no workload stands for it, and no cell has a choice */
    const char *title;
    const json_t *references; /* array of what documents say of it; NULL: none given */
    enum subject subject;
    const char *subject_name; /* "cuDNN"; NULL for a model */
    bool is_source;           /* the subject that the source names */
    int index;                /* of the row in the file */
    const json_t *operations; /* array: workloads of frameworks' packs that compute this
                                 very source; NULL: none */
    const char *backend;      /* what the documents speak of: "cuda", or "cpu" */
    const struct profile_cell *cells; /* one a column */
};

struct profile_table {
    const char *file; /* the name it was parsed with */
    const char *id, *title, *source;
    const struct profile_label *recipes;
    int recipe_count;
    const struct profile_label *columns; /* named by their ids */
    const json_t *const *column_images; /* of each, the names of its images; NULL: none */
    const struct profile_versions *column_versions; /* of each */
    int column_count;
    const struct profile_label *images; /* containers: "20.03", "TF 1.15, 2.1" */
    int image_count;
    const struct profile_row *rows;
    int row_count;
};

/* Parses one table; NAME (a file name) is for messages.  ERR_INVALID names the file and
 * the JSON pointer.  Caller frees with profile_free. */
enum err_code profile_parse(const char *name, const char *text, size_t length,
                            struct profile_table **ret_table, struct err *err);
void profile_free(struct profile_table *table); /* NULL is fine */

/* Whether NAME would read as a code that no recipe of that name earned: "DET", "NS…", or
 * one with " or ".  Codes are made of such names. */
bool profile_reads_as_code(const char *name);

/* What the image called NAME of TABLE is based on: "TF 1.15, 2.1"; NULL: there is none.
 */
const char *profile_image(const struct profile_table *table, const char *name);

/* Every workload that the table names is in the catalogue, and every variant exists
 * there, for some backend, with the subject under which it is named.  With MAY_LACK,
 * workloads that the catalogue lacks are passed over, and so are subjects that no variant
 * of a workload has. ERR_INVALID names file, pointer and the nearest name. */
enum err_code profile_check(const struct profile_table *table,
                            const struct catalogue *catalogue, bool may_lack,
                            struct err *err);

/* The tables that are built in, "documents-2020" first, then those of FILES (array of
 * paths, borrowed; NULL: none) in that order.  ERR_INVALID or ERR_IO names the file.
 * Caller frees with profile_set_free. */
struct profile_set;
enum err_code profile_set_load(const json_t *files, struct profile_set **ret_set,
                               struct err *err);

/* As profile_check for each table.  Those that are built in may name workloads that no
 * worker has: a fleet may run workers of its own, and what they lack stays unmeasured. */
enum err_code profile_set_check(const struct profile_set *set,
                                const struct catalogue *catalogue, struct err *err);
void profile_set_free(struct profile_set *set); /* NULL is fine */
int profile_set_count(const struct profile_set *set);
const struct profile_table *profile_set_at(const struct profile_set *set, int index);
const struct profile_table *profile_set_find(const struct profile_set *set,
                                             const char *id);

#endif
