#include "daemon/agent/forkers.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"
#include "daemon/process/loop.h"
#include "daemon/process/wire.h"

enum {
    WAITING_MAX = 6, /* of a device: each holds a framework */
    EXIT_CODE_MAX = 255,
    SIGNAL_MAX = 64,
    IDLE_MS = 60 * 1000, /* after which one is of no use any more */
    LOG_MS = 1           /* the log of a run that ended is read once more */
};

struct forker {
    struct forkers *forkers;
    struct forker *next;
    struct supervised *supervised;
    char *key, *device;
    json_t *done;                           /* object: the cases that it forked */
    const struct supervised_events *events; /* of its run; NULL: it has none */
    void *arg;
    char *nonce;          /* of its run, or of the last one */
    struct run_exit exit; /* of its run, once that is known */
    bool waited;          /* for the timer, since then */
    uv_timer_t timer;     /* until the run is reported */
};

static void unlink_forker(struct forker *forker)
{
    struct forker **at = &forker->forkers->first;

    while (*at != forker) {
        at = &(*at)->next;
    }
    *at = forker->next;
}

static void put_first(struct forkers *forkers, struct forker *forker)
{
    forker->next = forkers->first;
    forkers->first = forker;
}

/* The end of the forker's run, if it has one. */
static void report(struct forker *forker, const struct run_exit *exit)
{
    const struct supervised_events *events = forker->events;

    forker->events = NULL;
    if (events) {
        events->finished(forker->arg, exit);
    }
}

/* EXIT has time and log: how the run ended is what the forker said. */
static struct run_exit exit_of_run(const struct forker *forker, struct run_exit exit)
{
    exit.reason = EXIT_REASON_EXITED;
    exit.exit_code = forker->exit.exit_code;
    exit.signal = forker->exit.signal;
    exit.max_rss_kb = forker->exit.max_rss_kb;
    return exit;
}

static void timer_cb(uv_timer_t *timer);

static void start_timer(struct forker *forker)
{
    uv_update_time(forker->timer.loop);
    uv_timer_start(&forker->timer, timer_cb, LOG_MS, 0);
}

/* Pipes are looked at between two timers, but perhaps not before the first. */
static void timer_cb(uv_timer_t *timer)
{
    struct forker *forker = timer->data;
    char log[LOG_TAIL_SIZE];
    struct run_exit exit;

    if (!forker->waited) {
        forker->waited = true;
        start_timer(forker);
        return;
    }
    supervised_so_far(forker->supervised, log, &exit);
    exit = exit_of_run(forker, exit);
    supervised_count_anew(forker->supervised, IDLE_MS, 0);
    report(forker, &exit);
}

/* What the forker says of its run.  False: it is another run, or no process can have
 * ended so. */
static bool take_exit(struct forker *forker, const json_t *data)
{
    const json_t *said = json_object_get(data, "exit_code");
    int64_t exit_code = json_is_integer(said) ? json_integer_value(said) : -1;
    int64_t number = in_int(data, "signal"), kb = in_int(data, "max_rss_kb");
    bool has_code = exit_code >= 0 && exit_code <= EXIT_CODE_MAX && number == 0;
    bool has_signal = number > 0 && number <= SIGNAL_MAX && !json_is_integer(said);

    const char *nonce = in_text(data, "nonce");
    bool is_own = forker->events && nonce && strcmp(nonce, forker->nonce) == 0;

    if (is_own && (has_code || has_signal)) {
        forker->exit = (struct run_exit){ .exit_code = has_code ? (int)exit_code : -1,
                                          .signal = (int)number,
                                          .max_rss_kb = kb > 0 ? kb : 0 };
        forker->waited = false;
        start_timer(forker);
    }
    return is_own && (has_code || has_signal);
}

/* Where in the line the forker says how its run ended, or NULL.  It is not at the start
 * where the run ended in the middle of a line. */
static const char *find_exit(struct forker *forker, const char *text, size_t length)
{
    static const char mark[] = "{\"event\":\"forked_exited\"";
    const char *at = memmem(text, length, mark, strlen(mark));
    struct err err;
    json_t *data = at ? wire_parse(at, length - (size_t)(at - text), &err) : NULL;
    bool is_taken = data && take_exit(forker, data);

    json_decref(data);
    return is_taken ? at : NULL;
}

