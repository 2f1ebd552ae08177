/* The happy path: become the subreaper, probe every stack, say hello, carry out commands
 * until standard input ends; then kill what runs, wait for it, exit.
 *
 * SIGTERM ends it with notice: it says so, and lets runs end.
 *
 * What can go wrong: a probe hangs (its deadline passes and the stack is reported with a
 * cause, asked again later, and reported anew once that changes); the daemon reads slowly
 * (workers are read slowly too: backpressure); the daemon dies (standard input ends,
 * the parent-death signal comes, or its pings stay away); a process does not die (it is
 * reported as stuck, and at the end left behind). */
#include "daemon/agent/agent.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <uv.h>

#include "daemon/agent/host_facts.h"
#include "daemon/agent/processes.h"
#include "daemon/agent/runs.h"
#include "daemon/agent/supervise.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/base/text.h"
#include "daemon/process/exit_code.h"
#include "daemon/process/loop.h"
#include "daemon/process/proc.h"
#include "daemon/process/signals.h"
#include "daemon/process/stream.h"
#include "daemon/process/wire.h"

enum {
    QUEUE_HIGH = 4 * 1024 * 1024,
    QUEUE_LOW = 256 * 1024,
    STOP_POLL_MS = 10,
    STOP_SLACK_MS = 1000,
    PROBE_FIRST_MS =
        1000,        /* before what is not usable is asked again; then twice that … */
    AGAIN_MS = 1000, /* a second SIGTERM that comes sooner is the same as the first */
    TICK_MS = 1000,
    PROBE_MOST_MS = 300000 /* … up to this: a probe disturbs what runs beside it */
};

enum phase { PROBING, SERVING, DRAINING, ENDING, STOPPING };

struct agent {
    struct agent_options options;
    enum phase phase;
    int exit_code;
    uv_loop_t loop;
    struct supervisor supervisor;
    struct runs runs;
    struct processes processes;
    struct stream_reader in;
    struct wire_lines lines;
    struct stream_writer out;
    uv_signal_t terminate, interrupt;
    int64_t ending_ms; /* monotonic, since when it is */
    pid_t parent;      /* the daemon, if it is on this host; 0 */
    uv_timer_t notice, tick;
    int64_t silent_s; /* ticks since the daemon was last heard: while this process
                         stands still, none pass */
    uv_timer_t stop_timer;
    int64_t stop_polls; /* left */
    int probing;        /* stacks that have not answered */
    int own_stacks;     /* those with a worker; external ones follow */
    uv_timer_t probe_timer;
    int64_t probe_wait_ms; /* 0: nothing was asked again yet */
};

static void handle_closed(void *arg)
{
    (void)arg;
}

static void close_everything(struct agent *agent)
{
    supervisor_close(&agent->supervisor, handle_closed, agent);
    stream_reader_close(&agent->in, handle_closed);
    stream_writer_close(&agent->out, handle_closed);
    uv_close((uv_handle_t *)&agent->terminate, NULL);
    uv_close((uv_handle_t *)&agent->interrupt, NULL);
    uv_close((uv_handle_t *)&agent->stop_timer, NULL);
    uv_close((uv_handle_t *)&agent->notice, NULL);
    uv_close((uv_handle_t *)&agent->tick, NULL);
    runs_close(&agent->runs);
    processes_close(&agent->processes);
    uv_close((uv_handle_t *)&agent->probe_timer, NULL);
}

/* Ends the loop when there is nothing left to wait for, and after a while in any case. */
static void stop_timer_cb(uv_timer_t *timer)
{
    struct agent *agent = timer->data;

    if (--agent->stop_polls > 0 &&
        (supervisor_is_busy(&agent->supervisor) ||
         (stream_writer_queued(&agent->out) > 0 && agent->exit_code == EXIT_CODE_OK))) {
        return;
    }
    uv_timer_stop(timer);
    close_everything(agent);
}

static void stop(struct agent *agent, int exit_code)
{
    if (agent->phase == STOPPING) {
        return;
    }
    agent->phase = STOPPING;
    agent->exit_code = exit_code;
    agent->runs.refuse_cause = "the agent is stopping";
    stream_reader_pause(&agent->in, true);
    supervisor_pause(&agent->supervisor, false);
    supervisor_kill_all(&agent->supervisor);
    runs_end(&agent->runs);
    agent->stop_polls = (2 * agent->options.grace_ms + STOP_SLACK_MS) / STOP_POLL_MS;
    uv_timer_start(&agent->stop_timer, stop_timer_cb, 0, STOP_POLL_MS);
}

