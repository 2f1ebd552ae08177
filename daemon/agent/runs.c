#include "daemon/agent/runs.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/agent/external.h"
#include "daemon/agent/iterations.h"
#include "daemon/agent/origin.h"
#include "daemon/agent/run_request.h"
#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"
#include "daemon/process/proc.h"
#include "daemon/process/wire.h"

enum {
    RESULT_FD = 3,
    ID_MAX = 64,
    EXTRA_LINES = 300000, /* in addition to iterations: one for each record of a trace */
    CHECK_SLACK_S = 30,   /* to copy what is compared, and to end */
    SIGNALLED = 128, /* and the signal: the exit status of a shell whose child it ended */
    HOLD_MS = 100,   /* for which an iteration waits for those that are alike */
    LATER_MS = 1000, /* between the SIGTERM of a run and that of its agent, either of
                        which may come first; likewise SIGKILL */
    SOON_MS = 250    /* the same where nothing speaks for that: it may have caught it */
};
static const int64_t BYTES_MAX = 64 * 1024 * 1024;

struct agent_run {
    struct agent_run *next;
    struct runs *runs;
    struct supervised *supervised;
    char *id, *device;
    int64_t check_seconds;        /* by which `checking` moves the deadline, once */
    struct external_run external; /* all zero where a worker computes */
    struct origin origin;
    bool merges;            /* iterations that are alike, into one event */
    struct iterations held; /* of those */
    bool returns_nonce;     /* its start event has to */
    bool ended;             /* its end event came, */
    bool completed;         /* and says so */
    json_t *exited;         /* its report, which waits; NULL: none does */
};

static struct agent_run *find_run(const struct runs *runs, const char *id)
{
    struct agent_run *run = runs->first;

    while (run && strcmp(run->id, id) != 0) {
        run = run->next;
    }
    return run;
}

bool runs_are_active(const struct runs *runs)
{
    return runs->first != NULL;
}

static void forget(struct agent_run *run)
{
    struct agent_run **at = &run->runs->first;

    while (*at != run) {
        at = &(*at)->next;
    }
    *at = run->next;
    external_run_release(&run->external);
    free(run->id);
    free(run->device);
    free(run);
}

static void tell_held(struct agent_run *run)
{
    json_t *event = iterations_take(&run->held, run->id);

    if (event) {
        run->runs->send(run->runs->arg, event);
    }
}

static void tell_all_held(struct runs *runs)
{
    for (struct agent_run *run = runs->first; run; run = run->next) {
        tell_held(run);
    }
}

static void tell_cb(uv_timer_t *timer)
{
    tell_all_held(timer->data);
}

/* Takes DATA over, or false: it is to be told now, and all before it was. */
static bool hold(struct agent_run *run, json_t *data)
{
    uv_timer_t *timer = &run->runs->tell;

    if (!run->merges) {
        return false;
    }
    if (!iterations_hold(&run->held, data)) {
        tell_held(run);
        if (!iterations_hold(&run->held, data)) {
            return false;
        }
    }
    if (!uv_is_active((uv_handle_t *)timer)) {
        uv_timer_start(timer, tell_cb, HOLD_MS, 0);
    }
    return true;
}

static void send_garbage(struct agent_run *run, const char *cause)
{
    tell_held(run);
    run->runs->send(run->runs->arg,
                    json_pack("{s:s,s:s,s:o}", "event", "garbage", "run", run->id,
                              "cause", wire_string(cause, strlen(cause))));
}

/* The run computed its last iteration, and goes on to compare with the reference: whether
 * that takes long says nothing of the workload. */
static void allow_check(struct agent_run *run, const json_t *data)
{
    const char *event = in_text(data, "event");

    if (run->check_seconds && event && strcmp(event, "checking") == 0) {
        supervised_extend(run->supervised, (run->check_seconds + CHECK_SLACK_S) * 1000);
        run->check_seconds = 0;
    }
}

static void note_end(struct agent_run *run, const json_t *data)
{
    if (strcmp(in_text_or_empty(data, "event"), "end") == 0) {
        run->ended = true;
        run->completed = strcmp(in_text_or_empty(data, "outcome"), "completed") == 0;
    }
}

