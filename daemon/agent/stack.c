#include "daemon/agent/stack.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/agent/supervise.h"
#include "daemon/base/array.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/config/config.h"
#include "daemon/jobs/case.h"
#include "daemon/process/proc.h"
#include "daemon/process/stack_limits.h"
#include "daemon/process/wire.h"
#include "workloads/instruments/digest.h"

enum { PROBE_LINES_MAX = 1000, PROBE_BYTES_MAX = 2 * 1024 * 1024 };

char *stack_companion(const char *program)
{
    char directory[PROC_PATH_SIZE];
    char *adjacent, *installed;

    proc_directory(directory);
    adjacent = xasprintf("%s/%s", directory, program);
    installed = xasprintf("%s/../libexec/reprod/%s", directory, program);
    if (access(adjacent, X_OK) != 0 && access(installed, X_OK) == 0) {
        free(adjacent);
        return installed;
    }
    free(installed);
    return adjacent;
}

int stack_init_defaults(struct stack ret_stacks[STACK_DEFAULTS_MAX])
{
    char *cuda = stack_companion("reprod-worker-cuda");

    ret_stacks[0] = (struct stack){ .name = xstrdup("cpu"),
                                    .worker = stack_companion("reprod-worker") };
    if (access(cuda, X_OK) != 0) {
        free(cuda);
        return 1;
    }
    ret_stacks[1] = (struct stack){ .name = xstrdup("cuda"), .worker = cuda };
    return 2;
}

enum err_code stack_parse(struct stack *ret_stack, const char *text, struct err *err)
{
    const char *equals = strchr(text, '=');

    if (!equals || equals == text || equals[1] == '\0') {
        return err_set(err, ERR_INVALID, "--stack wants NAME=WORKER, not '%s'", text);
    }
    if (equals - text >= CASE_NAME_SIZE) {
        return err_set(err, ERR_INVALID, "--stack: the name has more than %d bytes",
                       CASE_NAME_SIZE - 1);
    }
    *ret_stack = (struct stack){ .name = xstrndup(text, (size_t)(equals - text)),
                                 .worker = xstrdup(equals + 1) };
    return ERR_OK;
}

enum err_code stack_parse_json(struct stack *ret_stack, const char *text, struct err *err)
{
    struct config_stack s;
    json_error_t error;
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    enum err_code rc;

    if (!json) {
        return err_set(err, ERR_INVALID, "--stack-json: %s", error.text);
    }
    rc = config_read_stack(json, "--stack-json: ", &s, err);
    if (rc == ERR_OK) {
        *ret_stack = (struct stack){
            .name = xstrdup(s.name),
            .worker = s.worker ? xstrdup(s.worker) : stack_companion("reprod-worker"),
            .library_path = s.library_path ? xstrdup(s.library_path) : NULL,
            .threads = s.threads,
            .probe_ms = 1000LL * s.probe_seconds,
            .variables = json_incref((json_t *)s.env),
        };
    }
    json_decref(json);
    return rc;
}

void stack_release(struct stack *stack)
{
    free(stack->name);
    free(stack->worker);
    free(stack->library_path);
    free(stack->cause);
    json_decref(stack->variables);
    json_decref(stack->externals);
    json_decref(stack->probe);
    json_decref(stack->catalogue);
}

/* Which GPUs a batch system granted, where to keep caches and temporary files: none of
 * it changes what is computed. */
static const char *const inherited[] = {
    "HOME",        "TMPDIR", "XDG_CACHE_HOME", "REPROD_CACHE_DIR", "CUDA_VISIBLE_DEVICES",
    "SLURM_JOB_ID"
};
enum { INHERITED_COUNT = COUNT_OF(inherited) };

struct environment {
    const struct stack *stack;
    char **list;
    size_t count;
};

static void add_default(struct environment *e, const char *name, const char *text)
{
    if (text && !json_object_get(e->stack->variables, name)) {
        e->list[e->count++] = xasprintf("%s=%s", name, text);
    }
}

