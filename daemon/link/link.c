#include "daemon/link/link.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "daemon/link/agent_log.h"
#include "daemon/process/child.h"
#include "daemon/process/proc.h"
#include "daemon/process/stream.h"
#include "daemon/process/wire.h"

enum {
    SETTLE_MS = 1000, /* between the end of the output and the exit, either way round */
    END_GRACE_MS = 10000,
    UNSAID_GRACE_MS = 500,
    KILL_GRACE_MS = 2000,
    QUEUE_MAX = 1024 * 1024,
    PING_MS = 500,
    PINGS_SILENT = 3, /* without an answer: the owner is told; and it counts as gone */
    PINGS_GONE = 60,
    SAID_MAX = 4 << 20, /* bytes of standard error between two pings */
    SILENT_GRACE_MS = 1,
    CAUSE_SIZE = 512
};

/* How far the end of the process was pressed. */
enum ending { NOT_ENDING, INPUT_CLOSED, TERM_SENT, KILL_SENT, GIVEN_UP };

struct link {
    uv_loop_t *loop;
    char *name;
    const struct link_events *events;
    void *arg;
    struct child child;
    bool out_ended, err_ended;
    bool said_hello, failed, held;
    char ending_cause[CASE_TITLE_SIZE]; /* that the agent told of; "": it is not ending */
    bool owner_closing;
    enum ending ending;
    char cause[CAUSE_SIZE];
    struct link_runs runs;
    struct wire_lines lines;
    struct agent_log log;
    int open_handles;
    uv_timer_t deadline; /* for hello, for settling, for the steps of the ending */
    uv_timer_t tell;     /* calls `closed` from the loop */
    uv_timer_t ping;
    bool answers;     /* pings */
    int pings;        /* sent since anything was heard */
    int64_t ping_ms;  /* monotonic: when the next one is due */
    int64_t heard_ms; /* wall clock */
    size_t said;      /* bytes of standard error since the last tick of `ping` */
    bool noisy;       /* that was told */
    struct stream_reader out, err;
    struct stream_writer in;
    void (*closed)(void *arg);
    void *closed_arg;
};

static void deadline_cb(uv_timer_t *timer);

static void set_deadline(struct link *link, int64_t ms)
{
    uv_update_time(link->loop);
    uv_timer_start(&link->deadline, deadline_cb, (uint64_t)ms, 0);
}

static void handle_closed(void *arg)
{
    struct link *link = arg;
    void (*closed)(void *arg) = link->closed;
    void *closed_arg = link->closed_arg;

    if (--link->open_handles > 0) {
        return;
    }
    wire_lines_release(&link->lines);
    agent_log_end(&link->log, clock_monotonic_ms());
    link_runs_release(&link->runs);
    free(link->name);
    free(link);
    closed(closed_arg);
}

static void handle_closed_cb(uv_handle_t *handle)
{
    handle_closed(handle->data);
}

static void maybe_release(struct link *link)
{
    if (!link->owner_closing || !(link->child.exited || link->ending == GIVEN_UP)) {
        return;
    }
    child_close(&link->child, handle_closed);
    uv_close((uv_handle_t *)&link->deadline, handle_closed_cb);
    uv_close((uv_handle_t *)&link->tell, handle_closed_cb);
    uv_close((uv_handle_t *)&link->ping, handle_closed_cb);
    stream_reader_close(&link->out, handle_closed);
    stream_reader_close(&link->err, handle_closed);
}

static void step_ending(struct link *link)
{
    if (link->child.exited) {
        return;
    }
    link->ending++;
    if (link->ending == TERM_SENT || link->ending == KILL_SENT) {
        child_kill(&link->child, link->ending == TERM_SENT ? SIGTERM : SIGKILL);
        set_deadline(link, KILL_GRACE_MS);
    } else {
        maybe_release(link);
    }
}

static int64_t end_grace_ms(const struct link *link)
{
    if (link->pings >= PINGS_GONE) {
        return SILENT_GRACE_MS; /* it would not see the end of its input */
    }
    if (link->events->end_grace_ms) {
        return link->events->end_grace_ms;
    }
    /* A launch command that stands in a queue does not read its input. */
    return link->said_hello ? END_GRACE_MS : UNSAID_GRACE_MS;
}

