/* What `reprod preflight` concludes about each device of a machine, and about the
 * machine. Pure: it reads answers of the API.
 *
 * A device passes only by what was shown: each case that it was to compute completed,
 * gave one digest, is reproducible (so its control varied), and gave the same digest on
 * an equal: another device of the machine, or another one that the baseline knows.
 * Slices of one GPU are no equals of each other.
 *
 *   dissents    it gives other bits: than most of its equals here, than the baseline,
 *               than its only equal, than itself, or than the float64 reference allows
 *   failed      nothing of it could be measured
 *   unverified  anything else; others use it, or a case varies on most devices alike,
 *               which says nothing of a device
 *
 * The machine dissents if a device does; else it is failed, unverified or passed as its
 * worst device.  A machine with fewer or more GPUs than expected is failed, and one that
 * could not be compared with the baseline that was asked for is unverified, too where
 * that knows nothing of a device's environment. */
#ifndef DAEMON_CLIENT_PREFLIGHT_JUDGE_H
#define DAEMON_CLIENT_PREFLIGHT_JUDGE_H

#include <jansson.h>
#include <stdbool.h>

enum preflight_verdict {
    PREFLIGHT_PASSED,
    PREFLIGHT_DISSENTS,
    PREFLIGHT_UNVERIFIED,
    PREFLIGHT_FAILED,
    PREFLIGHT_VERDICTS
};

/* "passed", "dissents", "unverified", "failed". */
const char *preflight_verdict_name(enum preflight_verdict verdict);

/* PREFLIGHT_FAILED for what is none.  Verdicts are exit statuses, too. */
enum preflight_verdict preflight_verdict_of(const char *name);

struct preflight_seen {
    const json_t *devices; /* of GET /v1/devices: those that were to be measured */
    const json_t *items; /* of GET /v1/jobs/{id}, each with "job", the id; of a case that
                            was asked again the last counts */
    const json_t *runs;  /* of GET /v1/runs: all of these jobs */
    const json_t *cells; /* of GET /v1/cells/{id}, with all of "devices" */
    const json_t *used;  /* ids of devices that others use; NULL: none is known */
    const json_t *baseline;     /* NULL: none */
    const char *baseline_error; /* why the one that was asked for is not known; or NULL */
    const char *failure;        /* why nothing was measured; or NULL */
    int gpus;                   /* so many are expected; 0: any number */
};

/* A new value, caller releases:
 *
 *   {"verdict","cause","gpus":8,"devices":[{"uuid","model","backend","verdict","cause",
 *    "used":false,"cases":{"equal":6,"different":0,"unverified":0,"alone":0},
 *    "equals":{"here":7,"baseline":12}}]}
 *
 * "alone" are those of the unverified that lack nothing but an equal.  "equals" is of the
 * case that has fewest, and null for a device that does not pass. */
json_t *preflight_judge(const struct preflight_seen *seen);

#endif
