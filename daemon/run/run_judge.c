#include "daemon/run/run_judge.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/array.h"
#include "daemon/base/mem.h"
#include "daemon/process/wire.h"
#include "daemon/run/run_event.h"
#include "workloads/instruments/digest.h"

void run_judge_init(struct run_judge *judge, const struct case_key *key,
                    const char *device, int64_t iterations)
{
    memset(judge, 0, sizeof *judge);
    judge->key = *key;
    copy_text(judge->device, sizeof judge->device, device);
    judge->asked = iterations;
}

void run_judge_options(struct run_judge *judge, const struct run_options *options)
{
    judge->options = *options;
}

void run_judge_asks_check(struct run_judge *judge)
{
    judge->checks = true;
}

__attribute__((format(printf, 2, 3))) static void deviate(struct run_judge *judge,
                                                          const char *format, ...)
{
    va_list args;

    if (judge->deviation[0] == '\0') {
        va_start(args, format);
        vsnprintf(judge->deviation, sizeof judge->deviation, format, args);
        va_end(args);
        wire_clean(judge->deviation);
    }
}

void run_judge_garbage(struct run_judge *judge, const char *cause)
{
    deviate(judge, "%s", cause);
}

/* "workload is 'a', 'b' was asked for". */
static void must_equal(struct run_judge *judge, const char *what, const char *got,
                       const char *wanted)
{
    if (strcmp(got, wanted) != 0) {
        deviate(judge, "%s is '%.100s', '%.100s' was asked for", what, got, wanted);
    }
}

static void must_count(struct run_judge *judge, const char *what, int64_t got,
                       int64_t wanted)
{
    if (got != wanted) {
        deviate(judge, "%s is %lld, %lld was asked for", what, (long long)got,
                (long long)wanted);
    }
}

/* What a process draws for itself where "random" was asked for. */
static enum err_code take_drawn(const json_t *said, const char *name, const char *asked,
                                char ret_taken[RUN_DRAWN_SIZE], struct err *err)
{
    const json_t *value = json_object_get(said, name);
    const char *text = json_string_value(value);

    if (value && !text) {
        return err_set(err, ERR_PROTOCOL, "circumstances.%s is not text", name);
    }
    if (!text != !asked[0] ||
        (text && strcmp(asked, "random") != 0 && strcmp(asked, text) != 0)) {
        return err_set(err, ERR_PROTOCOL, "%s is %.32s, %.32s was asked for", name,
                       text ? text : "none", asked[0] ? asked : "none");
    }
    if (text && strlen(text) >= RUN_DRAWN_SIZE) {
        return err_set(err, ERR_PROTOCOL, "circumstances.%s is longer than %d bytes",
                       name, RUN_DRAWN_SIZE - 1);
    }
    copy_text(ret_taken, RUN_DRAWN_SIZE, text ? text : "");
    return ERR_OK;
}

static enum err_code take_contention(const json_t *said, int64_t asked,
                                     int64_t *ret_taken, struct err *err)
{
    const json_t *value = json_object_get(said, "contention");
    json_int_t count = json_integer_value(value);

    if (value && (!json_is_integer(value) || count < 1)) {
        return err_set(err, ERR_PROTOCOL,
                       "circumstances.contention is no number of load processes");
    }
    if (count != asked) {
        return err_set(err, ERR_PROTOCOL, "contention is %lld, %lld was asked for",
                       (long long)count, (long long)asked);
    }
    *ret_taken = asked;
    return ERR_OK;
}

/* SAID is the member of the start event; NULL or JSON null: none.  ASKED is what was
 * asked for.  Writes the canonical object, "" for none, as it is
 * stored.  ERR_PROTOCOL says what is malformed, or is not as asked. */
static enum err_code take_circumstances(const json_t *said,
                                        const struct run_circumstances *asked,
                                        char ret_text[RUN_CIRCUMSTANCES_SIZE],
                                        struct err *err)
{
    struct run_circumstances taken;

