#include "workloads/worker/checked.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "workloads/worker/check.h"

enum { CAUSE_SIZE = 128 };

/* What is compared, and what the thread computes; it may outlive the wait for it. */
static struct {
    bool chosen; /* the iteration is */
    bool copied;
    struct host_copies copies;
    struct digest digest;
    double weight_sum;
    struct deviation worst;
    const char *output; /* that has it */
} checked;

static void *compare(void *arg)
{
    const struct run *run = &checked.copies.run;
    struct digest digests[RUN_TENSORS_MAX];

    (void)arg;
    checked.worst.ratio = -1;
    for (int i = 0; i < run->output_count; i++) {
        const struct tensor *output = &run->outputs[i];
        struct reading reading = reading_of_copy(output, output->data);
        struct deviation worst = check_output(&checked.copies, i);

        digests[i] = reading.digest;
        if (i == run->weights_output) {
            checked.weight_sum = reading.sum;
        }
        if (!(worst.ratio <= checked.worst.ratio)) { /* also what is no number */
            checked.worst = worst;
            checked.output = output->name;
        }
    }
    checked.digest = digest_combine(digests, run->output_count);
    return NULL;
}

/* A hook of the workload cannot be interrupted, so it has a thread of its own. */
static bool compare_within(int seconds, char ret_cause[CAUSE_SIZE])
{
    struct timespec deadline;
    pthread_t thread;
    int error = pthread_create(&thread, NULL, compare, NULL);

    if (error) {
        snprintf(ret_cause, CAUSE_SIZE, "no thread for it: %s", strerror(error));
        return false;
    }
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += seconds;
    if (pthread_timedjoin_np(thread, NULL, &deadline)) {
        snprintf(ret_cause, CAUSE_SIZE, "it takes more than %d s on this host", seconds);
        return false;
    }
    return true;
}

static void send_checking(struct emit *emit, int seconds)
{
    emit_begin(emit);
    emit_string(emit, "event", "checking");
    emit_int(emit, "seconds", seconds);
    emit_send(emit);
}

static void begin_check(struct emit *emit, const char *result)
{
    emit_begin(emit);
    emit_string(emit, "event", "check");
    emit_string(emit, "result", result);
}

static void send_compared(struct emit *emit)
{
    const struct deviation *worst = &checked.worst;

    begin_check(emit, worst->ratio <= 1 ? "passed" : "failed");
    emit_int(emit, "i", checked.copies.run.iteration);
    emit_digest(emit, "digest", checked.digest);
    emit_bits(emit, "weight_sum", checked.weight_sum);
    emit_double(emit, "share", worst->ratio);
    emit_string(emit, "output", checked.output);
    emit_int(emit, "index", worst->index);
    emit_double(emit, "got", worst->got);
    emit_double(emit, "expected", worst->expected);
    emit_double(emit, "bound", worst->bound);
    emit_send(emit);
}

static bool report_without(struct emit *emit, const char *cause)
{
    begin_check(emit, cause ? "given_up" : "known");
    if (cause) {
        emit_string(emit, "cause", cause);
    }
    emit_send(emit);
    return true;
}

void checked_iteration(struct run *run, const struct args *args, struct digest digest)
{
    if (!args->check_seconds || checked.chosen ||
        (args->has_passed && digest_equal(digest, args->passed))) {
        return;
    }
    checked.chosen = true;
    checked.copied = host_copies_take_outputs(&checked.copies, run);
}

bool checked_report(struct run *run, const struct args *args, struct emit *emit)
{
    char cause[CAUSE_SIZE];

    if (!checked.chosen) {
        return report_without(emit, NULL);
    }
    send_checking(emit, args->check_seconds);
    if (!checked.copied || !host_copies_take_inputs(&checked.copies, run)) {
        return report_without(emit, "no host memory for a copy of inputs and outputs");
    }
    if (compare_within(args->check_seconds, cause)) {
        send_compared(emit);
        return true;
    }
    report_without(emit, cause);
    return false;
}
