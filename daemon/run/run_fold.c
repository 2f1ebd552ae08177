#include "daemon/run/run_fold.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/array.h"
#include "daemon/base/mem.h"
#include "daemon/process/wire.h"
#include "daemon/run/run_circumstances.h"
#include "daemon/run/run_event.h"
#include "workloads/instruments/digest.h"

void run_fold_init(struct run_fold *fold, const struct case_key *key, const char *device,
                   int64_t iterations)
{
    memset(fold, 0, sizeof *fold);
    fold->key = *key;
    copy_text(fold->device, sizeof fold->device, device);
    fold->asked = iterations;
}

void run_fold_options(struct run_fold *fold, const struct run_options *options)
{
    fold->options = *options;
}

__attribute__((format(printf, 2, 3))) static void deviate(struct run_fold *fold,
                                                          const char *format, ...)
{
    va_list args;

    if (fold->deviation[0] == '\0') {
        va_start(args, format);
        vsnprintf(fold->deviation, sizeof fold->deviation, format, args);
        va_end(args);
        wire_clean(fold->deviation);
    }
}

void run_fold_garbage(struct run_fold *fold, const char *cause)
{
    deviate(fold, "%s", cause);
}

/* "workload is 'a', 'b' was asked for". */
static void must_equal(struct run_fold *fold, const char *what, const char *got,
                       const char *wanted)
{
    if (strcmp(got, wanted) != 0) {
        deviate(fold, "%s is '%.100s', '%.100s' was asked for", what, got, wanted);
    }
}

static void must_count(struct run_fold *fold, const char *what, int64_t got,
                       int64_t wanted)
{
    if (got != wanted) {
        deviate(fold, "%s is %lld, %lld was asked for", what, (long long)got,
                (long long)wanted);
    }
}

static void take_environment(struct run_fold *fold, const struct start_event *start)
{
    struct digest digest;

    fold->environment = run_environment_canonical(start->environment);
    fold->environment_title = run_environment_title(start->environment);
    fold->libraries = json_dumps(start->libraries, JSON_COMPACT);
    digest = digest_bytes(fold->environment, strlen(fold->environment));
    digest_hex(digest, fold->run.environment);
}

static void fold_start(struct run_fold *fold, const json_t *event)
{
    struct start_event start;
    struct err err;

    if (fold->started) {
        deviate(fold, "a second start event");
        return;
    }
    fold->started = true;
    if (start_event_read(event, &start, &err) != ERR_OK) {
        deviate(fold, "start: %s", err.message);
        return;
    }
    must_equal(fold, "workload", start.workload, fold->key.workload);
    must_count(fold, "version", start.version, fold->key.version);
    must_equal(fold, "variant", start.variant, fold->key.variant);
    must_equal(fold, "size", start.size, fold->key.size);
    must_equal(fold, "dtype", start.dtype, fold->key.dtype);
    if (start.seed != fold->key.seed) {
        deviate(fold, "seed is %llu, %llu was asked for", (unsigned long long)start.seed,
                (unsigned long long)fold->key.seed);
    }
    must_count(fold, "iterations", start.iterations, fold->asked);
    must_equal(fold, "device", start.device, fold->device);
    if (run_circumstances_take(start.circumstances, &fold->options.circumstances,
                               fold->run.circumstances, &err) != ERR_OK) {
        deviate(fold, "start: %s", err.message);
    }
    copy_text(fold->run.device_read_back, sizeof fold->run.device_read_back,
              start.device);
    wire_clean(fold->run.device_read_back);
    if (fold->deviation[0] == '\0') {
        take_environment(fold, &start);
        fold->telemetry_start = run_telemetry_text(start.telemetry);
        copy_text(fold->run.algorithm, sizeof fold->run.algorithm, start.algorithm);
        copy_text(fold->run.claim, sizeof fold->run.claim,
                  start.claim ? start.claim : "");
        copy_text(fold->run.input_digest, sizeof fold->run.input_digest,
                  start.input_digest);
    }
}

static void fold_iteration(struct run_fold *fold, const json_t *event)
{
    struct iteration_event iteration;
    struct run_fold_iteration *slot;
    struct err err;

    if (iteration_event_read(event, &iteration, &err) != ERR_OK) {
        deviate(fold, "iteration %lld: %s", (long long)fold->seen, err.message);
        return;
    }
    if (fold->seen == fold->asked) {
        deviate(fold, "more iterations than the %lld that were asked for",
                (long long)fold->asked);
        return;
    }
    if (iteration.index != fold->seen) {
        deviate(fold, "iteration %lld came where %lld was due",
                (long long)iteration.index, (long long)fold->seen);
        return;
    }
    if (fold->seen == fold->capacity) {
        fold->capacity = fold->capacity ? fold->capacity * 2 : 16;
        fold->iterations =
            xrealloc(fold->iterations, sizeof *fold->iterations * (size_t)fold->capacity);
    }
    slot = &fold->iterations[fold->seen];
    copy_text(slot->digest, sizeof slot->digest, iteration.digest);
    slot->index = fold->seen++;
    slot->ns = iteration.ns;
    copy_text(fold->run.weight_sum, sizeof fold->run.weight_sum, iteration.weight_sum);
    copy_text(fold->run.loss, sizeof fold->run.loss,
              iteration.loss ? iteration.loss : "");
    copy_text(fold->run.algorithm, sizeof fold->run.algorithm, iteration.algorithm);
}