static void check_origin(struct agent_run *run, const json_t *data)
{
    const char *event = in_text(data, "event");
    struct err err;

    if (run->returns_nonce && event && strcmp(event, "start") == 0 &&
        origin_check(&run->origin, data, supervised_pid(run->supervised), &err) !=
            ERR_OK) {
        send_garbage(run, err.message);
    }
}

static void worker_line(void *arg, int64_t number, const char *text, size_t length,
                        bool complete)
{
    struct agent_run *run = arg;
    struct err err = { ERR_PROTOCOL, "cut off" };
    json_t *data = complete ? wire_parse(text, length, &err) : NULL;
    char *cause;

    if (data && run->external.workload) {
        external_run_amend(&run->external, data);
    }
    if (data) {
        allow_check(run, data);
        note_end(run, data);
        check_origin(run, data);
        if (!hold(run, data)) {
            run->runs->send(run->runs->arg, json_pack("{s:s,s:s,s:o}", "event", "worker",
                                                      "run", run->id, "data", data));
        }
        return;
    }
    cause = xasprintf("line %lld: %s", (long long)number, err.message);
    send_garbage(run, cause);
    free(cause);
}

static json_t *integer_or_null(bool there, json_int_t value)
{
    return there ? json_integer(value) : json_null();
}

static json_t *exited_json(const struct agent_run *run, const struct run_exit *exit,
                           enum exit_reason reason)
{
    return json_pack(
        "{s:s,s:s,s:o,s:o,s:s,s:f,s:I,s:o,s:I}", "event", "exited", "run", run->id,
        "exit_code", integer_or_null(exit->exit_code >= 0, exit->exit_code), "signal",
        integer_or_null(exit->signal != 0, exit->signal), "reason",
        exit_reason_name(reason), "wall_ms", exit->wall_ms, "max_rss_kb",
        (json_int_t)exit->max_rss_kb, "log", wire_string(exit->log, exit->log_length),
        "log_bytes", (json_int_t)exit->log_bytes);
}

/* RUN is over with its report. */
static void report(struct agent_run *run)
{
    struct runs *runs = run->runs;
    json_t *exited = run->exited;

    run->exited = NULL;
    runs->send(runs->arg, exited);
    forget(run);
    runs->ended(runs->arg);
}

static void report_all(struct runs *runs)
{
    struct agent_run *next;

    for (struct agent_run *run = runs->first; run; run = next) {
        next = run->next;
        if (run->exited) {
            report(run);
        }
    }
}

static void later_cb(uv_timer_t *timer)
{
    report_all(timer->data);
}

void runs_open(struct runs *runs, uv_loop_t *loop)
{
    uv_timer_init(loop, &runs->later);
    uv_timer_init(loop, &runs->tell);
    runs->later.data = runs->tell.data = runs;
}

void runs_close(struct runs *runs)
{
    uv_close((uv_handle_t *)&runs->later, NULL);
    uv_close((uv_handle_t *)&runs->tell, NULL);
}

void runs_end(struct runs *runs)
{
    runs->ending = true;
    tell_all_held(runs);
    for (struct agent_run *run = runs->first; run; run = run->next) {
        if (run->exited) {
            json_object_set_new(run->exited, "reason",
                                json_string(exit_reason_name(EXIT_REASON_CANCELLED)));
        }
    }
    report_all(runs);
}

/* Whether RUN may have ended so because it was told to: some schedulers send SIGTERM, or
 * SIGKILL, to each process that they find.  One that takes the first well exits with 0.
 */
static bool was_told(const struct agent_run *run, const struct run_exit *exit)
{
    int number = exit->signal ? exit->signal : exit->exit_code - SIGNALLED;

    return number == SIGTERM || number == SIGKILL ||
           (exit->exit_code == 0 && !run->ended);
}

/* One timer for all: whoever waits longest, for all of them. */
static void wait_for_signal(struct runs *runs, uint64_t ms)
{
    if (!uv_is_active((uv_handle_t *)&runs->later) ||
        uv_timer_get_due_in(&runs->later) < ms) {
        uv_timer_start(&runs->later, later_cb, ms, 0);
    }
}