static void send_event(void *arg, json_t *event)
{
    struct agent *agent = arg;

    stream_writer_send(&agent->out, event);
}

static void maybe_drained(void *arg)
{
    struct agent *agent = arg;

    if ((agent->phase == DRAINING || agent->phase == ENDING) &&
        !runs_are_active(&agent->runs)) {
        stop(agent, EXIT_CODE_OK);
    }
}

static void out_broken(void *arg, const char *cause)
{
    log_error("cannot write to the daemon: %s", cause);
    stop(arg, EXIT_CODE_OTHER);
}

static void out_pressure(void *arg, bool high)
{
    struct agent *agent = arg;

    if (agent->phase != STOPPING) {
        supervisor_pause(&agent->supervisor, high);
    }
}

static enum err_code execute_command(struct agent *agent, const json_t *command,
                                     struct err *err)
{
    const char *name = json_string_value(json_object_get(command, "command"));

    if (!name) {
        return err_set(err, ERR_PROTOCOL, "a line without a command");
    }
    if (strcmp(name, "run") == 0) {
        return runs_command(&agent->runs, command, err);
    }
    if (strcmp(name, "cancel") == 0) {
        return runs_cancel(&agent->runs, command, err);
    }
    if (strcmp(name, "ping") == 0) {
        send_event(agent, json_pack("{s:s}", "event", "pong"));
        return ERR_OK;
    }
    if (strcmp(name, "drain") == 0) {
        agent->phase = agent->phase == ENDING ? ENDING : DRAINING;
        agent->runs.refuse_cause = "the agent is draining";
        maybe_drained(agent);
    } else {
        log_warning("ignored an unknown command");
    }
    return ERR_OK;
}

static int in_line(void *arg, const char *text, size_t length)
{
    struct agent *agent = arg;
    struct err err;
    json_t *command = wire_parse(text, length, &err);
    enum err_code rc = command ? execute_command(agent, command, &err) : err.code;

    json_decref(command);
    if (rc != ERR_OK) {
        log_error("standard input, line %lld: %s", (long long)agent->lines.count,
                  err.message);
    }
    return agent->phase == STOPPING ? ERR_BUSY : (int)rc;
}

static void in_bytes(void *arg, const char *data, size_t length)
{
    struct agent *agent = arg;
    int rc;

    agent->silent_s = 0;
    rc = agent->phase == STOPPING
             ? ERR_OK
             : wire_lines_feed(&agent->lines, data, length, in_line, agent);

    if (rc == ERR_TOO_LARGE) {
        log_error("standard input: a line is longer than %d bytes", WIRE_LINE_MAX);
    }
    if (rc != ERR_OK) {
        stop(agent, EXIT_CODE_OTHER);
    }
}

static void in_end(void *arg)
{
    stop(arg, EXIT_CODE_OK);
}

static void interrupt_cb(uv_signal_t *handle, int number)
{
    (void)number;
    stop(handle->data, EXIT_CODE_OK);
}

static void notice_cb(uv_timer_t *timer)
{
    stop(timer->data, EXIT_CODE_OK);
}

static void end_with_notice(struct agent *agent)
{
    agent->phase = ENDING;
    agent->ending_ms = clock_monotonic_ms();
    agent->runs.refuse_cause = "the agent was told to end";
    send_event(agent, json_pack("{s:s,s:s,s:I}", "event", "ending", "cause", "SIGTERM",
                                "notice_ms", (json_int_t)agent->options.notice_s * 1000));
    runs_end(&agent->runs);
    uv_timer_start(&agent->notice, notice_cb, (uint64_t)agent->options.notice_s * 1000,
                   0);
    maybe_drained(agent);
}

static void terminate_cb(uv_signal_t *handle, int number)
{
    struct agent *agent = handle->data;
    bool orphan = agent->parent && getppid() != agent->parent;

    (void)number;
    if (!orphan && agent->phase == SERVING) {
        end_with_notice(agent);
    } else if (orphan || agent->phase != ENDING ||
               clock_monotonic_ms() - agent->ending_ms >= AGAIN_MS) {
        stop(agent, EXIT_CODE_OK);
    }
}

/* What started this agent may be gone, and something else hold its standard input open: a
 * launch command that lives on, a step of a job.  Its workers must not use the devices
 * for ever. */
static void tick_cb(uv_timer_t *timer)
{
    struct agent *agent = timer->data;

    if (agent->phase != PROBING && agent->options.silence_s &&
        ++agent->silent_s > agent->options.silence_s) {
        log_error("nothing was heard of the daemon for %lld s: it counts as gone",
                  (long long)agent->options.silence_s);
        stop(agent, EXIT_CODE_OTHER);
    }
}

