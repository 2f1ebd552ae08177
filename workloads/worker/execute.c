#include "workloads/worker/execute.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "workloads/worker/checked.h"
#include "workloads/worker/circumstances.h"
#include "workloads/worker/environment.h"
#include "workloads/worker/libraries.h"
#include "workloads/worker/load.h"
#include "workloads/worker/probes.h"
#include "workloads/worker/run.h"
#include "workloads/worker/status.h"

enum { PROTOCOL_VERSION = 1, RESULT_FD_DEFAULT = 3 };

/* The run of this process.  `run` comes first: hooks hand back a pointer to it. */
static struct execution {
    struct run run;
    struct emit emit;
    struct probes probes;
    bool started; /* the start event is out */
    struct digest input_digest;
    int iterations; /* computed, hashed and reported */
    int64_t bytes_hashed;
    int libraries; /* mapped when the start event was sent */
} execution;

static int requested_fd(FILE *log)
{
    const char *text = getenv("REPROD_RESULT_FD");
    char *end;
    long fd;

    if (!text) {
        return RESULT_FD_DEFAULT;
    }
    errno = 0;
    fd = strtol(text, &end, 10);
    if (errno || end == text || *end || fd < 0 || fd > INT_MAX) {
        fprintf(log, "reprod-worker: REPROD_RESULT_FD is '%s', not a descriptor number\n",
                text);
        return -1;
    }
    return (int)fd;
}

int result_fd(FILE *log)
{
    int fd = requested_fd(log);
    int flags;

    if (fd < 0) {
        return -1;
    }
    flags = fcntl(fd, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) {
        fprintf(
            log,
            "reprod-worker: descriptor %d is not open for writing; the events of a run "
            "go there (in a shell: %d>&1)\n",
            fd, fd);
        return -1;
    }
    if (fd > STDERR_FILENO) {
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
    return fd;
}

static void begin_event(struct execution *x, const char *event)
{
    emit_begin(&x->emit);
    emit_string(&x->emit, "event", event);
}

static void emit_case(struct emit *emit, const struct run *run)
{
    char seed[24];

    snprintf(seed, sizeof seed, "%" PRIu64, run->seed);
    emit_string(emit, "workload", run->workload->name);
    emit_int(emit, "version", run->workload->version);
    emit_string(emit, "variant", run->variant->name);
    emit_string(emit, "size", run->size->name);
    emit_string(emit, "dtype", dtype_name(run->dtype));
    emit_string(emit, "seed", seed);
    emit_int(emit, "iterations", run->iterations);
    emit_int(emit, "threads", run->threads);
}

static void emit_telemetry(struct emit *emit, const struct run *run)
{
    if (run->backend->emit_telemetry) {
        emit_object(emit, "telemetry");
        run->backend->emit_telemetry(emit, run);
        emit_object_end(emit);
    }
}

static void send_start(struct execution *x)
{
    struct run *run = &x->run;
    struct emit *emit = &x->emit;

    x->input_digest = run_input_digest(run);
    x->started = true;
    begin_event(x, "start");
    emit_int(emit, "v", PROTOCOL_VERSION);
    emit_int(emit, "pid", getpid());
    emit_string(emit, "nonce", getenv("REPROD_NONCE")); /* null: by hand */
    emit_case(emit, run);
    emit_string(emit, "backend", run->backend->name);
    emit_string(emit, "device", run->backend->device_id());
    emit_string(emit, "algorithm", run->algorithm);
    emit_string(emit, "claim", run->claim);
    emit_digest(emit, "input_digest", x->input_digest);
    environment_emit(emit, run);
    circumstances_emit(emit);
    emit_telemetry(emit, run); /* may load a library */
    libraries_emit(emit);
    x->libraries = libraries_count();
    emit_send(emit);
}

static void compute_iteration(struct execution *x, const struct args *args, int index)
{
    struct run *run = &x->run;
    struct emit *emit = &x->emit;
    double milliseconds = run_compute(run, index);
    struct digest digest = run_output_digest(run);
    double weights = run->backend->exact_sum(run, &run->outputs[run->weights_output]);

    x->bytes_hashed += run_output_bytes(run);
    x->iterations++;
    begin_event(x, "iteration");
    emit_int(emit, "i", index);
    emit_digest(emit, "digest", digest);
    emit_bits(emit, "weight_sum", weights);
    if (run->has_loss) {
        emit_bits(emit, "loss", run->loss);
    } else {
        emit_null(emit, "loss");
    }
    emit_fixed(emit, "ms", milliseconds, 6);
    emit_string(emit, "algorithm", run->algorithm);
    emit_send(emit);
    checked_iteration(run, args, digest);
}

static void send_end(struct execution *x, const char *outcome, const char *cause,
                     struct digest input_digest)
{
    struct emit *emit = &x->emit;

    if (x->run.probes) {
        probes_flush(x->run.probes);
    }
    begin_event(x, "end");
    emit_string(emit, "outcome", outcome);
    emit_string(emit, "cause", cause);
    emit_int(emit, "iterations", x->iterations);
    emit_int(emit, "elements", x->iterations ? run_output_elements(&x->run) : 0);
    emit_int(emit, "bytes_hashed", x->bytes_hashed);
    emit_string(emit, "device", x->run.backend->device_id());
    emit_digest(emit, "input_digest", input_digest);
    if (libraries_count() != x->libraries) {
        libraries_emit(emit); /* some load parts of themselves when they are used */
    }
    if (x->probes.dropped > 0) {
        emit_int(emit, "probes_dropped", x->probes.dropped);
    }
    emit_telemetry(emit, &x->run);
    emit_send(emit);
}

static void refuse_mixed_libraries(struct execution *x)
{
    char cause[LIBRARIES_CAUSE_SIZE];

    if (libraries_mixed(cause)) {
        run_infra(&x->run, "%s", cause);
    }
}

/* The device may be what failed, so the inputs are not read again. */
static int end_early_cb(struct run *run, const char *outcome, const char *cause)
{
    struct execution *x = (struct execution *)run;

    load_stop();
    if (!x->started) {
        send_start(x);
    }
    send_end(x, outcome, cause, x->input_digest);
    return STATUS_OK;
}

int execute_run(const struct args *args, const struct backend *backend, int fd)
{
    struct execution *x = &execution;
    struct digest input_digest;
    bool whole = true;

    emit_init(&x->emit, fd);
    run_init(&x->run, args, backend);
    run_on_early_end(end_early_cb);
    run_prepare(&x->run);
    refuse_mixed_libraries(x);
    send_start(x);
    if (probes_wanted(&args->probes)) {
        probes_init(&x->probes, &args->probes, fd);
        x->run.probes = &x->probes;
    }
    for (int i = 0; i < x->run.iterations; i++) {
        compute_iteration(x, args, i);
        load_check(&x->run);
    }
    refuse_mixed_libraries(x);
    input_digest = run_input_digest(&x->run);
    run_finish(&x->run);
    if (args->check_seconds) {
        whole = checked_report(&x->run, args, &x->emit);
    }
    send_end(x, "completed", NULL, input_digest);
    if (!whole) {
        _exit(STATUS_OK); /* a thread uses what an exit would free */
    }
    return STATUS_OK;
}
