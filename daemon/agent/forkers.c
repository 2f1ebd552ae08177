#include "daemon/agent/forkers.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"
#include "daemon/process/loop.h"
#include "daemon/process/wire.h"

enum {
    FORKERS_MAX = 8,     /* that wait for their next run: each holds a framework */
    IDLE_MS = 60 * 1000, /* after which one is of no use any more */
    LOG_MS = 1           /* the log of a run that ended is read once more */
};

struct forker {
    struct forkers *forkers;
    struct forker *next;
    struct supervised *supervised;
    char *key;
    json_t *done;                           /* object: the cases that it forked */
    const struct supervised_events *events; /* of its run; NULL: it has none */
    void *arg;
    struct run_exit exit; /* of its run, once that is known */
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

static void timer_cb(uv_timer_t *timer)
{
    struct forker *forker = timer->data;
    char log[LOG_TAIL_SIZE];
    struct run_exit exit;

    supervised_so_far(forker->supervised, log, &exit);
    exit = exit_of_run(forker, exit);
    supervised_count_anew(forker->supervised, IDLE_MS, 0);
    report(forker, &exit);
}

/* What the forker says of the run that it has forked last. */
static void take_exit(struct forker *forker, const json_t *data)
{
    const json_t *exit_code = json_object_get(data, "exit_code");

    forker->exit = (struct run_exit){
        .exit_code = json_is_integer(exit_code) ? (int)json_integer_value(exit_code) : -1,
        .signal = (int)in_int(data, "signal"),
        .max_rss_kb = in_int(data, "max_rss_kb"),
    };
    uv_timer_start(&forker->timer, timer_cb, LOG_MS, 0);
}

static void line(void *arg, int64_t number, const char *text, size_t length,
                 bool complete)
{
    static const char mark[] = "{\"event\":\"forked_exited\"";
    struct forker *forker = arg;
    struct err err;

    if (complete && length >= strlen(mark) && memcmp(text, mark, strlen(mark)) == 0) {
        json_t *data = wire_parse(text, length, &err);

        if (data) {
            take_exit(forker, data);
        }
        json_decref(data);
    } else if (forker->events) {
        forker->events->line(forker->arg, number, text, length, complete);
    }
}

static void closed_cb(uv_handle_t *handle)
{
    struct forker *forker = handle->data;

    json_decref(forker->done);
    free(forker->key);
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

static void end_surplus(struct forkers *forkers)
{
    int waiting = 0;

    for (struct forker *forker = forkers->first; forker; forker = forker->next) {
        waiting += forker->events == NULL;
        if (!forker->events && waiting >= FORKERS_MAX) {
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
    end_surplus(forkers);
    if (supervisor_start(forkers->supervisor, &process, &events, forker,
                         &forker->supervised, err) != ERR_OK) {
        free(forker);
        return NULL;
    }
    forker->forkers = forkers;
    forker->key = xstrdup(run->key);
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
    unlink_forker(forker);
    put_first(forkers, forker);
    *ret_supervised = forker->supervised;
    return ERR_OK;
}
