/* What each device showed in a cell, and which of them are named as dissenting
 * (daemon/evidence/dissent.h).  Counts are sums, minima and maxima, so the order in which
 * runs arrive does not matter.  But for the lists, private to db/. */
#ifndef DB_DISSENT_CELL_DEVICES_H
#define DB_DISSENT_CELL_DEVICES_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/base/id.h"
#include "daemon/evidence/dissent.h"
#include "daemon/evidence/verdict.h"
#include "daemon/jobs/run.h"

struct tx;

/* Completed runs of a device under the same conditions: one, with its digests, or several
 * that all gave the same one.  Borrowed. */
struct device_runs {
    const char *options, *state; /* the conditions; state as in device_states.h */
    const char *device, *first_run, *last_run; /* smallest and greatest id */
    int64_t runs, iterations;
    int64_t first_ms, last_ms; /* earliest start, latest end */
    const char *digest;        /* of their first iteration */
    const struct run_digest *digests;
    int digest_count;
};

/* What was known of the device under these conditions, RUNS included. */
struct device_effect {
    bool is_first;     /* nothing was known of it in this cell, under any conditions */
    int64_t varied_ms; /* when it last varied; 0: it did not */
};

/* Adds RUNS of CELL to the tables cell_device and cell_device_digest. */
enum err_code cell_devices_fold(struct tx *tx, int64_t cell,
                                const struct device_runs *runs,
                                struct device_effect *ret_effect, struct err *err);

/* After dissent_majorities: a digest that is out of bound of the reference is no majority
 * to depart from. */
enum err_code cell_devices_drop_wrong(struct tx *tx, int64_t cell,
                                      struct dissent_row *rows, int count,
                                      struct err *err);

/* The rows of a cell, judged. */
struct cell_devices {
    struct dissent_row *rows;
    int count;
    struct dissent dissent;
    struct cell_device_texts *texts; /* what the rows borrow */
};
enum err_code cell_devices_load(struct tx *tx, int64_t cell,
                                struct cell_devices *ret_devices, struct err *err);
void cell_devices_release(struct cell_devices *devices);

/* What judging a cell needs of them.  CONDITIONS: those under which its control varied;
 * NULL: it did not. */
enum err_code cell_devices_agreement(struct tx *tx, int64_t cell, const char *conditions,
                                     struct agreement *ret_agreement, struct err *err);

/* Stores who is named in CELL now, and tells of whoever is named or cleared by an event
 * "dissent".  RUN: the one whose storing changed it, "" if none. */
enum err_code cell_dissenters_store(struct tx *tx, int64_t cell, const char *run,
                                    int64_t now_ms, struct err *err);

/* The second opinion: what the stored runs give, by SQL of its own, against what is
 * stored.  Calls DIFFERS with both as texts. */
enum err_code cell_devices_recompute(struct tx *tx, int64_t cell,
                                     void (*differs)(void *arg, const char *what,
                                                     const char *stored,
                                                     const char *fresh),
                                     void *arg, struct err *err);

#endif