static json_t *stacks_json(const struct agent *agent)
{
    json_t *stacks = json_array();

    for (int i = 0; i < agent->options.stack_count; i++) {
        json_array_append_new(stacks, stack_json(&agent->options.stacks[i]));
    }
    return stacks;
}

static void say_hello(struct agent *agent)
{
    char boot_id[PROC_BOOT_ID_SIZE];
    struct utsname host;

    uname(&host);
    proc_boot_id(boot_id);
    send_event(agent,
               json_pack("{s:s,s:i,s:o,s:i,s:s,s:s,s:b,s:o,s:o,s:o}", "event", "hello",
                         "v", WIRE_VERSION, "host",
                         wire_string(host.nodename, strlen(host.nodename)), "pid",
                         (int)getpid(), "boot_id", boot_id, "build", REPROD_VERSION,
                         "pings", 1, "facts", host_facts(), "processes",
                         processes_choose(&agent->processes, agent->options.stacks,
                                          agent->options.stack_count),
                         "stacks", stacks_json(agent)));
}

/* What is not usable may be so later: a driver that comes up, a file that is put in
 * place, memory that is free again. */

static bool is_worth_asking(const struct stack *stack)
{
    return stack->cause && !stack->stuck;
}

static void probe_again_cb(uv_timer_t *timer);

static void plan_probes(struct agent *agent)
{
    bool any = false;

    for (int i = 0; i < agent->own_stacks; i++) {
        any = any || is_worth_asking(&agent->options.stacks[i]);
    }
    if (!any || agent->phase != SERVING) {
        return;
    }
    agent->probe_wait_ms =
        agent->probe_wait_ms ? 2 * agent->probe_wait_ms : PROBE_FIRST_MS;
    if (agent->probe_wait_ms > PROBE_MOST_MS) {
        agent->probe_wait_ms = PROBE_MOST_MS;
    }
    uv_timer_start(&agent->probe_timer, probe_again_cb, (uint64_t)agent->probe_wait_ms,
                   0);
}

static void probed_again(void *arg)
{
    struct agent *agent = arg;
    bool changed = false;

    if (--agent->probing > 0 || agent->phase == STOPPING) {
        return;
    }
    for (int i = 0; i < agent->own_stacks; i++) {
        changed = changed || agent->options.stacks[i].changed;
        agent->options.stacks[i].changed = false;
    }
    if (changed) {
        external_stacks_again(agent->options.stacks, agent->own_stacks,
                              agent->options.stack_count, agent->options.workloads);
        send_event(agent, json_pack("{s:s,s:o}", "event", "stacks", "stacks",
                                    stacks_json(agent)));
    }
    plan_probes(agent);
}

static void probe_again_cb(uv_timer_t *timer)
{
    struct agent *agent = timer->data;

    if (agent->phase != SERVING) {
        return;
    }
    for (int i = 0; i < agent->own_stacks; i++) {
        agent->probing += is_worth_asking(&agent->options.stacks[i]);
    }
    for (int i = 0; i < agent->own_stacks; i++) {
        if (is_worth_asking(&agent->options.stacks[i])) {
            stack_probe(&agent->supervisor, &agent->options.stacks[i],
                        agent->options.probe_ms, probed_again, agent);
        }
    }
}

static void probed(void *arg)
{
    struct agent *agent = arg;

    if (--agent->probing > 0 || agent->phase == STOPPING) {
        return;
    }
    for (int i = 0; i < agent->own_stacks; i++) {
        agent->options.stacks[i].changed = false;
    }
    agent->options.stack_count = external_stacks_add(
        agent->options.stacks, agent->options.stack_count, agent->options.workloads);
    agent->runs.stack_count = agent->options.stack_count;
    say_hello(agent);
    if (agent->phase == PROBING) {
        agent->phase = SERVING;
        agent->runs.refuse_cause = NULL;
        processes_watch(&agent->processes);
    }
    plan_probes(agent);
    maybe_drained(agent);
}

static void start_probes(struct agent *agent)
{
    agent->own_stacks = agent->probing = agent->options.stack_count;
    for (int i = 0; i < agent->options.stack_count; i++) {
        stack_probe(&agent->supervisor, &agent->options.stacks[i],
                    agent->options.probe_ms, probed, agent);
    }
}

static void watch_signal(struct agent *agent, uv_signal_t *handle, uv_signal_cb callback,
                         int number)
{
    loop_must(uv_signal_init(&agent->loop, handle), "signals");
    handle->data = agent;
    loop_must(uv_signal_start(handle, callback, number), "signals");
}