    ret_text[0] = '\0';
    if (said && !json_is_null(said) && !json_is_object(said)) {
        return err_set(err, ERR_PROTOCOL, "circumstances is not an object");
    }
    if (take_contention(said, asked->contention, &taken.contention, err) != ERR_OK ||
        take_drawn(said, "memory_poison", asked->memory_poison, taken.memory_poison,
                   err) != ERR_OK ||
        take_drawn(said, "allocation_jitter", asked->allocation_jitter,
                   taken.allocation_jitter, err) != ERR_OK) {
        return err->code;
    }
    if (!run_circumstances_write(&taken, ret_text)) {
        return err_set(err, ERR_PROTOCOL, "circumstances are longer than %d bytes",
                       RUN_CIRCUMSTANCES_SIZE - 1);
    }
    return ERR_OK;
}

static void take_environment(struct run_judge *judge, const struct start_event *start)
{
    struct digest digest;

    judge->environment = run_environment_canonical(start->environment);
    judge->environment_title = run_environment_title(start->environment);
    judge->libraries = json_dumps(start->libraries, JSON_COMPACT);
    digest = digest_bytes(judge->environment, strlen(judge->environment));
    digest_hex(digest, judge->run.environment);
}

static void take_start(struct run_judge *judge, const json_t *event)
{
    struct start_event start;
    struct err err;

    if (judge->started) {
        deviate(judge, "a second start event");
        return;
    }
    judge->started = true;
    if (start_event_read(event, &start, &err) != ERR_OK) {
        deviate(judge, "start: %s", err.message);
        return;
    }
    must_equal(judge, "workload", start.workload, judge->key.workload);
    must_count(judge, "version", start.version, judge->key.version);
    must_equal(judge, "variant", start.variant, judge->key.variant);
    must_equal(judge, "size", start.size, judge->key.size);
    must_equal(judge, "dtype", start.dtype, judge->key.dtype);
    if (start.seed != judge->key.seed) {
        deviate(judge, "seed is %llu, %llu was asked for", (unsigned long long)start.seed,
                (unsigned long long)judge->key.seed);
    }
    must_count(judge, "iterations", start.iterations, judge->asked);
    must_equal(judge, "device", start.device, judge->device);
    if (take_circumstances(start.circumstances, &judge->options.circumstances,
                           judge->run.circumstances, &err) != ERR_OK) {
        deviate(judge, "start: %s", err.message);
    }
    copy_text(judge->run.device_read_back, sizeof judge->run.device_read_back,
              start.device);
    wire_clean(judge->run.device_read_back);
    if (judge->deviation[0] == '\0') {
        take_environment(judge, &start);
        judge->telemetry_start = run_telemetry_text(start.telemetry);
        copy_text(judge->run.algorithm, sizeof judge->run.algorithm, start.algorithm);
        copy_text(judge->run.claim, sizeof judge->run.claim,
                  start.claim ? start.claim : "");
        copy_text(judge->run.input_digest, sizeof judge->run.input_digest,
                  start.input_digest);
    }
}

static void take_iteration(struct run_judge *judge, const json_t *event)
{
    struct iteration_event iteration;
    struct run_judge_iteration *slot;
    struct err err;

    if (iteration_event_read(event, &iteration, &err) != ERR_OK) {
        deviate(judge, "iteration %lld: %s", (long long)judge->seen, err.message);
        return;
    }
    if (judge->seen == judge->asked) {
        deviate(judge, "more iterations than the %lld that were asked for",
                (long long)judge->asked);
        return;
    }
    if (iteration.index != judge->seen) {
        deviate(judge, "iteration %lld came where %lld was due",
                (long long)iteration.index, (long long)judge->seen);
        return;
    }
    judge->iterations = xgrow(judge->iterations, judge->seen, sizeof *judge->iterations);
    slot = &judge->iterations[judge->seen];
    copy_text(slot->digest, sizeof slot->digest, iteration.digest);
    slot->index = judge->seen++;
    slot->ns = iteration.ns;
    copy_text(judge->run.weight_sum, sizeof judge->run.weight_sum, iteration.weight_sum);
    copy_text(judge->run.loss, sizeof judge->run.loss,
              iteration.loss ? iteration.loss : "");
    copy_text(judge->run.algorithm, sizeof judge->run.algorithm, iteration.algorithm);
}