static void worker_finished(void *arg, const struct run_exit *exit)
{
    struct agent_run *run = arg;
    struct runs *runs = run->runs;
    bool by_itself =
        exit->reason == EXIT_REASON_EXITED &&
        (exit->exit_code != 0 || (runs->ending ? !run->completed : !run->ended));
    struct err err;

    tell_held(run);
    if (run->external.workload && !external_run_unchanged(&run->external, &err)) {
        send_garbage(run, err.message);
    }
    run->exited = exited_json(
        run, exit, by_itself && runs->ending ? EXIT_REASON_CANCELLED : exit->reason);
    if (by_itself && !runs->ending) {
        wait_for_signal(runs, was_told(run, exit) ? LATER_MS : SOON_MS);
    } else {
        report(run);
    }
}

static const struct supervised_events run_events = { worker_line, worker_finished };

static enum err_code check_device(const struct runs *runs,
                                  const struct run_request *request, struct err *err)
{
    if (!stack_has_device(request->stack, request->device)) {
        return err_set(err, ERR_NOT_FOUND, "stack '%s' has no device '%s'",
                       request->stack->name, request->device);
    }
    for (const struct agent_run *run = runs->first; run; run = run->next) {
        if (strcmp(run->device, request->device) == 0) {
            return err_set(err, ERR_BUSY, "device '%s' is busy with run %s", run->device,
                           run->id);
        }
    }
    return ERR_OK;
}

static enum err_code read_request(const struct runs *runs, const json_t *command,
                                  struct run_request *request, struct err *err)
{
    if (run_request_read(command, request, err) != ERR_OK) {
        return err->code;
    }
    if (runs->refuse_cause) {
        return err_set(err, ERR_BUSY, "%s", runs->refuse_cause);
    }
    if (find_run(runs, request->id)) {
        return err_set(err, ERR_CONFLICT, "that run is there already");
    }
    if (run_request_find_stack(request, runs->stacks, runs->stack_count, err) != ERR_OK ||
        check_device(runs, request, err) != ERR_OK) {
        return err->code;
    }
    return run_request_prepare(request, runs->threads, err);
}

/* The process that REQUEST asks for. */
static struct supervise supervise_of(const struct run_request *request,
                                     char *const *environment)
{
    const struct external_run *external = &request->external;
    struct supervise supervise = { .program = request->stack->worker,
                                   .args = request->args,
                                   .env = environment,
                                   .data_fd = RESULT_FD,
                                   .timeout_ms = request->timeout_ms,
                                   .max_lines = EXTRA_LINES +
                                                in_int(request->arguments, "iterations"),
                                   .max_bytes = BYTES_MAX,
                                   .patient = true };

    if (external->workload) {
        supervise.program = external->build.program;
        supervise.args = external->args;
        supervise.directory = external->directory;
        if (supervise.timeout_ms > external->timeout_ms) {
            supervise.timeout_ms = external->timeout_ms;
        }
    }
    return supervise;
}

static void say_started(const struct runs *runs, const struct agent_run *run)
{
    struct proc_stat stat = { 0 };

    proc_stat(supervised_pid(run->supervised), &stat);
    runs->send(runs->arg,
               json_pack("{s:s,s:s,s:I,s:I}", "event", "started", "run", run->id, "pid",
                         (json_int_t)supervised_pid(run->supervised), "process_start",
                         (json_int_t)stat.start));
}

/* An older worker does not know its nonce. */
static bool returns_nonce(const struct run_request *request)
{
    return request->external.workload ||
           json_is_true(json_object_get(request->stack->probe, "nonce"));
}

/* The environment of REQUEST's process, taken out of it. */
static char **take_environment(struct run_request *request)
{
    char **environment = request->external.env;

    request->external.env = NULL;
    return environment ? environment : stack_environment(request->stack);
}

/* Of what is asked what makes it another case: not how many iterations, or what is
 * recorded. Caller frees. */
static char *case_of(const json_t *asked)
{
    static const char *const names[] = { "workload", "size", "dtype", "seed" };
    json_t *key = json_array();
    char *text;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const json_t *value = json_object_get(asked, names[i]);

        json_array_append_new(key, value ? json_deep_copy(value) : json_null());
    }
    text = json_dumps(key, JSON_COMPACT);
    json_decref(key);
    return text;
}