static void line(void *arg, int64_t number, const char *text, size_t length,
                 bool complete)
{
    struct forker *forker = arg;
    const char *exit = complete ? find_exit(forker, text, length) : NULL;

    if (forker->events && exit != text) {
        forker->events->line(forker->arg, number, text,
                             exit ? (size_t)(exit - text) : length, complete && !exit);
    }
}

static void closed_cb(uv_handle_t *handle)
{
    struct forker *forker = handle->data;

    json_decref(forker->done);
    free(forker->key);
    free(forker->device);
    free(forker->nonce);
    free(forker);
}

static void finished(void *arg, const struct run_exit *exit)
{
    struct forker *forker = arg;
    bool is_known = uv_is_active((uv_handle_t *)&forker->timer);
    struct run_exit of_run = is_known ? exit_of_run(forker, *exit) : *exit;

    unlink_forker(forker);
    uv_close((uv_handle_t *)&forker->timer, closed_cb);
    report(forker, &of_run);
}

/* One that waits and has not forked that case, or NULL.  One that has is of no more use.
 */
static struct forker *find(struct forkers *forkers, const struct forker_run *run)
{
    for (struct forker *forker = forkers->first; forker; forker = forker->next) {
        if (forker->events || strcmp(forker->key, run->key) != 0) {
            continue;
        }
        if (!json_object_get(forker->done, run->what)) {
            return forker;
        }
        supervised_kill(forker->supervised, EXIT_REASON_CANCELLED);
    }
    return NULL;
}

/* Those of DEVICE that waited longest. */
static void end_surplus(struct forkers *forkers, const char *device)
{
    int waiting = 0;

    for (struct forker *forker = forkers->first; forker; forker = forker->next) {
        if (!forker->events && strcmp(forker->device, device) == 0 &&
            ++waiting >= WAITING_MAX) {
            supervised_kill(forker->supervised, EXIT_REASON_CANCELLED);
        }
    }
}

static struct forker *start(struct forkers *forkers, const struct forker_run *run,
                            struct err *err)
{
    static const struct supervised_events events = { line, finished };
    struct forker *forker = xcalloc(1, sizeof *forker);
    struct supervise process = run->process;

    process.asked = true;
    end_surplus(forkers, run->device);
    if (supervisor_start(forkers->supervisor, &process, &events, forker,
                         &forker->supervised, err) != ERR_OK) {
        free(forker);
        return NULL;
    }
    forker->forkers = forkers;
    forker->key = xstrdup(run->key);
    forker->device = xstrdup(run->device);
    forker->done = json_object();
    uv_timer_init(forkers->supervisor->loop, &forker->timer);
    forker->timer.data = forker;
    put_first(forkers, forker);
    return forker;
}

static bool ask(struct forker *forker, const struct forker_run *run)
{
    char *text = json_dumps(run->request, JSON_COMPACT);
    char *asked = xasprintf("%s\n", text);
    bool is_asked = strlen(asked) <= PIPE_BUF &&
                    supervised_ask(forker->supervised, asked, strlen(asked));

    free(asked);
    free(text);
    return is_asked;
}

enum err_code forkers_run(struct forkers *forkers, const struct forker_run *run,
                          const struct supervised_events *events, void *arg,
                          struct supervised **ret_supervised, struct err *err)
{
    struct forker *forker = find(forkers, run);

    if (forker) {
        supervised_count_anew(forker->supervised, run->process.timeout_ms,
                              run->process.max_lines);
    }
    if (forker && !ask(forker, run)) { /* it is about to end */
        supervised_kill(forker->supervised, EXIT_REASON_CANCELLED);
        forker = NULL;
    }
    if (!forker) {
        forker = start(forkers, run, err);
        if (!forker) {
            return err->code;
        }
        if (!ask(forker, run)) {
            supervised_kill(forker->supervised, EXIT_REASON_CANCELLED);
            return err_set(err, ERR_BUSY, "a process that forks runs does not listen");
        }
    }
    json_object_set_new(forker->done, run->what, json_true());
    forker->events = events;
    forker->arg = arg;
    free(forker->nonce);
    forker->nonce = xstrdup(in_text(run->request, "nonce"));
    unlink_forker(forker);
    put_first(forkers, forker);
    *ret_supervised = forker->supervised;
    return ERR_OK;
}
