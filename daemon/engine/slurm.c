#include "daemon/engine/slurm.h"

#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/hash.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/engine/command.h"
#include "daemon/engine/elements.h"
#include "daemon/engine/slurm_hosts.h"
#include "daemon/engine/slurm_launch.h"

enum {
    DEADLINE_MS = 30000,
    CLOSE_MS = 5000,
    OUTPUT_MOST = 1 << 30,
    CANCEL_AT_ONCE = 256,
    USER_SIZE = 64
};

enum task { TASK_NONE, TASK_NODES, TASK_JOBS, TASK_CANCEL };

struct slurm {
    uv_loop_t *loop;
    struct slurm_hosts hosts;
    char user[USER_SIZE];
    int64_t pace_ms, next_ms;
    enum task task; /* that goes on, by COMMAND */
    struct command *command;
    struct elements elements;
    char fault[SLURM_TEXT_SIZE];    /* the first of `errors` in its output; "" */
    int64_t task_ms, nodes_took_ms; /* when it began; what sinfo took */
    bool nodes_first;               /* nodes were listed; their jobs come next */
    bool in_turn;                   /* the listing is one that is made every period */
    bool cancelling_all;            /* at the end */
    void (*closed)(void *arg);      /* not NULL: it is closing */
    void *closed_arg;
};

char *slurm_name(const char *data)
{
    char place[PATH_MAX + 256] = "";
    char *path = realpath(data, NULL);

    gethostname(place, 255);
    snprintf(place + strlen(place), sizeof place - strlen(place), ":%s",
             path ? path : data);
    free(path);
    return xasprintf("reprod-%012llx",
                     (unsigned long long)hash_bytes(place, strlen(place)) >> 16);
}

/* Commands, one after another. */

static void take_node(void *arg, const struct slurm_node *node)
{
    slurm_hosts_node(arg, node);
}

static void take_nodes(void *arg, const char *text, size_t length)
{
    struct slurm *s = arg;
    json_t *json = json_loadb(text, length, 0, NULL);

    slurm_nodes_read(json, take_node, &s->hosts);
    json_decref(json);
}

static void take_job(void *arg, const char *text, size_t length)
{
    struct slurm *s = arg;
    struct slurm_job job;
    json_t *json;

    if (strstr(text, s->hosts.job_name)) { /* most are others' */
        json = json_loadb(text, length, 0, NULL);
        slurm_job_read(json, &job);
        json_decref(json);
        slurm_hosts_job(&s->hosts, &job);
    }
}

static void take_error(void *arg, const char *text, size_t length)
{
    struct slurm *s = arg;
    json_t *json = json_loadb(text, length, 0, NULL);

    if (!s->fault[0]) {
        slurm_error_read(json, s->fault);
    }
    json_decref(json);
}

static void took_turn(struct slurm *s, bool right, int64_t took)
{
    int64_t now = clock_monotonic_ms();

    if (!s->in_turn) {
        return;
    }
    s->pace_ms = slurm_pace(s->hosts.period_ms, s->pace_ms, !right, took);
    s->hosts.pause_ms = s->pace_ms;
    s->next_ms = now + s->pace_ms * 3 / 4 +
                 (int64_t)(hash_bytes(&now, sizeof now) % 1024) * s->pace_ms / 2048;
}

static void failed(struct slurm *s, const char *program, const char *cause)
{
    char text[SLURM_TEXT_SIZE];

    snprintf(text, sizeof text, "%s: %.200s", program, cause);
    took_turn(s, false, 0);
    slurm_hosts_failed(&s->hosts, text, clock_monotonic_ms());
}