/* A forker has imported its framework as the variant wants it, and computes on one device
 * with so many threads. */
static enum err_code fork_run(struct runs *runs, const struct run_request *request,
                              const struct origin *origin, struct supervise process,
                              struct agent_run *run, struct err *err)
{
    const json_t *asked = request->arguments;
    const char *variant = in_text(asked, "variant");
    char *threads = xasprintf("%d", run_request_threads(request, runs->threads));
    const char *const args[] = { "--fork", "--variant", variant,         "--threads",
                                 threads,  "--device",  request->device, NULL };
    char *key =
        xasprintf("%s/%s/%s/%s", request->stack->name, request->device, variant, threads);
    char *what = case_of(asked);
    json_t *question =
        json_pack("{s:O,s:s}", "arguments", asked, "nonce", origin_nonce(origin));
    struct forker_run forked = { process, key, request->device, what, question };
    enum err_code rc;

    forked.process.args = (char *const *)args;
    rc = forkers_run(&runs->forkers, &forked, &run_events, run, &run->supervised, err);
    json_decref(question);
    free(what);
    free(key);
    free(threads);
    return rc;
}

static enum err_code start_process(struct runs *runs, struct run_request *request,
                                   struct agent_run *run, struct err *err)
{
    char **environment = take_environment(request);
    struct supervise supervise;
    enum err_code rc;

    if (!request->shared_import) {
        environment = origin_environment(&run->origin, environment);
    }
    supervise = supervise_of(request, environment);
    rc = request->shared_import
             ? fork_run(runs, request, &run->origin, supervise, run, err)
             : supervisor_start(runs->supervisor, &supervise, &run_events, run,
                                &run->supervised, err);
    free_texts(environment);
    return rc;
}

/* Takes over the external run of REQUEST. */
static enum err_code start(struct runs *runs, struct run_request *request,
                           struct err *err)
{
    struct agent_run *run = xcalloc(1, sizeof *run);

    origin_draw(&run->origin);
    run->returns_nonce = returns_nonce(request);
    if (start_process(runs, request, run, err) != ERR_OK) {
        free(run);
        return err->code;
    }
    run->external = request->external;
    request->external = (struct external_run){ 0 };
    run->runs = runs;
    run->id = xstrdup(request->id);
    run->device = xstrdup(request->device);
    run->merges = request->merge_iterations;
    run->check_seconds = run->external.workload ? 0 : request->check_seconds;
    run->next = runs->first;
    runs->first = run;
    say_started(runs, run);
    return ERR_OK;
}

/* Borrowed from COMMAND; NULL, with ERR filled, if it names no run. */
static const char *read_id(const json_t *command, struct err *err)
{
    const char *id = in_text(command, "run");

    if (!id || id[0] == '\0' || strlen(id) > ID_MAX) {
        err_set(err, ERR_PROTOCOL, "a command does not name its run");
        return NULL;
    }
    return id;
}

enum err_code runs_command(struct runs *runs, const json_t *command, struct err *err)
{
    struct run_request request = { .id = read_id(command, err) };
    struct err refusal;

    if (!request.id) {
        return ERR_PROTOCOL;
    }
    if (read_request(runs, command, &request, &refusal) != ERR_OK ||
        start(runs, &request, &refusal) != ERR_OK) {
        json_t *cause = wire_string(refusal.message, strlen(refusal.message));

        runs->send(runs->arg, json_pack("{s:s,s:s,s:o}", "event", "refused", "run",
                                        request.id, "cause", cause));
    }
    run_request_release(&request);
    return ERR_OK;
}

enum err_code runs_cancel(struct runs *runs, const json_t *command, struct err *err)
{
    const char *id = read_id(command, err);
    const struct agent_run *run = id ? find_run(runs, id) : NULL;

    if (!id) {
        return ERR_PROTOCOL;
    }
    if (run && !run->exited) {
        supervised_kill(run->supervised, EXIT_REASON_CANCELLED);
    }
    return ERR_OK;
}