/* Proof of work. */
static void check_completed(struct run_judge *judge, const struct end_event *end)
{
    if (judge->seen != judge->asked || judge->seen < 1) {
        deviate(judge, "%lld of %lld iterations", (long long)judge->seen,
                (long long)judge->asked);
    }
    if (end->iterations != judge->seen) {
        deviate(judge, "end counts %lld iterations, %lld were seen",
                (long long)end->iterations, (long long)judge->seen);
    }
    if (end->elements <= 0 || end->bytes_hashed <= 0) {
        deviate(judge, "no proof of work: %lld elements, %lld bytes hashed",
                (long long)end->elements, (long long)end->bytes_hashed);
    }
    must_equal(judge, "device at the end", end->device, judge->device);
    if (strcmp(end->input_digest, judge->run.input_digest) != 0) {
        deviate(judge, "the inputs changed during the run: digest %s, then %s",
                judge->run.input_digest, end->input_digest);
    }
}

static bool may_end_as(enum outcome outcome)
{
    return outcome == OUTCOME_COMPLETED || outcome == OUTCOME_UNSUPPORTED ||
           outcome == OUTCOME_OUT_OF_MEMORY || outcome == OUTCOME_INFRA;
}

static void take_end(struct run_judge *judge, const json_t *event)
{
    struct end_event end;
    struct err err;

    judge->ended = true;
    judge->end_outcome = OUTCOME_INVALID;
    if (end_event_read(event, &end, &err) != ERR_OK) {
        deviate(judge, "end: %s", err.message);
        return;
    }
    if (outcome_parse(end.outcome, &judge->end_outcome) != 0 ||
        !may_end_as(judge->end_outcome)) {
        deviate(judge, "end: '%.64s' is no outcome that a worker can claim", end.outcome);
        return;
    }
    if (run_captures_finish(&judge->tensors, &err) != ERR_OK) {
        deviate(judge, "tensor: %s", err.message);
    }
    judge->telemetry_end = run_telemetry_text(end.telemetry);
    judge->trace.dropped += end.probes_dropped;
    if (end.libraries && judge->libraries) {
        free(judge->libraries);
        judge->libraries = json_dumps(end.libraries, JSON_COMPACT);
    }
    judge->run.elements = end.elements;
    judge->run.bytes_hashed = end.bytes_hashed;
    if (judge->end_outcome == OUTCOME_COMPLETED) {
        check_completed(judge, &end);
    } else if (!end.cause || end.cause[0] == '\0') {
        deviate(judge, "end: %s without a cause", end.outcome);
    } else {
        copy_text(judge->end_cause, sizeof judge->end_cause, end.cause);
        wire_clean(judge->end_cause);
    }
}

static void take_record(void *arg, const struct probe_record *record)
{
    struct run_judge *judge = arg;
    struct digest in = { 0, 0 };
    struct digest out = { 0, 0 };

    if (record->iteration >= judge->asked) {
        deviate(judge, "a probe in iteration %" PRId32 " of %lld", record->iteration,
                (long long)judge->asked);
        return;
    }
    digest_parse(record->in, &in);
    digest_parse(record->out, &out);
    trace_add(&judge->trace, record->iteration, record->step, record->place, in, out);
}

static void take_probe(struct run_judge *judge, const json_t *event)
{
    struct probe_record record;
    struct err err;

    if (probe_event_read(event, &record, &err) != ERR_OK) {
        deviate(judge, "probe: %s", err.message);
        return;
    }
    take_record(judge, &record);
}

