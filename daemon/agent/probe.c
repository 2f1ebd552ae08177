#include "daemon/agent/probe.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/fleet/stack_limits.h"
#include "daemon/process/wire.h"

enum { QUESTIONS = 2, LINES_MAX = 1000, BYTES_MAX = 2 * 1024 * 1024 };

struct probe;

/* One of the two processes. */
struct question {
    struct probe *probe;
    const char *option;
    json_t *answers; /* array of the objects it printed */
    char *cause;     /* what was wrong first; NULL: nothing */
};

struct probe {
    struct stack *stack;
    struct question questions[QUESTIONS];
    int open;
    void (*done)(void *arg);
    void *arg;
    struct supervisor *supervisor;
    uv_timer_t later; /* tells DONE outside probe_start when nothing could be started */
};

static void blame(struct question *question, char *cause)
{
    if (question->cause) {
        free(cause);
    } else {
        question->cause = cause;
    }
}

static void line(void *arg, int64_t number, const char *text, size_t length,
                 bool complete)
{
    struct question *question = arg;
    struct err err = { ERR_PROTOCOL, "cut off" };
    json_t *json = complete ? wire_parse(text, length, &err) : NULL;

    if (json) {
        json_array_append_new(question->answers, json);
    } else {
        blame(question, xasprintf("%s: line %lld: %s", question->option,
                                  (long long)number, err.message));
    }
}

/* Takes what the worker said, unless the daemon would send the agent away for it. */
static void take_answers(struct stack *stack, json_t *self, json_t *catalogue)
{
    struct err err;
    json_t *whole;

    stack->probe = json_incref(self);
    stack->catalogue = json_incref(catalogue);
    whole = stack_json(stack);
    if (stack_limits_check(whole, &err) != ERR_OK) {
        json_decref(stack->probe);
        json_decref(stack->catalogue);
        stack->probe = stack->catalogue = NULL;
        stack->cause = xstrdup(err.message);
    }
    json_decref(whole);
}

static void conclude(struct probe *probe)
{
    struct stack *stack = probe->stack;
    struct question *self = &probe->questions[0], *catalogue = &probe->questions[1];

    if (!self->cause && json_array_size(self->answers) != 1) {
        blame(self, xasprintf("--probe printed %zu objects instead of one",
                              json_array_size(self->answers)));
    }
    if (self->cause || catalogue->cause) {
        stack->cause = xstrdup(self->cause ? self->cause : catalogue->cause);
    } else {
        take_answers(stack, json_array_get(self->answers, 0), catalogue->answers);
    }
    if (stack->cause) {
        log_warning("stack '%s' is not usable: %s", stack->name, stack->cause);
    }
    for (int i = 0; i < QUESTIONS; i++) {
        json_decref(probe->questions[i].answers);
        free(probe->questions[i].cause);
    }
    probe->done(probe->arg);
}

static void closed_cb(uv_handle_t *handle)
{
    struct probe *probe = handle->data;

    conclude(probe);
    free(probe);
}

static void settle(struct probe *probe)
{
    if (--probe->open == 0) {
        uv_close((uv_handle_t *)&probe->later, closed_cb);
    }
}

/* The last line of a log, for a cause. */
static char *last_line(const struct run_exit *exit)
{
    size_t end = exit->log_length, begin;

    while (end && exit->log[end - 1] == '\n') {
        end--;
    }
    for (begin = end; begin && exit->log[begin - 1] != '\n';) {
        begin--;
    }
    return xstrndup(exit->log + begin, end - begin < 200 ? end - begin : 200);
}

static void finished(void *arg, const struct run_exit *exit)
{
    struct question *question = arg;
    char *said = last_line(exit);

    if (exit->reason != EXIT_REASON_EXITED) {
        blame(question, xasprintf("%s: %s", question->option,
                                  exit->reason == EXIT_REASON_TIMEOUT
                                      ? "no answer before the deadline"
                                      : exit_reason_name(exit->reason)));
    } else if (exit->signal) {
        blame(question, xasprintf("%s: killed by SIG%s", question->option,
                                  exit_signal_name(exit->signal)));
    } else if (exit->exit_code != 0) {
        blame(question, xasprintf("%s: exit status %d%s%s", question->option,
                                  exit->exit_code, said[0] ? ": " : "", said));
    }
    free(said);
    settle(question->probe);
}

static void ask(struct probe *probe, struct question *question, int64_t timeout_ms)
{
    static const struct supervised_events events = { line, finished };
    char *const args[] = { (char *)question->option, NULL };
    char **environment = stack_environment(probe->stack);
    struct supervise supervise = { .program = probe->stack->worker,
                                   .args = args,
                                   .env = environment,
                                   .data_fd = STDOUT_FILENO,
                                   .timeout_ms = timeout_ms,
                                   .max_lines = LINES_MAX,
                                   .max_bytes = BYTES_MAX };
    struct supervised *supervised;
    struct err err;

    if (supervisor_start(probe->supervisor, &supervise, &events, question, &supervised,
                         &err) != ERR_OK) {
        blame(question, xstrdup(err.message));
        settle(probe);
    }
    stack_environment_free(environment);
}

void probe_start(struct supervisor *supervisor, struct stack *stack, int64_t timeout_ms,
                 void (*done)(void *arg), void *arg)
{
    struct probe *probe = xcalloc(1, sizeof *probe);
    static const char *const options[QUESTIONS] = { "--probe", "--catalogue" };

    probe->supervisor = supervisor;
    probe->stack = stack;
    probe->done = done;
    probe->arg = arg;
    probe->open = QUESTIONS;
    uv_timer_init(supervisor->loop, &probe->later);
    probe->later.data = probe;
    for (int i = 0; i < QUESTIONS; i++) {
        probe->questions[i] = (struct question){ probe, options[i], json_array(), NULL };
        ask(probe, &probe->questions[i], timeout_ms);
    }
}
