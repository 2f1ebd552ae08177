/* Events of a run, from JSON to structs: every field that the protocol requires is there
 * and has the right form.  What the values have to be is daemon/run/run_fold.h's
 * business. */
#ifndef DAEMON_RUN_RUN_EVENT_H
#define DAEMON_RUN_RUN_EVENT_H

#include <jansson.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/jobs/case.h"

/* All texts and JSON are borrowed from the event. */
struct start_event {
    const char *workload, *variant, *size, *dtype, *backend, *device, *algorithm;
    const char *claim; /* NULL: none */
    const char *input_digest;
    int64_t protocol, version, pid, iterations, threads;
    uint64_t seed;
    const json_t *environment;   /* object of strings and integers */
    const json_t *libraries;     /* array of {"path", "build_id"} */
    const json_t *circumstances; /* object (run_circumstances.h), null, or NULL: none */
    const json_t *telemetry;     /* object (run_telemetry.h), null, or NULL: none */
};

struct iteration_event {
    int64_t index, ns;
    const char *digest, *weight_sum, *algorithm;
    const char *loss; /* NULL: none */
};

struct end_event {
    const char *outcome, *device, *input_digest;
    const char *cause; /* NULL: none */
    int64_t iterations, elements, bytes_hashed;
    int64_t probes_dropped;  /* records that the program left out */
    const json_t *libraries; /* as in start_event; NULL: the same as then */
    const json_t *telemetry; /* as in start_event */
};

/* ERR_PROTOCOL says what is missing or malformed. */
enum err_code start_event_read(const json_t *event, struct start_event *ret_start,
                               struct err *err);
enum err_code iteration_event_read(const json_t *event,
                                   struct iteration_event *ret_iteration,
                                   struct err *err);
enum err_code end_event_read(const json_t *event, struct end_event *ret_end,
                             struct err *err);

#endif