static void end_agent(struct link *link)
{
    if (link->ending == NOT_ENDING) {
        link->ending = INPUT_CLOSED;
        uv_timer_stop(&link->ping);
        stream_reader_pause(&link->err, false);
        stream_writer_close(&link->in, handle_closed);
        set_deadline(link, end_grace_ms(link));
    }
}

static void tell_cb(uv_timer_t *timer)
{
    struct link *link = timer->data;

    if (!link->owner_closing) {
        link->events->closed(link->arg, link->cause);
    }
}

__attribute__((format(printf, 2, 3))) static void fail(struct link *link,
                                                       const char *format, ...)
{
    va_list args;

    if (link->failed || link->owner_closing) {
        return;
    }
    link->failed = true;
    va_start(args, format);
    vsnprintf(link->cause, sizeof link->cause, format, args);
    va_end(args);
    wire_clean(link->cause);
    uv_timer_start(&link->tell, tell_cb, 0, 0);
    end_agent(link);
}

static void fail_gone(struct link *link)
{
    const char *said = link->log.last;
    const char *colon = said[0] ? ": " : "";

    if (!link->child.exited) {
        fail(link, "it closed its output%s%s", colon, said);
    } else if (WIFSIGNALED(link->child.status)) {
        fail(link, "killed by SIG%s%s%s", exit_signal_name(WTERMSIG(link->child.status)),
             colon, said);
    } else {
        fail(link, "exit status %d%s%s", WEXITSTATUS(link->child.status), colon, said);
    }
}

static void deadline_cb(uv_timer_t *timer)
{
    struct link *link = timer->data;

    if (link->ending != NOT_ENDING) {
        step_ending(link);
    } else if (link->child.exited || link->out_ended) {
        fail_gone(link);
    } else {
        fail(link, link->said_hello ? "it closed its input" : "no hello in time");
    }
}

/* The agent is gone when it has exited and its pipes have ended; the last of these shows
 * the cause.  Another process that holds a pipe can delay this only for a while. */
static void settle(struct link *link)
{
    if (link->child.exited && link->out_ended && link->err_ended) {
        fail_gone(link);
    } else if (link->ending == NOT_ENDING && (link->child.exited || link->out_ended)) {
        set_deadline(link, SETTLE_MS);
    }
}

static void child_ended(void *arg)
{
    struct link *link = arg;

    settle(link);
    maybe_release(link);
}

static void send_command(struct link *link, json_t *command)
{
    if (link->failed || link->owner_closing) {
        json_decref(command);
        return;
    }
    stream_writer_send(&link->in, command);
    if (stream_writer_queued(&link->in) > QUEUE_MAX) {
        fail(link, "it does not read its input");
    }
}

static void tell_silent(struct link *link, int64_t since_ms)
{
    if (link->events->silent && !link->failed && !link->owner_closing) {
        link->events->silent(link->arg, since_ms);
    }
}

static void heard(struct link *link)
{
    if (link->pings >= PINGS_SILENT) {
        tell_silent(link, 0);
    }
    link->pings = 0;
    link->heard_ms = clock_wall_ms();
}

static void tell_noisy(struct link *link)
{
    bool noisy = agent_log_overflows(&link->log);

    if (noisy != link->noisy && link->events->noisy && !link->failed &&
        !link->owner_closing) {
        link->noisy = noisy;
        link->events->noisy(link->arg, noisy ? clock_wall_ms() : 0);
    }
}

static void ping_cb(uv_timer_t *timer);

/* A ping has a time of its own, to which a loop that was late comes back: the pings of
 * hundreds of agents, once they were late together, would stay together.  Two of one
 * agent are half of that apart, or more. */
static void wait_for_ping(struct link *link)
{
    int64_t every_ms = link->events->ping_ms ? link->events->ping_ms : PING_MS;
    int64_t now_ms = clock_monotonic_ms();

    while (link->ping_ms <= now_ms + every_ms / 2) {
        link->ping_ms += every_ms;
    }
    uv_update_time(link->loop);
    uv_timer_start(&link->ping, ping_cb, (uint64_t)(link->ping_ms - now_ms), 0);
}

/* From one agent to the next, the time goes on by the golden section of what is between
 * two pings. */
