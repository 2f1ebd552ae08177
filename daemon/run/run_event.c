#include "daemon/run/run_event.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/process/members.h"
#include "daemon/run/run_environment.h"
#include "daemon/run/run_telemetry.h"

enum { DIGEST_DIGITS = DIGEST_TEXT_SIZE - 1, BITS_DIGITS = BITS_TEXT_SIZE - 1 };
static const int64_t PROBES_DROPPED_MAX = INT64_C(1) << 53;
static const double MS_MAX = 7.0 * 24 * 3600 * 1000; /* no run may last longer */

static enum err_code check_length(const char *name, const char *text, size_t size,
                                  struct err *err)
{
    if (strlen(text) >= size) {
        return err_set(err, ERR_PROTOCOL, "%s is longer than %zu bytes", name, size - 1);
    }
    return ERR_OK;
}

static enum err_code text_or_null(const char *name, const json_t *value,
                                  const char **ret_text, struct err *err)
{
    if (!json_is_null(value) && !json_is_string(value)) {
        return err_set(err, ERR_PROTOCOL, "%s is neither a string nor null", name);
    }
    *ret_text = json_string_value(value);
    return ERR_OK;
}

static enum err_code parse_seed(const char *text, uint64_t *ret_seed, struct err *err)
{
    char *end;

    errno = 0;
    *ret_seed = strtoull(text, &end, 10);
    if (text[strspn(text, "0123456789")] != '\0' || end == text || errno) {
        return err_set(err, ERR_PROTOCOL, "seed is not a decimal number");
    }
    return ERR_OK;
}

static enum err_code check_libraries(const json_t *libraries, struct err *err)
{
    size_t i;
    json_t *library;

    json_array_foreach(libraries, i, library)
    {
        const char *path, *text;
        json_t *build_id;

        if (members_unpack(library, err, "{s:s,s:o}", "path", &path, "build_id",
                           &build_id) != ERR_OK ||
            text_or_null("build_id", build_id, &text, err) != ERR_OK) {
            return err_wrap(err, "libraries[%zu]", i);
        }
    }
    return ERR_OK;
}

/* A warning in other words would be none. */
static enum err_code check_claim(const char *claim, struct err *err)
{
    if (claim && strcmp(claim, "deterministic") != 0 &&
        strcmp(claim, "non-deterministic") != 0) {
        return err_set(err, ERR_PROTOCOL,
                       "claim is not deterministic, non-deterministic or null");
    }
    return ERR_OK;
}

static enum err_code check_start(const struct start_event *start, struct err *err)
{
    enum err_code rc;

    if (start->protocol != 1) {
        return err_set(err, ERR_PROTOCOL, "protocol version %lld is not 1",
                       (long long)start->protocol);
    }
    if (!json_is_array(start->libraries)) {
        return err_set(err, ERR_PROTOCOL, "libraries is not an array");
    }
    if ((rc =
             member_check_hex("input_digest", start->input_digest, DIGEST_DIGITS, err)) ||
        (rc = check_length("algorithm", start->algorithm, CASE_TITLE_SIZE, err)) ||
        (rc = check_claim(start->claim, err)) ||
        (rc = run_environment_check(start->environment, start->backend, start->threads,
                                    err)) ||
        (rc = check_libraries(start->libraries, err)) ||
        (rc = run_telemetry_check(start->telemetry, err))) {
        return rc;
    }
    return ERR_OK;
}

enum err_code start_event_read(const json_t *event, struct start_event *ret_start,
                               struct err *err)
{
    struct start_event s = { 0 };
    json_int_t protocol, pid, version, iterations, threads;
    json_t *claim, *environment, *libraries;
    const char *seed;