static void take_probes(struct run_judge *judge, const json_t *event)
{
    struct err err;

    if (probes_event_read(event, take_record, judge, &err) != ERR_OK) {
        deviate(judge, "probes: %s", err.message);
    }
}

/* Where nothing was asked for, nothing is kept, whatever it is. */
static void check_asked(struct run_judge *judge, const struct tensor_event *tensor)
{
    char got[RUN_CAPTURE_SIZE];

    run_capture_write(tensor->iteration, tensor->step, tensor->place, got);
    if (judge->options.capture[0]) {
        must_equal(judge, "tensor: what is captured", got, judge->options.capture);
    }
}

static void take_tensor(struct run_judge *judge, const json_t *event)
{
    struct tensor_event tensor;
    struct err err;

    if (tensor_event_read(event, &tensor, &err) != ERR_OK) {
        deviate(judge, "tensor: %s", err.message);
        return;
    }
    if (judge->tensors.count == 0) {
        check_asked(judge, &tensor); /* the others are of the same place */
    }
    if (run_captures_add(&judge->tensors, &tensor, &err) != ERR_OK) {
        deviate(judge, "tensor: %s", err.message);
    }
}

/* What was compared must be what the last iteration reported. */
static void check_compared(struct run_judge *judge, const struct check_event *event)
{
    const char *last = judge->iterations[judge->seen - 1].digest;

    if (strcmp(event->digest, last) != 0) {
        deviate(judge, "check: the outputs have digest %s, iteration %lld reported %s",
                event->digest, (long long)event->iteration, last);
    }
    if (strcmp(event->weight_sum, judge->run.weight_sum) != 0) {
        deviate(judge, "check: the outputs' weight sum has bits %s, not %s",
                event->weight_sum, judge->run.weight_sum);
    }
}

static void keep_compared(struct run_check *check, const struct check_event *event)
{
    copy_text(check->digest, sizeof check->digest, event->digest);
    if (check->state == CHECK_PASSED) {
        check->share_ppm = (int64_t)ceil(event->share * 1e6);
    }
    snprintf(check->words, sizeof check->words,
             "%.100s[%lld] is %.9g, the reference %.9g \xc2\xb1 %.3g", event->output,
             (long long)event->index, event->got, event->expected, event->bound);
}

static void take_check(struct run_judge *judge, const json_t *event)
{
    struct run_check *check = &judge->run.check;
    struct check_event read;
    struct err err;

    if (check_event_read(event, &read, &err) != ERR_OK) {
        deviate(judge, "check: %s", err.message);
        return;
    }
    if (!judge->checks || check->state != CHECK_NONE || judge->seen != judge->asked ||
        read.iteration != judge->seen - 1) {
        deviate(judge, "a check that was not asked for, or not of the last iteration");
        return;
    }
    check->state = check_state_parse(read.result);
    if (check->state == CHECK_GIVEN_UP) {
        copy_text(check->words, sizeof check->words, read.cause);
    } else {
        check_compared(judge, &read);
        keep_compared(check, &read);
    }
    wire_clean(check->words);
}

static const struct {
    const char *name;
    void (*take)(struct run_judge *judge, const json_t *event);
} kinds[] = {
    { "start", take_start },   { "iteration", take_iteration }, { "probe", take_probe },
    { "probes", take_probes }, { "check", take_check },         { "tensor", take_tensor },
    { "end", take_end },
};

void run_judge_event(struct run_judge *judge, const json_t *event)
{
    const char *name = json_string_value(json_object_get(event, "event"));

    if (!name) {
        deviate(judge, "a line without an event");
        return;
    }
    if (judge->ended) {
        deviate(judge, "an event after end: '%.64s'", name);
        return;
    }
    for (int i = 0; i < COUNT_OF(kinds); i++) {
        if (strcmp(name, kinds[i].name) == 0) {
            if (!judge->started && kinds[i].take != take_start) {
                deviate(judge, "%s before start", name);
            }
            kinds[i].take(judge, event);
            return;
        }
    }
}