static void end_listing(struct slurm *s, enum task task, const char *cause)
{
    int64_t now = clock_monotonic_ms(), took = now - s->task_ms;
    bool whole = elements_whole(&s->elements);

    elements_release(&s->elements);
    if (cause || s->fault[0] || !whole) {
        failed(s, task == TASK_NODES ? "sinfo" : "squeue",
               cause         ? cause
               : s->fault[0] ? s->fault
                             : "its answer is not whole");
    } else if (task == TASK_NODES) {
        s->nodes_took_ms = took;
        s->nodes_first = true;
        slurm_hosts_nodes_listed(&s->hosts, now, clock_wall_ms());
    } else {
        took_turn(s, true, took + s->nodes_took_ms);
        slurm_hosts_jobs_listed(&s->hosts, s->task_ms, now);
    }
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void start_next(struct slurm *s, int64_t now);

static void on_ended(void *arg, const char *cause)
{
    struct slurm *s = arg;
    enum task task = s->task;

    s->command = NULL;
    s->task = TASK_NONE;
    if (s->closed) {
        elements_release(&s->elements);
        if (s->cancelling_all) {
            s->closed(s->closed_arg);
        } else {
            start_next(s, 0);
        }
    } else if (task != TASK_CANCEL) {
        end_listing(s, task, cause);
        if (s->nodes_first) {
            start_next(s, 0);
        }
    } else if (cause) {
        log_warning("slurm: scancel: %s", cause); /* the next listing says what is left */
    } else {
        s->next_ms = least(s->next_ms, clock_monotonic_ms() + s->hosts.period_ms / 4);
    }
}

static void ignore_bytes(void *arg, const char *data, size_t length)
{
    (void)arg;
    (void)data;
    (void)length;
}

static void feed(void *arg, const char *data, size_t length)
{
    struct slurm *s = arg;

    elements_feed(&s->elements, data, length);
}

static void start(struct slurm *s, enum task task, const char *const *argv)
{
    /* A user's own: they would hide nodes and jobs. */
    static const char *const filters[] = { "SINFO_", "SQUEUE_", "SCANCEL_", NULL };
    const struct command_options options = {
        .argv = argv,
        .without = filters,
        .deadline_ms = s->closed ? CLOSE_MS : DEADLINE_MS,
        .most = OUTPUT_MOST,
        .bytes = task == TASK_CANCEL ? ignore_bytes : feed,
        .ended = on_ended,
        .arg = s,
    };
    struct err err;

    s->task = task;
    s->task_ms = clock_monotonic_ms();
    if (command_start(s->loop, &options, &s->command, &err) != ERR_OK) {
        s->task = TASK_NONE;
        failed(s, argv[0], err.message);
    }
}

/* An array of KEY, or of OTHER if that is not NULL. */
static void expect(struct slurm *s, const char *key, const char *other,
                   void (*take)(void *arg, const char *text, size_t length))
{
    s->fault[0] = '\0';
    s->elements = (struct elements){ .arrays = { { key, true, take },
                                                 { "errors", false, take_error },
                                                 { other, true, take } },
                                     .arg = s };
}

/* From 23.02 on it lists rows, as on a terminal: one for each node, and those of hidden
 * partitions, too. */
static void list_nodes(struct slurm *s)
{
    const char *const argv[] = { "sinfo", "--json", "--Node", "--all", NULL };

    slurm_hosts_list_nodes(&s->hosts);
    expect(s, "nodes", "sinfo", take_nodes);
    start(s, TASK_NODES, argv);
}

/* The options are for versions that heed them: older ones list all jobs. */
static void list_jobs(struct slurm *s)
{
    char *name = xasprintf("--name=%s", s->hosts.job_name);
    char *user = xasprintf("--user=%s", s->user);
    const char *const argv[] = { "squeue", "--json", "--all", "--states=all",
                                 name,     user,     NULL };

    s->nodes_first = false;
    slurm_hosts_list_jobs(&s->hosts);
    expect(s, "jobs", NULL, take_job);
    start(s, TASK_JOBS, argv);
    free(name);
    free(user);
}

/* The first COUNT orphans, if they have exactly our name and user; 0: all that have. */
static void cancel_jobs(struct slurm *s, int count)
{
    char **argv = xcalloc((size_t)count + 5, sizeof *argv);
    int n = 0;

    argv[n++] = xstrdup("scancel");
    argv[n++] = xstrdup("--quiet");
    argv[n++] = xasprintf("--name=%s", s->hosts.job_name);
    argv[n++] = xasprintf("--user=%s", s->user);
    for (int i = 0; i < count; i++) {
        argv[n++] = xasprintf("%lld", (long long)s->hosts.orphans[i]);
    }
    s->hosts.orphan_count = 0; /* the next listing says which are left */
    start(s, TASK_CANCEL, (const char *const *)argv);
    free_texts(argv);
}

static void start_next(struct slurm *s, int64_t now)
{
    if (s->closed) {
        s->cancelling_all = true;
        cancel_jobs(s, 0);
        if (!s->command) {
            s->closed(s->closed_arg);
        }
    } else if (s->nodes_first) { /* still in turn */
        list_jobs(s);
    } else if (s->hosts.orphan_count > 0) {
        cancel_jobs(s, (int)least(s->hosts.orphan_count, CANCEL_AT_ONCE));
    } else if (now >= s->next_ms) {
        s->in_turn = true;
        list_nodes(s);
    } else if (slurm_hosts_asked(&s->hosts, now)) {
        s->in_turn = false;
        list_jobs(s);
    }
}

void slurm_tick(struct slurm *s, int64_t now_monotonic_ms)
{
    if (!s || s->closed) {
        return;
    }
    slurm_hosts_look(&s->hosts, now_monotonic_ms);
    if (s->task == TASK_NONE) {
        start_next(s, now_monotonic_ms);
    }
}

void slurm_started(struct slurm *s, const char *host)
{
    if (s) {
        slurm_hosts_started(&s->hosts, host);
    }
}

bool slurm_ask(struct slurm *s, const char *host)
{
    return s && slurm_hosts_ask(&s->hosts, host, clock_monotonic_ms());
}

void slurm_let_go(struct slurm *s, const char *host)
{
    if (s) {
        slurm_hosts_let_go(&s->hosts, host);
    }
}

json_t *slurm_json(const struct slurm *s, const char *host)
{
    return s ? slurm_hosts_json(&s->hosts, host) : NULL;
}

/* Its life. */

static void name_user(char user[USER_SIZE])
{
    const struct passwd *entry = getpwuid(getuid());

    if (entry) {
        copy_text(user, USER_SIZE, entry->pw_name);
    } else {
        snprintf(user, USER_SIZE, "%ld", (long)getuid());
    }
}

struct slurm *slurm_new(uv_loop_t *loop, const json_t *hosts, const char *name,
                        int64_t period_ms, const struct slurm_hooks *hooks)
{
    struct slurm *s = xcalloc(1, sizeof *s);

    slurm_hosts_init(&s->hosts, hosts, name, (int64_t)getuid(), period_ms, hooks);
    if (s->hosts.count == 0) {
        slurm_free(s);
        return NULL;
    }
    s->loop = loop;
    name_user(s->user);
    return s;
}

void slurm_close(struct slurm *s, void (*closed)(void *arg), void *arg)
{
    if (!s) {
        closed(arg);
        return;
    }
    s->closed = closed;
    s->closed_arg = arg;
    if (s->command) {
        command_kill(s->command);
    } else {
        start_next(s, 0);
    }
}

void slurm_free(struct slurm *s)
{
    if (s) {
        elements_release(&s->elements);
        slurm_hosts_release(&s->hosts);
        free(s);
    }
}
