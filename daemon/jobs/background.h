/* Background evidence: what is measured again while nobody asks for anything, so that
 * bounds fall and nothing grows stale.  Pure: time, cells and costs come in.
 *
 * Each device has a budget, a share of its time.  It saves up what it does not use, for
 * SAVED_MS at most; what a job takes beyond its savings is a debt, worked off before the
 * next.  So over a long time no device gives more than its share.
 *
 * What comes first: cells whose last run, or whose control's last variation, comes near
 * the age at which they are stale; then the cell with the weakest bound; then nothing,
 * until one of these needs it again.  A cell is measured together with its siblings that
 * need it, and with their controls, which have to vary again to vouch. */
#ifndef DAEMON_JOBS_BACKGROUND_H
#define DAEMON_JOBS_BACKGROUND_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/jobs/case.h"

enum {
    BACKGROUND_VARIANTS_MAX = 32,
    BACKGROUND_RUNS_MAX = 20, /* of each variant in one job */
    BACKGROUND_SAVED_MS = 60 * 1000
};

struct background_options {
    int64_t every_ms; /* between two looks at what is needed */
    int budget_ppm;   /* of a device's time; 0: nothing is measured */
    int target_ppm;   /* a bound that is lower needs no more runs */
    int64_t age_ms;   /* the target of ages; 0: cells do not grow stale */
};

/* The time of one device that may be used.  All zero at first. */
struct background_budget {
    int64_t saved_ms;   /* negative: a debt */
    int64_t rest_ppm;   /* of a millisecond, saved beyond these */
    int64_t counted_ms; /* until when; 0: never */
    int64_t spent_ms;   /* by all jobs */
};

/* Saves what DEVICE did not use until NOW_MS (monotonic).  The first call saves nothing.
 */
void background_save(struct background_budget *budget,
                     const struct background_options *options, int64_t now_ms);

/* A job took MS. */
void background_spend(struct background_budget *budget, int64_t ms);

/* What is known of a cell of a device's environment. */
struct background_cell {
    struct case_key key;
    bool is_control;
    int64_t completed;         /* runs */
    int64_t last_completed_ms; /* wall clock */
    int64_t vouched_ms;        /* when its control last varied; 0: nothing vouches */
    int64_t run_ms;            /* device time of a run, >= 1 */
};

/* How much a cell needs runs: 0 not at all; up to 1, its bound; more than 1, it is about
 * to be stale, or is.  Controls need none for themselves. */
double background_need(const struct background_cell *cell,
                       const struct background_options *options, int64_t now_ms);

/* Where the cells of one device stand; those of controls do not count. */
struct background_standing {
    int cells;
    int below_target;      /* their bounds are */
    double weakest_bound;  /* that a run differs (95 %); 0: there are no cells */
    int64_t oldest_run_ms; /* wall clock: the last run of the cell that waited longest */
};

/* Adds CELLS to STANDING, which is all zero at first. */
void background_stand(const struct background_cell *cells, int count,
                      const struct background_options *options,
                      struct background_standing *standing);

/* What is to be measured on one device. */
struct background_pick {
    struct case_key key; /* without a variant */
    char variants[BACKGROUND_VARIANTS_MAX][CASE_NAME_SIZE];
    int variant_count;
    int runs;        /* of each variant */
    double need;     /* of the cell that needs it most */
    int64_t cost_ms; /* about so much device time */
};

/* Chooses among the CELLS of one environment, with SAVED_MS to spend at NOW_MS (wall
 * clock).  False: nothing needs runs, or nothing can be afforded yet.  What costs more
 * than can ever be saved is chosen once all is saved. */
bool background_choose(const struct background_cell *cells, int count,
                       const struct background_options *options, int64_t saved_ms,
                       int64_t now_ms, struct background_pick *ret_pick);

#endif