/* The outcome. */

/* reprod-launch's own: limits, not executable, not there. */
enum { LAUNCH_FAILED_FIRST = 125, LAUNCH_FAILED_LAST = 127 };

__attribute__((format(printf, 3, 4))) static enum outcome
conclude(char *ret_cause, enum outcome outcome, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(ret_cause, RUN_JUDGE_CAUSE_SIZE, format, args);
    va_end(args);
    return outcome;
}

static enum outcome judge_reason(const struct run_judge *judge, enum exit_reason reason,
                                 char *ret_cause)
{
    switch (reason) {
    case EXIT_REASON_TIMEOUT:
        return conclude(ret_cause, OUTCOME_TIMEOUT,
                        "killed at its deadline after %lld of %lld iterations",
                        (long long)judge->seen, (long long)judge->asked);
    case EXIT_REASON_CANCELLED:
        return conclude(ret_cause, OUTCOME_CANCELLED, "cancelled");
    case EXIT_REASON_FLOOD:
        return conclude(ret_cause, OUTCOME_INVALID,
                        "flood: wrote more, or longer lines, than a run may");
    default:
        return conclude(ret_cause, OUTCOME_INFRA,
                        "stuck: its process did not end after SIGKILL; the kernel holds "
                        "it, waiting for a driver or a disk. It may still occupy the "
                        "device, where the next run starts beside it");
    }
}

/* Whether it wrote its events into its log instead. */
static bool said_elsewhere(const struct run_judge *judge, const struct run_exit *exit)
{
    static const char sign[] = "{\"event\":";

    return !judge->started && exit->log &&
           memmem(exit->log, exit->log_length, sign, strlen(sign));
}

/* Of a process that ended by itself. */
static enum outcome judge_exit(const struct run_judge *judge, const struct run_exit *exit,
                               char *ret_cause)
{
    if (exit->signal) {
        return conclude(ret_cause, OUTCOME_CRASHED, "killed by SIG%s (signal %d)",
                        exit_signal_name(exit->signal), exit->signal);
    }
    if (!judge->started && exit->exit_code >= LAUNCH_FAILED_FIRST &&
        exit->exit_code <= LAUNCH_FAILED_LAST) {
        return conclude(ret_cause, OUTCOME_INFRA,
                        "the worker could not be started: exit status %d",
                        exit->exit_code);
    }
    if (judge->deviation[0]) {
        return conclude(ret_cause, OUTCOME_INVALID, "%s", judge->deviation);
    }
    if (!judge->ended) {
        return conclude(ret_cause, OUTCOME_CRASHED,
                        "exit status %d without an end event%s", exit->exit_code,
                        said_elsewhere(judge, exit)
                            ? ": events belong on descriptor 3, not on standard output"
                            : "");
    }
    if (exit->exit_code != 0) {
        return conclude(ret_cause, OUTCOME_INVALID, "exit status %d after the end event",
                        exit->exit_code);
    }
    return conclude(ret_cause, judge->end_outcome, "%s", judge->end_cause);
}

static enum outcome decide(const struct run_judge *judge, const struct run_exit *exit,
                           char ret_cause[RUN_JUDGE_CAUSE_SIZE])
{
    return exit->reason == EXIT_REASON_EXITED
               ? judge_exit(judge, exit, ret_cause)
               : judge_reason(judge, exit->reason, ret_cause);
}

/* The result. */

static int compare_digests(const void *a, const void *b)
{
    const struct run_judge_iteration *x = a, *y = b;
    int order = strcmp(x->digest, y->digest);

    return order ? order : (x->index > y->index) - (x->index < y->index);
}

static int compare_ns(const void *a, const void *b)
{
    const struct run_judge_iteration *x = a, *y = b;

    return (x->ns > y->ns) - (x->ns < y->ns);
}

