/* What a service knows a case to give, for `reprod baseline` and `reprod preflight`: the
 * digest of each case that is reproducible there, in each environment, and on how many
 * devices.
 *
 *   {"schema":"reprod.baseline/1","service":"http://…","version":"…","cases":[
 *     {"environment":"…","workload":"…","version":1,"variant":"…","size":"…","dtype":"…",
 *      "seed":"1","digest":"…","devices":12,"names":["GPU-…", …],"gpu":null,
 *      "runs":61}]}
 *
 * A case is in it where most devices that measured it agree, and what these showed is
 * reproducible: the control varied, and nothing was out of bound of its reference.
 * "names" are the first devices of these, and "gpu" is the GPU that all of them are, or
 * are slices of; null: they are of several. */
#ifndef DAEMON_CLIENT_BASELINE_H
#define DAEMON_CLIENT_BASELINE_H

#include <jansson.h>
#include <stdbool.h>

#include "daemon/client/http.h"

/* What SERVER knows of WORKLOADS, an array of names, in ENVIRONMENTS, an array of ids;
 * NULL: of all.  A new value, caller releases.  NULL: ERR says why. */
json_t *baseline_ask(const struct server *server, const json_t *workloads,
                     const json_t *environments, struct err *err);

/* Of the file PATH ("-": standard input): a new value, or NULL: ERR says what is wrong,
 * such as a case without a digest or its devices' names, or one that is there twice. */
json_t *baseline_read(const char *path, struct err *err);

/* Whether A and B, items of jobs or of a baseline, or cells, are of one case. */
bool baseline_same_case(const json_t *a, const json_t *b);

/* Whether NAMES, an array of texts or NULL, has NAME. */
bool baseline_lists(const json_t *names, const char *name);

/* The entry of ITEM's case in ENVIRONMENT, borrowed; NULL: there is none. */
const json_t *baseline_find(const json_t *baseline, const char *environment,
                            const json_t *item);

/* On how many devices other than DEVICE that entry was seen: none if it was seen on
 * slices of GPU alone, the GPU that DEVICE is a slice of ("": it is not known which). */
int64_t baseline_others(const json_t *entry, const char *device, const char *gpu);

/* The entry of the case of CELL, as GET /v1/cells/{id}/devices?state=agrees shows it: a
 * new value, or NULL: it does not belong into a baseline.  For baseline_ask. */
json_t *baseline_entry(const json_t *cell);

#endif
