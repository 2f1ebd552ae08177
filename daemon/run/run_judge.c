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

void run_judge_asks_check(struct run_judge *judge, const char *passed)
{
    judge->checks = true;
    copy_text(judge->passed, sizeof judge->passed, passed);
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

/* What a worker says that could open none; take_end has what it may say then. */
static const char no_device[] = "unknown";

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

static enum err_code take_count(const json_t *said, const char *name, const char *of,
                                int64_t asked, int64_t *ret_taken, struct err *err)
{
    const json_t *value = json_object_get(said, name);
    json_int_t count = json_integer_value(value);

    if (value && (!json_is_integer(value) || count < 1)) {
        return err_set(err, ERR_PROTOCOL, "circumstances.%s is no number of %s", name,
                       of);
    }
    if (count != asked) {
        return err_set(err, ERR_PROTOCOL, "%s is %lld, %lld was asked for", name,
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
    if (take_count(said, "contention", "loads", asked->contention, &taken.contention,
                   err) != ERR_OK ||
        take_count(said, "shared_import", "imports", asked->shared_import,
                   &taken.shared_import, err) != ERR_OK ||
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
    if (strcmp(start.device, no_device) != 0) {
        must_equal(judge, "device", start.device, judge->device);
    }
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

#define THEN ", then "

/* Whether LIST, joined by THEN, has NAME. */
static bool lists(const char *list, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = list; at; at = strstr(at, THEN)) {
        at += at == list ? 0 : strlen(THEN);
        if (strncmp(at, name, length) == 0 &&
            (at[length] == '\0' || strncmp(at + length, THEN, strlen(THEN)) == 0)) {
            return true;
        }
    }
    return false;
}

/* All that its iterations used, cut where they are many: the last one is not that of the
 * run. */
static void take_algorithm(struct run_judge *judge, const char *algorithm)
{
    char *known = judge->run.algorithm;
    size_t used = strlen(known);

    if (judge->seen == 0) {
        copy_text(known, sizeof judge->run.algorithm, algorithm);
    } else if (!lists(known, algorithm)) {
        snprintf(known + used, sizeof judge->run.algorithm - used, THEN "%s", algorithm);
        wire_clean(known); /* it may have been cut within a character */
    }
}

static void keep_iteration(void *arg, const struct iteration_event *iteration)
{
    struct run_judge *judge = arg;
    struct run_judge_iteration *slot;

    if (judge->seen == judge->asked) {
        deviate(judge, "more iterations than the %lld that were asked for",
                (long long)judge->asked);
        return;
    }
    if (iteration->index != judge->seen) {
        deviate(judge, "iteration %lld came where %lld was due",
                (long long)iteration->index, (long long)judge->seen);
        return;
    }
    judge->iterations = xgrow(judge->iterations, judge->seen, sizeof *judge->iterations);
    slot = &judge->iterations[judge->seen];
    copy_text(slot->digest, sizeof slot->digest, iteration->digest);
    copy_text(slot->weight_sum, sizeof slot->weight_sum, iteration->weight_sum);
    copy_text(slot->loss, sizeof slot->loss, iteration->loss ? iteration->loss : "");
    if (strspn(slot->digest, "0") == strlen(slot->digest)) {
        deviate(judge, "iteration %lld has a digest of zeros",
                (long long)iteration->index);
    }
    take_algorithm(judge, iteration->algorithm);
    slot->index = judge->seen++;
    slot->ns = iteration->ns;
    copy_text(judge->run.weight_sum, sizeof judge->run.weight_sum, iteration->weight_sum);
    copy_text(judge->run.loss, sizeof judge->run.loss,
              iteration->loss ? iteration->loss : "");
}

static void read_iterations(struct run_judge *judge, const json_t *event, bool several)
{
    struct err err;

    if (iteration_event_read(event, several, keep_iteration, judge, &err) != ERR_OK) {
        deviate(judge, "iteration %lld: %s", (long long)judge->seen, err.message);
    }
}

static void take_iteration(struct run_judge *judge, const json_t *event)
{
    read_iterations(judge, event, false);
}

static int compare_iterations(const void *a, const void *b)
{
    const struct run_judge_iteration *x = a, *y = b;
    int order = strcmp(x->digest, y->digest);

    return order ? order : (x->index > y->index) - (x->index < y->index);
}

/* Equal outputs have equal sums: else the digest is not of what is reported. */
static void check_sums(struct run_judge *judge)
{
    size_t bytes = (size_t)judge->seen * sizeof *judge->iterations;
    struct run_judge_iteration *sorted = xmalloc(bytes + 1);

    if (bytes) {
        memcpy(sorted, judge->iterations, bytes);
        qsort(sorted, (size_t)judge->seen, sizeof *sorted, compare_iterations);
    }
    for (int64_t i = 1; i < judge->seen; i++) {
        const struct run_judge_iteration *x = &sorted[i - 1], *y = &sorted[i];

        if (strcmp(x->digest, y->digest) == 0 &&
            (strcmp(x->weight_sum, y->weight_sum) != 0 ||
             strcmp(x->loss, y->loss) != 0)) {
            deviate(judge,
                    "iterations %lld and %lld have the same digest and another weight "
                    "sum or loss",
                    (long long)x->index, (long long)y->index);
        }
    }
    free(sorted);
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
    } else if (judge->seen > 0 && end->elements > end->bytes_hashed / judge->seen) {
        deviate(judge,
                "no proof of work: %lld bytes hashed are fewer than %lld elements in "
                "each of %lld iterations",
                (long long)end->bytes_hashed, (long long)end->elements,
                (long long)judge->seen);
    }
    check_sums(judge);
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
    if (judge->end_outcome != OUTCOME_INFRA &&
        strcmp(judge->run.device_read_back, no_device) == 0) {
        must_equal(judge, "device", no_device, judge->device);
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

/* What was compared must be what its iteration reported. */
static void check_compared(struct run_judge *judge, const struct check_event *event)
{
    const struct run_judge_iteration *reported;

    if (event->iteration >= judge->seen) {
        deviate(judge, "check: of iteration %lld, and there were %lld",
                (long long)event->iteration, (long long)judge->seen);
        return;
    }
    reported = &judge->iterations[event->iteration];
    if (strcmp(event->digest, reported->digest) != 0) {
        deviate(judge, "check: the outputs have digest %s, iteration %lld reported %s",
                event->digest, (long long)event->iteration, reported->digest);
    }
    if (strcmp(event->weight_sum, reported->weight_sum) != 0) {
        deviate(judge, "check: the outputs' weight sum has bits %s, not %s",
                event->weight_sum, reported->weight_sum);
    }
}

static void check_known(struct run_judge *judge)
{
    for (int64_t i = 0; i < judge->seen; i++) {
        if (strcmp(judge->iterations[i].digest, judge->passed) != 0) {
            deviate(judge, "check: iteration %lld has digest %s, which is not known",
                    (long long)i, judge->iterations[i].digest);
        }
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
    if (!judge->checks || check->state != CHECK_NONE || judge->seen != judge->asked) {
        deviate(judge, "a check that was not asked for, or before the last iteration");
        return;
    }
    check->state = check_state_parse(read.result);
    if (check->state == CHECK_GIVEN_UP) {
        copy_text(check->words, sizeof check->words, read.cause);
    } else if (check->state == CHECK_KNOWN) {
        check_known(judge);
    } else {
        check_compared(judge, &read);
        keep_compared(check, &read);
    }
    wire_clean(check->words);
}

static void take_checking(struct run_judge *judge, const json_t *event)
{
    (void)event;
    judge->checking = true;
}

static const struct {
    const char *name;
    void (*take)(struct run_judge *judge, const json_t *event);
} kinds[] = {
    { "start", take_start },       { "iteration", take_iteration },
    { "probe", take_probe },       { "probes", take_probes },
    { "checking", take_checking }, { "check", take_check },
    { "tensor", take_tensor },     { "end", take_end },
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

void run_judge_iterations(struct run_judge *judge, const json_t *event)
{
    if (judge->ended) {
        deviate(judge, "an event after end: 'iteration'");
        return;
    }
    if (!judge->started) {
        deviate(judge, "iteration before start");
    }
    read_iterations(judge, event, true);
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