static int compare_first(const void *a, const void *b)
{
    const struct run_digest *x = a, *y = b;

    return (x->first_iteration > y->first_iteration) -
           (x->first_iteration < y->first_iteration);
}

static void count_digests(struct run_judge *judge)
{
    size_t count = (size_t)judge->seen;

    qsort(judge->iterations, count, sizeof *judge->iterations, compare_digests);
    judge->digests = xcalloc(count, sizeof *judge->digests);
    for (size_t i = 0; i < count; i++) {
        const struct run_judge_iteration *it = &judge->iterations[i];

        if (i == 0 || strcmp(it->digest, judge->iterations[i - 1].digest) != 0) {
            struct run_digest *digest = &judge->digests[judge->digest_count++];

            copy_text(digest->digest, sizeof digest->digest, it->digest);
            digest->first_iteration = it->index;
        }
        judge->digests[judge->digest_count - 1].iterations++;
    }
    qsort(judge->digests, (size_t)judge->digest_count, sizeof *judge->digests,
          compare_first);
    judge->run.distinct_digests = judge->digest_count;
    copy_text(judge->run.digest, sizeof judge->run.digest, judge->digests[0].digest);
}

static void take_times(struct run_judge *judge)
{
    const struct run_judge_iteration *it = judge->iterations;
    int64_t count = judge->seen;

    qsort(judge->iterations, (size_t)count, sizeof *judge->iterations, compare_ns);
    judge->run.min_ns = it[0].ns;
    judge->run.max_ns = it[count - 1].ns;
    judge->run.median_ns = (it[(count - 1) / 2].ns + it[count / 2].ns) / 2;
}

void run_judge_finish(struct run_judge *judge, const struct run_exit *exit,
                      struct run_record *ret_run, struct run_result *ret_result)
{
    enum outcome outcome = decide(judge, exit, judge->run.cause);

    judge->run.outcome = outcome;
    judge->run.finished = true;
    judge->run.iterations = judge->seen;
    judge->run.wall_ns = (int64_t)(exit->wall_ms * 1e6);
    judge->run.max_rss_kb = exit->max_rss_kb;
    judge->log = xcalloc(exit->log_length + 1, 1);
    if (exit->log_length) {
        memcpy(judge->log, exit->log, exit->log_length);
    }
    /* What only a completed run may say: anything else shows nothing. */
    if (outcome == OUTCOME_COMPLETED) {
        count_digests(judge);
        take_times(judge);
    } else {
        judge->run.weight_sum[0] = judge->run.loss[0] = '\0';
        judge->run.elements = judge->run.bytes_hashed = 0;
        judge->run.check = (struct run_check){ .state = CHECK_NONE };
    }
    *ret_run = judge->run;
    *ret_result = (struct run_result){ .run = ret_run,
                                       .digests = judge->digests,
                                       .digest_count = judge->digest_count,
                                       .environment_json = judge->environment,
                                       .environment_title = judge->environment_title,
                                       .libraries_json = judge->libraries,
                                       .telemetry_start = judge->telemetry_start,
                                       .telemetry_end = judge->telemetry_end,
                                       .trace = judge->trace.count ? &judge->trace : NULL,
                                       .tensors = judge->tensors.items,
                                       .tensor_count = judge->tensors.count,
                                       .log = judge->log,
                                       .log_length = (int64_t)exit->log_length,
                                       .log_bytes = exit->log_bytes };
}

void run_judge_release(struct run_judge *judge)
{
    free(judge->iterations);
    free(judge->environment);
    free(judge->environment_title);
    free(judge->libraries);
    free(judge->telemetry_start);
    free(judge->telemetry_end);
    free(judge->log);
    free(judge->digests);
    trace_release(&judge->trace);
    run_captures_release(&judge->tensors);
    memset(judge, 0, sizeof *judge);
}