static void init(struct agent *agent, char *launch)
{
    loop_must(uv_loop_init(&agent->loop), "the event loop");
    agent->supervisor.launch = launch;
    agent->supervisor.grace_ms = agent->options.grace_ms;
    supervisor_init(&agent->supervisor, &agent->loop);
    agent->runs = (struct runs){ .supervisor = &agent->supervisor,
                                 .stacks = agent->options.stacks,
                                 .stack_count = agent->options.stack_count,
                                 .threads = (int)agent->options.threads,
                                 .refuse_cause = "the agent has not said hello yet",
                                 .send = send_event,
                                 .ended = maybe_drained,
                                 .arg = agent,
                                 .forkers = { .supervisor = &agent->supervisor } };
    agent->out.broken = out_broken;
    agent->out.pressure = out_pressure;
    agent->out.arg = agent->in.arg = agent;
    agent->out.high = QUEUE_HIGH;
    agent->out.low = QUEUE_LOW;
    stream_writer_open(&agent->out, &agent->loop, STDOUT_FILENO);
    agent->in.bytes = in_bytes;
    agent->in.end = in_end;
    wire_lines_init(&agent->lines, WIRE_LINE_MAX);
    stream_reader_open(&agent->in, &agent->loop, STDIN_FILENO);
    watch_signal(agent, &agent->terminate, terminate_cb, SIGTERM);
    watch_signal(agent, &agent->interrupt, interrupt_cb, SIGINT);
    runs_open(&agent->runs, &agent->loop);
    uv_timer_init(&agent->loop, &agent->notice);
    uv_timer_init(&agent->loop, &agent->tick);
    agent->notice.data = agent->tick.data = agent;
    uv_timer_start(&agent->tick, tick_cb, TICK_MS, TICK_MS);
    uv_timer_init(&agent->loop, &agent->probe_timer);
    agent->probe_timer.data = agent;
    uv_timer_init(&agent->loop, &agent->stop_timer);
    agent->processes = (struct processes){ .supervisor = &agent->supervisor,
                                           .send = send_event,
                                           .arg = agent };
    processes_init(&agent->processes, &agent->loop);
    agent->stop_timer.data = agent;
}

/* Opens the standard descriptors that are closed.  Returns -1 where they are of a kind
 * that the loop cannot wait for. */
static int check_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd) {
            return -1;
        }
    }
#ifdef SYS_close_range
    syscall(SYS_close_range, STDERR_FILENO + 1, ~0U,
            0); /* nothing for workers to inherit */
#endif
    return uv_guess_handle(STDIN_FILENO) == UV_FILE ||
                   uv_guess_handle(STDOUT_FILENO) == UV_FILE
               ? -1
               : 0;
}

/* A daemon on this host puts its process id into REPROD_PARENT.  A signal then tells of
 * its death even where another process holds standard input open.  The child of a launch
 * command gets no signal: it would come with the end of a thread of that command.
 * SIGTERM, not SIGKILL: this process has to clean up. */
static void follow_parent(struct agent *agent)
{
    const char *text = getenv("REPROD_PARENT");

    if (text && strtol(text, NULL, 10) == getppid()) {
        agent->parent = getppid();
        prctl(PR_SET_PDEATHSIG, SIGTERM);
    }
}

static int serve(struct agent *agent)
{
    char *launch = stack_companion("reprod-launch");

    signals_ignore(); /* spawn gives each child the default again */
    init(agent, launch);
    follow_parent(agent);
    start_probes(agent);
    uv_run(&agent->loop, UV_RUN_DEFAULT);
    uv_loop_close(&agent->loop);
    wire_lines_release(&agent->lines);
    processes_release(&agent->processes);
    free(launch);
    return agent->exit_code;
}

int agent_main(int argc, char **argv)
{
    struct agent *agent = xcalloc(1, sizeof *agent);
    int exit_code = EXIT_CODE_USAGE;
    struct err err;

    if (agent_options_parse(&agent->options, argc, argv, &err) != ERR_OK) {
        text_print(stderr, "reprod agent: %s", err.message);
    } else if (agent->options.help) {
        fputs(agent_usage, stdout);
        exit_code = EXIT_CODE_OK;
    } else if (check_descriptors() != 0) {
        fputs(
            "reprod agent: standard input and output are not pipes; a daemon starts "
            "the agent (reprod agent --help)\n",
            stderr);
    } else {
        exit_code = serve(agent);
    }
    agent_options_release(&agent->options);
    free(agent);
    return exit_code;
}