char **stack_environment(const struct stack *stack)
{
    size_t room = 6 + INHERITED_COUNT + json_object_size(stack->variables);
    struct environment e = { stack, xcalloc(room, sizeof(char *)), 0 };
    const char *key;
    json_t *value;

    add_default(&e, "PATH", STACK_PATH);
    add_default(&e, "LANG", "C.UTF-8");
    add_default(&e, "REPROD_RESULT_FD", "3");
    add_default(&e, "LD_LIBRARY_PATH", stack->library_path);
    /* A thread that waits by spinning takes the processor from the one it waits for. */
    add_default(&e, "OMP_WAIT_POLICY", stack->worker ? "passive" : NULL);
    for (int i = 0; i < INHERITED_COUNT; i++) {
        add_default(&e, inherited[i], getenv(inherited[i]));
    }
    json_object_foreach(stack->variables, key, value)
    {
        if (json_is_string(value)) {
            e.list[e.count++] = xasprintf("%s=%s", key, json_string_value(value));
        }
    }
    return e.list;
}

bool stack_has_device(const struct stack *stack, const char *device)
{
    const json_t *devices = json_object_get(stack->probe, "devices");
    size_t i;
    json_t *entry;

    json_array_foreach(devices, i, entry)
    {
        const char *id = json_string_value(json_object_get(entry, "id"));

        if (id && strcmp(id, device) == 0) {
            return true;
        }
    }
    return false;
}

/* Paths, and what a worker printed before it failed, need not be UTF-8. */
static json_t *text_or_null(const char *text)
{
    return text ? wire_string(text, strlen(text)) : json_null();
}

/* Its threads and variables, as far as they are set: a change of one of them may be a
 * change of what is computed.  Values may be secret, so their digests stand for them. */
static json_t *settings_json(const struct stack *stack)
{
    json_t *settings = json_object();
    const char *name;
    json_t *value;

    if (stack->threads) {
        json_object_set_new(settings, "threads", json_integer(stack->threads));
    }
    json_object_foreach(stack->variables, name, value)
    {
        const char *text = json_string_value(value);
        char digest[DIGEST_HEX_SIZE];

        if (text) {
            digest_hex(digest_bytes(text, strlen(text)), digest);
            json_object_set_new(settings, name, json_sprintf("digest %.8s", digest));
        }
    }
    return settings;
}

json_t *stack_json(const struct stack *stack)
{
    return json_pack("{s:o,s:o,s:o,s:o,s:O?,s:O?,s:o}", "name", text_or_null(stack->name),
                     "worker", text_or_null(stack->worker), "library_path",
                     text_or_null(stack->library_path), "settings", settings_json(stack),
                     "probe", stack->probe, "catalogue", stack->catalogue, "cause",
                     text_or_null(stack->cause));
}

/* What a worker is asked, each in a process of its own. */
static const char *const questions[] = { "--probe", "--catalogue" };
enum { QUESTION_COUNT = COUNT_OF(questions) };
/* How often they are asked where it was the host that had no answer, and how long after.
 */
enum { PROBE_TRIES = 3, PROBE_AGAIN_MS = 500 };

struct probe;

struct question {
    struct probe *probe;
    const char *option;
    json_t *answers; /* array of the objects it printed */
    char *cause;     /* what was wrong first; NULL: nothing */
    bool of_host;    /* it could not start, or was killed: the next may do better */
    bool stuck;
};