    /* The version first: what another version says need not have these fields. */
    if (members_unpack(event, err, "{s:I}", "v", &protocol) != ERR_OK) {
        return err->code;
    }
    s.protocol = protocol;
    if (protocol == 1 &&
        members_unpack(
            event, err,
            "{s:I,s:s,s:I,s:s,s:s,s:s,s:s,s:I,s:I,s:s,s:s,s:s,s:o,s:s,s:o,s:o}", "pid",
            &pid, "workload", &s.workload, "version", &version, "variant", &s.variant,
            "size", &s.size, "dtype", &s.dtype, "seed", &seed, "iterations", &iterations,
            "threads", &threads, "backend", &s.backend, "device", &s.device, "algorithm",
            &s.algorithm, "claim", &claim, "input_digest", &s.input_digest, "environment",
            &environment, "libraries", &libraries) != ERR_OK) {
        return err->code;
    }
    if (protocol == 1) {
        s.pid = pid;
        s.version = version;
        s.iterations = iterations;
        s.threads = threads;
        s.environment = environment;
        s.libraries = libraries;
        s.circumstances = json_object_get(event, "circumstances");
        s.telemetry = json_object_get(event, "telemetry");
        if (parse_seed(seed, &s.seed, err) != ERR_OK ||
            text_or_null("claim", claim, &s.claim, err) != ERR_OK) {
            return err->code;
        }
    }
    *ret_start = s;
    return check_start(&s, err);
}

/* A sum is NaN when any element is: then the bits agree however the order went, and prove
 * nothing. */
static enum err_code check_not_nan(const char *key, const char *bits, struct err *err)
{
    uint64_t value = strtoull(bits, NULL, 16) & ~(UINT64_C(1) << 63);

    return value > UINT64_C(0x7ff0000000000000)
               ? err_set(err, ERR_PROTOCOL, "%s is NaN: equal NaNs prove nothing", key)
               : ERR_OK;
}

enum err_code iteration_event_read(const json_t *event,
                                   struct iteration_event *ret_iteration, struct err *err)
{
    struct iteration_event i = { 0 };
    json_int_t index;
    json_t *loss;
    double ms;
    enum err_code rc;

    if ((rc = members_unpack(event, err, "{s:I,s:s,s:s,s:o,s:F,s:s}", "i", &index,
                             "digest", &i.digest, "weight_sum", &i.weight_sum, "loss",
                             &loss, "ms", &ms, "algorithm", &i.algorithm)) ||
        (rc = text_or_null("loss", loss, &i.loss, err)) ||
        (rc = member_check_hex("digest", i.digest, DIGEST_DIGITS, err)) ||
        (rc = member_check_hex("weight_sum", i.weight_sum, BITS_DIGITS, err)) ||
        (rc = check_not_nan("weight_sum", i.weight_sum, err)) ||
        (rc = i.loss ? member_check_hex("loss", i.loss, BITS_DIGITS, err) : ERR_OK) ||
        (rc = i.loss ? check_not_nan("loss", i.loss, err) : ERR_OK) ||
        (rc = check_length("algorithm", i.algorithm, CASE_TITLE_SIZE, err))) {
        return rc;
    }
    if (!(ms >= 0 && ms <= MS_MAX)) {
        return err_set(err, ERR_PROTOCOL, "ms is not a duration");
    }
    i.index = index;
    i.ns = llround(ms * 1e6);
    *ret_iteration = i;
    return ERR_OK;
}

enum err_code end_event_read(const json_t *event, struct end_event *ret_end,
                             struct err *err)
{
    struct end_event e = { .telemetry = json_object_get(event, "telemetry") };
    json_int_t iterations, elements, bytes_hashed, dropped = 0;
    json_t *cause;
    enum err_code rc;

    e.libraries = json_object_get(event, "libraries");
    if (e.libraries && !json_is_array(e.libraries)) {
        return err_set(err, ERR_PROTOCOL, "libraries is not an array");
    }
    if ((rc = members_unpack(event, err, "{s:s,s:o,s:I,s:I,s:I,s:s,s:s,s?I}", "outcome",
                             &e.outcome, "cause", &cause, "iterations", &iterations,
                             "elements", &elements, "bytes_hashed", &bytes_hashed,
                             "device", &e.device, "input_digest", &e.input_digest,
                             "probes_dropped", &dropped)) ||
        (rc = check_libraries(e.libraries, err)) ||
        (rc = text_or_null("cause", cause, &e.cause, err)) ||
        (rc = member_check_hex("input_digest", e.input_digest, DIGEST_DIGITS, err)) ||
        (rc = run_telemetry_check(e.telemetry, err))) {
        return rc;
    }
    if (dropped < 0 || dropped > PROBES_DROPPED_MAX) {
        return err_set(err, ERR_PROTOCOL, "probes_dropped is no number of records");
    }
    e.probes_dropped = dropped;
    e.iterations = iterations;
    e.elements = elements;
    e.bytes_hashed = bytes_hashed;
    *ret_end = e;
    return ERR_OK;
}
