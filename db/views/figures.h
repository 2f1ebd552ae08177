/* What a scrape tells of cells and changes (GET /metrics): sums over all cells, the cells
 * that are worse than they were, and what the newest change of each host did.  Costs as
 * much as there are cells, however many runs; of those that are worse, two runs each. */
#ifndef DB_VIEWS_FIGURES_H
#define DB_VIEWS_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/base/id.h"
#include "daemon/evidence/verdict.h"
#include "daemon/jobs/case.h"

struct tx;

struct cell_figures {
    int64_t cells[VERDICT_COUNT]; /* as of NOW_MS */
    int64_t runs[OUTCOME_COUNT], iterations;
};
enum err_code figures_of_cells(struct tx *tx, int64_t now_ms, int64_t stale_after_ms,
                               struct cell_figures *ret_figures, struct err *err);

/* In use is what the devices that their hosts have reported last, with stacks that are
 * configured: STACKS is a JSON object with an array of names by host, null where they are
 * not known (struct api_figures).
 *
 * The cells of environments in use that regressed: each was reproducible, or had one
 * digest in VERDICT_MIN_RUNS runs, and a run of a later job, or a person's or a rule's
 * decision, made it something else, which it still is.  What shows within the job that
 * measured first is a finding, and no regression; a control is to vary; where devices
 * disagree, one that is named must be in use there; and a cell whose proof waits
 * (verdict_waits) is no worse. */
struct regressed_cell {
    int64_t cell, since_ms; /* when it became what it is */
    struct case_key key;
    char environment[DIGEST_TEXT_SIZE];
    enum verdict verdict;
};
enum err_code figures_each_regressed(struct tx *tx, const char *stacks,
                                     void (*visit)(void *arg,
                                                   const struct regressed_cell *cell),
                                     void *arg, struct err *err);

/* The devices that are named in cells of environments in which they are in use, with in
 * how many; most first, then by name. */
enum err_code figures_each_dissenter(struct tx *tx, const char *stacks,
                                     void (*visit)(void *arg, const char *device,
                                                   int64_t cells),
                                     void *arg, struct err *err);

/* The newest change of each host of which drift was reported; REPORTS as of
 * db/views/changes.h. */
struct reported_change {
    const char *host, *reports; /* borrowed for the call */
    int64_t at_ms;
};
enum err_code figures_each_reported(struct tx *tx,
                                    void (*visit)(void *arg,
                                                  const struct reported_change *change),
                                    void *arg, struct err *err);

/* How many changes no drift was reported of yet. */
enum err_code figures_open_changes(struct tx *tx, int64_t *ret_seen,
                                   int64_t *ret_measuring, struct err *err);

/* Whether HOST, going from environment FROM to TO (ids), went back: it had TO before it
 * had FROM. */
enum err_code figures_went_back(struct tx *tx, const char *host, const char *from,
                                const char *to, bool *ret_back, struct err *err);

#endif