struct probe {
    struct stack *stack;
    struct question questions[QUESTION_COUNT];
    int open, tries;
    int64_t timeout_ms;
    void (*done)(void *arg);
    void *arg;
    struct supervisor *supervisor;
    uv_timer_t later; /* asks again; tells DONE after stack_probe, never inside */
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

/* Takes what the worker said, unless the daemon would refuse a hello that repeats it. */
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

static void forget_answers(struct probe *probe)
{
    for (int i = 0; i < QUESTION_COUNT; i++) {
        json_decref(probe->questions[i].answers);
        free(probe->questions[i].cause);
    }
}

static void conclude(struct probe *probe)
{
    struct stack *stack = probe->stack;
    struct question *self = &probe->questions[0], *catalogue = &probe->questions[1];
    char *before = stack->cause;

    if (!self->cause && json_array_size(self->answers) != 1) {
        blame(self, xasprintf("--probe printed %zu objects instead of one",
                              json_array_size(self->answers)));
    }
    stack->cause = NULL;
    stack->stuck = self->stuck || catalogue->stuck;
    if (self->cause || catalogue->cause) {
        stack->cause = xstrdup(self->cause ? self->cause : catalogue->cause);
    } else {
        take_answers(stack, json_array_get(self->answers, 0), catalogue->answers);
    }
    stack->changed =
        !before != !stack->cause || (before && strcmp(before, stack->cause) != 0);
    if (stack->cause && stack->changed) {
        log_warning("stack '%s' is not usable: %s", stack->name, stack->cause);
    } else if (stack->changed) {
        log_info("stack '%s' is usable again", stack->name);
    }
    free(before);
    forget_answers(probe);
    probe->done(probe->arg);
}

static void closed_cb(uv_handle_t *handle)
{
    struct probe *probe = handle->data;

    conclude(probe);
    free(probe);
}

static void again_cb(uv_timer_t *timer);

static void settle(struct probe *probe)
{
    bool of_host = false;

    if (--probe->open > 0) {
        return;
    }
    for (int i = 0; i < QUESTION_COUNT; i++) {
        of_host = of_host || probe->questions[i].of_host;
    }
    if (of_host && probe->tries < PROBE_TRIES && !probe->supervisor->ending) {
        uv_timer_start(&probe->later, again_cb, PROBE_AGAIN_MS, 0);
    } else {
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
        question->stuck = exit->reason == EXIT_REASON_STUCK;
        blame(question, xasprintf("%s: %s", question->option,
                                  exit->reason == EXIT_REASON_TIMEOUT
                                      ? "no answer before the deadline"
                                      : exit_reason_name(exit->reason)));
    } else if (exit->signal) {
        question->of_host = true;
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
                                   .max_lines = PROBE_LINES_MAX,
                                   .max_bytes = PROBE_BYTES_MAX };
    struct supervised *supervised;
    struct err err;

    if (supervisor_start(probe->supervisor, &supervise, &events, question, &supervised,
                         &err) != ERR_OK) {
        question->of_host = true;
        blame(question, xstrdup(err.message));
        settle(probe);
    }
    free_texts(environment);
}

static void ask_all(struct probe *probe)
{
    probe->tries++;
    probe->open = QUESTION_COUNT;
    for (int i = 0; i < QUESTION_COUNT; i++) {
        probe->questions[i] =
            (struct question){ probe, questions[i], json_array(), NULL, false, false };
    }
    for (int i = 0; i < QUESTION_COUNT; i++) {
        ask(probe, &probe->questions[i], probe->timeout_ms);
    }
}

static void again_cb(uv_timer_t *timer)
{
    struct probe *probe = timer->data;

    if (probe->supervisor->ending) {
        uv_close((uv_handle_t *)&probe->later, closed_cb);
        return;
    }
    forget_answers(probe);
    ask_all(probe);
}

int64_t stack_probe_ms(const struct stack *stack, int64_t standard_ms)
{
    enum { GPU_PROBE_MS = 60000 };
    const char *slash = stack->worker ? strrchr(stack->worker, '/') : NULL;
    bool on_gpu = slash && strcmp(slash + 1, "reprod-worker-cuda") == 0;

    if (stack->probe_ms) {
        return stack->probe_ms;
    }
    return on_gpu && standard_ms == STACK_PROBE_MS ? GPU_PROBE_MS : standard_ms;
}

void stack_probe(struct supervisor *supervisor, struct stack *stack, int64_t timeout_ms,
                 void (*done)(void *arg), void *arg)
{
    struct probe *probe = xcalloc(1, sizeof *probe);

    probe->supervisor = supervisor;
    probe->stack = stack;
    probe->timeout_ms = stack_probe_ms(stack, timeout_ms);
    probe->done = done;
    probe->arg = arg;
    uv_timer_init(supervisor->loop, &probe->later);
    probe->later.data = probe;
    ask_all(probe);
}
