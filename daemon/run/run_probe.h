/* The events of probes, from JSON to structs: every field that the protocol requires is
 * there and has the right form.  What they add up to is daemon/run/run_fold.h's business.
 */
#ifndef DAEMON_RUN_RUN_PROBE_H
#define DAEMON_RUN_RUN_PROBE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"

enum { TENSOR_CHUNK_MAX = 32 * 1024 };

/* One record of a trace.  Texts are borrowed from the event. */
struct probe_record {
    int32_t iteration;
    int64_t step;
    const char *place;
    const char *in, *out; /* 32 hex digits */
};

/* What a place read or wrote, or a piece of it.  Texts are borrowed from the event. */
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

/* ERR_PROTOCOL says what is missing or malformed. */
enum err_code probe_event_read(const json_t *event, struct probe_record *ret_record,
                               struct err *err);

/* Calls ON_RECORD (ARG, record) for each record, in order, up to the first malformed one,
 * of which ERR_PROTOCOL speaks. */
typedef void probe_record_cb(void *arg, const struct probe_record *record);
enum err_code probes_event_read(const json_t *event, probe_record_cb *on_record,
                                void *arg, struct err *err);

enum err_code tensor_event_read(const json_t *event, struct tensor_event *ret_tensor,
                                struct err *err);

#endif
