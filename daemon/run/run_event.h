/* Events of a run, from JSON to structs: every field that the protocol requires is there
 * and has the right form.  What the values have to be is daemon/run/run_judge.h's
 * business.
 *
 * All texts and JSON of the structs are borrowed from the event.  Every reader returns
 * ERR_PROTOCOL and says what is missing or malformed. */
#ifndef DAEMON_RUN_RUN_EVENT_H
#define DAEMON_RUN_RUN_EVENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/jobs/case.h"

struct start_event {
    const char *workload, *variant, *size, *dtype, *backend, *device, *algorithm;
    const char *claim; /* NULL: none */
    const char *input_digest;
    int64_t protocol, version, pid, iterations, threads;
    uint64_t seed;
    const json_t *environment;   /* object of strings and integers */
    const json_t *libraries;     /* array of {"path", "build_id"} */
    const json_t *circumstances; /* object (workloads/PROTOCOL.md), null, or NULL: none */
    const json_t *telemetry;     /* object (run_telemetry_text), or NULL: none */
};

struct iteration_event {
    int64_t index, ns;
    const char *digest, *weight_sum, *algorithm;
    const char *loss; /* NULL: none */
};

/* One record of a trace. */
struct probe_record {
    int32_t iteration;
    int64_t step;
    const char *place;
    const char *in, *out; /* 32 hex digits */
};

/* The outputs of an iteration against the float64 reference. */
struct check_event {
    const char *result; /* "passed", "failed", "given_up"; "known": no iteration showed
                           another digest than the one that passed before */
    const char *cause;  /* given up: why */
    /* The rest only where it passed or failed. */
    int64_t iteration;
    const char *digest, *weight_sum; /* of what was compared */
    const char *output;              /* which has the worst element */
    int64_t index;                   /* that element, and its values */
    double got, expected, bound;
    double share; /* of the bound that it takes */
};

enum { TENSOR_CHUNK_MAX = 32 * 1024 };

/* What a place read or wrote, or a piece of it. */
struct tensor_event {
    int32_t iteration;
    int64_t step;
    const char *place;
    bool is_out; /* role */
    int64_t index;
    const char *name, *dtype;
    const json_t *shape; /* array of integers >= 0 */
    int64_t bytes_total, captured_bytes, offset;
    const char *data; /* base64, not decoded */
};

struct end_event {
    const char *outcome, *device, *input_digest;
    const char *cause; /* NULL: none */
    int64_t iterations, elements, bytes_hashed;
    int64_t probes_dropped;  /* records that the program left out */
    const json_t *libraries; /* as in start_event; NULL: the same as then */
    const json_t *telemetry; /* as in start_event */
};

enum err_code start_event_read(const json_t *event, struct start_event *ret_start,
                               struct err *err);
enum err_code probe_event_read(const json_t *event, struct probe_record *ret_record,
                               struct err *err);
enum err_code tensor_event_read(const json_t *event, struct tensor_event *ret_tensor,
                                struct err *err);
enum err_code check_event_read(const json_t *event, struct check_event *ret_check,
                               struct err *err);
enum err_code end_event_read(const json_t *event, struct end_event *ret_end,
                             struct err *err);

/* Calls ON_ITERATION (ARG, iteration) once, or where EVENT is one of an agent that tells
 * SEVERAL, for each of them in order. */
typedef void iteration_cb(void *arg, const struct iteration_event *iteration);
enum err_code iteration_event_read(const json_t *event, bool several,
                                   iteration_cb *on_iteration, void *arg,
                                   struct err *err);

/* Calls ON_RECORD (ARG, record) for each record, in order, up to the first malformed one:
 * ERR_PROTOCOL, with what is wrong with it. */
typedef void probe_record_cb(void *arg, const struct probe_record *record);
enum err_code probes_event_read(const json_t *event, probe_record_cb *on_record,
                                void *arg, struct err *err);

/* An environment in its canonical form: keys sorted, no white space.  Caller frees. */
char *run_environment_canonical(const json_t *environment);

/* For people: "cpu · AMD EPYC 9B14 · 2 threads · worker 3f2a91c0".  Caller frees. */
char *run_environment_title(const json_t *environment);

/* Telemetry is what the sensors of a run's device said, for people: it does not belong to
 * the environment, and no verdict depends on it.  As it is stored; NULL if there is none.
 * Caller frees. */
char *run_telemetry_text(const json_t *telemetry);

#endif