static void start_pings(struct link *link)
{
    static uint16_t opened;
    int64_t every_ms = link->events->ping_ms ? link->events->ping_ms : PING_MS;

    link->ping_ms =
        clock_monotonic_ms() - every_ms * (uint16_t)(opened++ * 40503U) / UINT16_MAX;
    wait_for_ping(link);
}

/* Pings are counted, not seconds: where the loop itself stood still, what the agent said
 * meanwhile is yet to be read. */
static void ping_cb(uv_timer_t *timer)
{
    struct link *link = timer->data;

    wait_for_ping(link);
    link->said = 0;
    stream_reader_pause(&link->err, false);
    agent_log_tick(&link->log, clock_monotonic_ms());
    tell_noisy(link);
    if (!link->answers) {
        return;
    }
    if (link->pings >= PINGS_GONE) {
        fail(link, "it does not answer: nothing was heard in %d pings", link->pings);
        return;
    }
    /* However much it says: it ends when it hears nothing. */
    send_command(link, link_command_ping());
    if (++link->pings == PINGS_SILENT) {
        tell_silent(link, link->heard_ms);
    }
}

static enum err_code take_hello(struct link *link, const json_t *event, struct err *err)
{
    if (link->said_hello) {
        return err_set(err, ERR_PROTOCOL, "a second hello");
    }
    if (link_hello_check(event, err) != ERR_OK) {
        return err_wrap(err, "hello");
    }
    link->said_hello = true;
    uv_timer_stop(&link->deadline);
    link->answers = json_is_true(json_object_get(event, "pings"));
    link->events->hello(link->arg, event);
    return ERR_OK;
}

static enum err_code take_processes(struct link *link, const json_t *event,
                                    struct err *err)
{
    if (link_processes_check(event, err) != ERR_OK) {
        return err_wrap(err, "processes");
    }
    if (link->events->processes) {
        link->events->processes(link->arg, json_object_get(event, "devices"));
    }
    return ERR_OK;
}

static enum err_code take_stacks(struct link *link, const json_t *event, struct err *err)
{
    if (link_stacks_check(event, err) != ERR_OK) {
        return err_wrap(err, "stacks");
    }
    if (link->events->stacks) {
        link->events->stacks(link->arg, json_object_get(event, "stacks"));
    }
    return ERR_OK;
}

static enum err_code take_ending(struct link *link, const json_t *event, struct err *err)
{
    const char *cause;
    int64_t notice_ms;

    if (link_ending_check(event, &cause, &notice_ms, err) != ERR_OK) {
        return err_wrap(err, "ending");
    }
    copy_text(link->ending_cause, sizeof link->ending_cause,
              cause[0] ? cause : "told to");
    if (link->events->ending) {
        link->events->ending(link->arg, link->ending_cause, notice_ms);
    }
    return ERR_OK;
}

static enum err_code take_event(struct link *link, const json_t *event, struct err *err)
{
    const char *name = json_string_value(json_object_get(event, "event"));

    if (!name) {
        return err_set(err, ERR_PROTOCOL, "a line without an event");
    }
    if (strcmp(name, "hello") == 0) {
        return take_hello(link, event, err);
    }
    if (!link->said_hello) {
        return err_set(err, ERR_PROTOCOL, "'%.64s' before hello", name);
    }
    if (strcmp(name, "processes") == 0) {
        return take_processes(link, event, err);
    }
    if (strcmp(name, "stacks") == 0) {
        return take_stacks(link, event, err);
    }
    if (strcmp(name, "ending") == 0) {
        return take_ending(link, event, err);
    }
    return link_runs_event(&link->runs, name, event, link->events, link->arg, err);
}

static int line_cb(void *arg, const char *text, size_t length)
{
    struct link *link = arg;
    struct err err;
    json_t *event = wire_parse(text, length, &err);

    if (!event || take_event(link, event, &err) != ERR_OK) {
        fail(link, "it broke the protocol in line %lld: %s", (long long)link->lines.count,
             err.message);
    }
    json_decref(event);
    return link->failed || link->owner_closing ? ERR_PROTOCOL : 0;
}

static void out_bytes(void *arg, const char *data, size_t length)
{
    struct link *link = arg;

    if (link->failed || link->owner_closing) {
        return;
    }
    heard(link);
    if (wire_lines_feed(&link->lines, data, length, line_cb, link) == ERR_TOO_LARGE) {
        fail(link, "it wrote a line of more than %d bytes", WIRE_AGENT_LINE_MAX);
    }
}