/* Proof of work. */
static void check_completed(struct run_fold *fold, const struct end_event *end)
{
    if (fold->seen != fold->asked || fold->seen < 1) {
        deviate(fold, "%lld of %lld iterations", (long long)fold->seen,
                (long long)fold->asked);
    }
    if (end->iterations != fold->seen) {
        deviate(fold, "end counts %lld iterations, %lld were seen",
                (long long)end->iterations, (long long)fold->seen);
    }
    if (end->elements <= 0 || end->bytes_hashed <= 0) {
        deviate(fold, "no proof of work: %lld elements, %lld bytes hashed",
                (long long)end->elements, (long long)end->bytes_hashed);
    }
    must_equal(fold, "device at the end", end->device, fold->device);
    if (strcmp(end->input_digest, fold->run.input_digest) != 0) {
        deviate(fold, "the inputs changed during the run: digest %s, then %s",
                fold->run.input_digest, end->input_digest);
    }
}

static bool may_end_as(enum outcome outcome)
{
    return outcome == OUTCOME_COMPLETED || outcome == OUTCOME_UNSUPPORTED ||
           outcome == OUTCOME_OUT_OF_MEMORY || outcome == OUTCOME_INFRA;
}

static void fold_end(struct run_fold *fold, const json_t *event)
{
    struct end_event end;
    struct err err;

    fold->ended = true;
    fold->end_outcome = OUTCOME_INVALID;
    if (end_event_read(event, &end, &err) != ERR_OK) {
        deviate(fold, "end: %s", err.message);
        return;
    }
    if (outcome_parse(end.outcome, &fold->end_outcome) != 0 ||
        !may_end_as(fold->end_outcome)) {
        deviate(fold, "end: '%.64s' is no outcome that a worker can claim", end.outcome);
        return;
    }
    if (run_tensors_finish(&fold->tensors, &err) != ERR_OK) {
        deviate(fold, "tensor: %s", err.message);
    }
    fold->telemetry_end = run_telemetry_text(end.telemetry);
    fold->trace.dropped += end.probes_dropped;
    if (end.libraries && fold->libraries) {
        free(fold->libraries);
        fold->libraries = json_dumps(end.libraries, JSON_COMPACT);
    }
    fold->run.elements = end.elements;
    fold->run.bytes_hashed = end.bytes_hashed;
    if (fold->end_outcome == OUTCOME_COMPLETED) {
        check_completed(fold, &end);
    } else if (!end.cause || end.cause[0] == '\0') {
        deviate(fold, "end: %s without a cause", end.outcome);
    } else {
        copy_text(fold->end_cause, sizeof fold->end_cause, end.cause);
        wire_clean(fold->end_cause);
    }
}

static void fold_record(void *arg, const struct probe_record *record)
{
    struct run_fold *fold = arg;
    struct digest in = { 0, 0 };
    struct digest out = { 0, 0 };

    if (record->iteration >= fold->asked) {
        deviate(fold, "a probe in iteration %" PRId32 " of %lld", record->iteration,
                (long long)fold->asked);
        return;
    }
    digest_parse(record->in, &in);
    digest_parse(record->out, &out);
    trace_add(&fold->trace, record->iteration, record->step, record->place, in, out);
}

static void fold_probe(struct run_fold *fold, const json_t *event)
{
    struct probe_record record;
    struct err err;

    if (probe_event_read(event, &record, &err) != ERR_OK) {
        deviate(fold, "probe: %s", err.message);
        return;
    }
    fold_record(fold, &record);
}

static void fold_probes(struct run_fold *fold, const json_t *event)
{
    struct err err;

    if (probes_event_read(event, fold_record, fold, &err) != ERR_OK) {
        deviate(fold, "probes: %s", err.message);
    }
}

/* Where nothing was asked for, nothing is kept, whatever it is. */
static void check_asked(struct run_fold *fold, const struct tensor_event *tensor)
{
    char got[RUN_CAPTURE_SIZE];

    run_capture_write(tensor->iteration, tensor->step, tensor->place, got);
    if (fold->options.capture[0]) {
        must_equal(fold, "tensor: what is captured", got, fold->options.capture);
    }
}

static void fold_tensor(struct run_fold *fold, const json_t *event)
{
    struct tensor_event tensor;
    struct err err;

    if (tensor_event_read(event, &tensor, &err) != ERR_OK) {
        deviate(fold, "tensor: %s", err.message);
        return;
    }
    if (fold->tensors.count == 0) {
        check_asked(fold, &tensor); /* the others are of the same place */
    }
    if (run_tensors_add(&fold->tensors, &tensor, &err) != ERR_OK) {
        deviate(fold, "tensor: %s", err.message);
    }
}

static const struct {
    const char *name;
    void (*fold)(struct run_fold *fold, const json_t *event);
} kinds[] = {
    { "start", fold_start },   { "iteration", fold_iteration }, { "probe", fold_probe },
    { "probes", fold_probes }, { "tensor", fold_tensor },       { "end", fold_end },
};

void run_fold_event(struct run_fold *fold, const json_t *event)
{
    const char *name = json_string_value(json_object_get(event, "event"));

    if (!name) {
        deviate(fold, "a line without an event");
        return;
    }
    if (fold->ended) {
        deviate(fold, "an event after end: '%.64s'", name);
        return;
    }
    for (int i = 0; i < COUNT_OF(kinds); i++) {
        if (strcmp(name, kinds[i].name) == 0) {
            if (!fold->started && kinds[i].fold != fold_start) {
                deviate(fold, "%s before start", name);
            }
            kinds[i].fold(fold, event);
            return;
        }
    }
}
