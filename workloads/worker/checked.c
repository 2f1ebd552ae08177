#include "workloads/worker/checked.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "workloads/worker/check.h"

enum { CAUSE_SIZE = 128 };

/* What the thread computes; it may outlive the wait for it. */
static struct {
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

static void begin_check(struct emit *emit, const struct run *run, const char *result)
{
    emit_begin(emit);
    emit_string(emit, "event", "check");
    emit_int(emit, "i", run->iteration);
    emit_string(emit, "result", result);
}

static void send_compared(struct emit *emit, const struct run *run)
{
    const struct deviation *worst = &checked.worst;

    begin_check(emit, run, worst->ratio <= 1 ? "passed" : "failed");
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

bool checked_report(struct run *run, int seconds, struct emit *emit)
{
    char cause[CAUSE_SIZE];

    send_checking(emit, seconds);
    host_copies_take_inputs(&checked.copies, run);
    host_copies_take_outputs(&checked.copies, run);
    if (compare_within(seconds, cause)) {
        send_compared(emit, run);
        return true;
    }
    begin_check(emit, run, "given_up");
    emit_string(emit, "cause", cause);
    emit_send(emit);
    return false;
}