static void out_end(void *arg)
{
    struct link *link = arg;

    link->out_ended = true;
    settle(link);
}

static void err_bytes(void *arg, const char *data, size_t length)
{
    struct link *link = arg;

    agent_log_add(&link->log, data, length, clock_monotonic_ms());
    link->said += length;
    if (link->said > SAID_MAX && link->ending == NOT_ENDING) {
        stream_reader_pause(&link->err, true); /* it has to wait for the next ping */
    }
}

static void err_end(void *arg)
{
    struct link *link = arg;

    link->err_ended = true;
    settle(link);
}

static void in_broken(void *arg, const char *cause)
{
    struct link *link = arg;

    (void)cause; /* its exit, if that is why, says more */
    if (link->ending == NOT_ENDING) {
        set_deadline(link, SETTLE_MS);
    }
}

static void watch(struct link *link, const struct child_pipes *pipes)
{
    const struct link_events *events = link->events;

    link->open_handles = 7;
    link->deadline.data = link->tell.data = link->ping.data = link;
    uv_timer_init(link->loop, &link->deadline);
    uv_timer_init(link->loop, &link->tell);
    uv_timer_init(link->loop, &link->ping);
    start_pings(link);
    if (events->hello_deadline_ms >= 0) {
        set_deadline(link, events->hello_deadline_ms ? events->hello_deadline_ms
                                                     : LINK_HELLO_MS);
    }
    link->out.bytes = out_bytes;
    link->out.end = out_end;
    link->err.bytes = err_bytes;
    link->err.end = err_end;
    link->in.broken = in_broken;
    link->in.high = link->in.low = QUEUE_MAX;
    link->out.arg = link->err.arg = link->in.arg = link;
    stream_reader_open(&link->out, link->loop, pipes->out);
    stream_reader_open(&link->err, link->loop, pipes->err);
    stream_writer_open(&link->in, link->loop, pipes->in);
}

/* With REPROD_PARENT, the pid of this process: an agent that is its child dies with it.
 */
static enum err_code start_agent(struct link *link, char *const *argv,
                                 struct child_pipes *ret_pipes, struct err *err)
{
    char parent[64];
    struct child_start start = { .argv = argv, .has_input = true };
    char **environment;
    enum err_code code;

    snprintf(parent, sizeof parent, "REPROD_PARENT=%d", (int)getpid());
    environment = child_environment(parent, NULL);
    start.env = environment;
    code = child_start(&link->child, link->loop, &start, ret_pipes, err);
    free(environment);
    return code;
}

enum err_code link_open(uv_loop_t *loop, const char *name, char *const *argv,
                        const struct link_events *events, void *arg,
                        struct link **ret_link, struct err *err)
{
    struct link *link = xcalloc(1, sizeof *link);
    struct child_pipes pipes;

    signal(SIGPIPE, SIG_IGN);
    descendants_init();
    descendants_sweep(true);
    link->loop = loop;
    link->child.ended = child_ended;
    link->child.arg = link;
    link->child.sweeps = true;
    if (start_agent(link, argv, &pipes, err) != ERR_OK) {
        free(link);
        return err->code;
    }
    link->name = xstrdup(name);
    link->events = events;
    link->arg = arg;
    wire_lines_init(&link->lines, WIRE_AGENT_LINE_MAX);
    link->log.host = link->name;
    watch(link, &pipes);
    *ret_link = link;
    return ERR_OK;
}

void link_hold(struct link *link, bool held)
{
    link->held = held;
}

bool link_takes_runs(const struct link *link)
{
    return !link->held && !link->failed && !link->owner_closing && !link->ending_cause[0];
}

const char *link_ending(const struct link *link)
{
    return link->ending_cause[0] ? link->ending_cause : NULL;
}

void link_run(struct link *link, const struct link_run *run)
{
    link_runs_add(&link->runs, run->id);
    send_command(link, link_command_run(run));
}

void link_cancel(struct link *link, const char *run)
{
    send_command(link, link_command_cancel(run));
}

void link_close(struct link *link, void (*closed)(void *arg), void *arg)
{
    link->owner_closing = true;
    link->closed = closed;
    link->closed_arg = arg;
    end_agent(link);
    maybe_release(link);
}
