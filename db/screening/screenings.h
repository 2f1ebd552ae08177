/* Screenings (daemon/evidence/screening.h) as rows: which devices need one, the jobs that
 * measure them, and what came of it.  Each step is one transaction, so each happens once,
 * whenever the service ends. */
#ifndef DB_SCREENING_SCREENINGS_H
#define DB_SCREENING_SCREENINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/evidence/screening.h"
#include "daemon/jobs/device.h"
#include "daemon/jobs/job.h"

struct tx;

enum { SCREENING_CASES_MAX = 1000 };

struct screening_seen {
    const struct device *device; /* as of devices_seen */
    const char *facts;           /* screening_facts, as text */
    int64_t returned_ms;         /* as in struct screening_present */
};

/* A host that is online says that it has SEEN's device.  Stores that (devices_seen), and
 * that the device has to be screened, where it has. */
enum err_code screenings_seen(struct tx *tx, const struct screening_seen *seen,
                              struct err *err);

/* DEVICE is there at NOW_MS: it is not away. */
enum err_code screenings_present(struct tx *tx, const char *device, int64_t now_ms,
                                 struct err *err);

struct screening {
    int64_t number;
    char device[CASE_TITLE_SIZE], host[CASE_TITLE_SIZE];
    char reason[CASE_NAME_SIZE];
    const char *words; /* borrowed for the call, as are these */
    int64_t at_ms;
    bool planned;                      /* it has jobs */
    char outcome[CASE_NAME_SIZE];      /* "": not yet */
    const char *cause, *counts, *jobs; /* JSON: an object or "", an array of ids */
    int64_t ended_ms;
};

/* Those that have no jobs yet, oldest first. */
enum err_code screenings_each_due(struct tx *tx, int limit,
                                  void (*visit)(void *arg, const struct screening *s),
                                  void *arg, struct err *err);

/* The newest of each device from FIRST to LAST, in the order of ids, that has one. */
enum err_code screenings_of_devices(struct tx *tx, const char *first, const char *last,
                                    void (*visit)(void *arg, const struct screening *s),
                                    void *arg, struct err *err);

/* How many devices wait for jobs, how many are measured, and how many have each outcome
 * (of their newest). */
struct screening_figures {
    int64_t due, measuring, outcomes[SCREENING_INCONCLUSIVE + 1];
};
enum err_code screenings_count(struct tx *tx, struct screening_figures *ret_figures,
                               struct err *err);

/* Whether any device ever had jobs of a screening. */
enum err_code screenings_any(struct tx *tx, bool *ret_any, struct err *err);

/* The cases of the newest versions that were measured on what is known to be alike
 * SCREENING's device: of the same model, with the same facts of a stack. */
enum err_code screenings_each_case(struct tx *tx, int64_t screening,
                                   void (*visit)(void *arg, const struct case_key *key,
                                                 const char *stack),
                                   void *arg, struct err *err);

/* Stores JOBS, which measure every device that they have items on and that is due. */
enum err_code screenings_plan(struct tx *tx, const struct job *jobs, int job_count,
                              int64_t now_ms, struct err *err);

/* SCREENING, which is not over, is over without anything to judge, with an event. */
enum err_code screenings_give_up(struct tx *tx, int64_t screening, const char *cause,
                                 int64_t now_ms, struct err *err);

#endif
