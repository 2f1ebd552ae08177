#include "daemon/survey_watch.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "api/render/matrix_text.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/terminal.h"
#include "db/cells.h"
#include "db/fleet.h"

struct watched {
    char id[ID_SIZE];
    struct scheduler_progress last;
};

struct survey_watch {
    struct store *store;
    const struct scheduler *scheduler;
    const struct profile_set *profiles;
    int64_t stale_after_ms;
    const char *address;
    int port;
    struct matrix_subject subject;
    struct watched *jobs; /* of the surveys that are shown, as far as they are open */
    int job_count;
    struct scheduler_progress ended; /* what those add up to that are not */
    bool stopped;
    bool reading; /* the matrix is being read */
    struct matrix matrix;
};

struct survey_watch *survey_watch_new(struct store *store,
                                      const struct scheduler *scheduler,
                                      const struct profile_set *profiles,
                                      int64_t stale_after_ms)
{
    struct survey_watch *w = xcalloc(1, sizeof *w);

    w->store = store;
    w->scheduler = scheduler;
    w->profiles = profiles;
    w->stale_after_ms = stale_after_ms;
    terminal_open();
    return w;
}

void survey_watch_free(struct survey_watch *w)
{
    if (w) {
        terminal_close();
        free(w->jobs);
        free(w);
    }
}

void survey_watch_address(struct survey_watch *w, const char *address, int port)
{
    w->address = address;
    w->port = port;
}

void survey_watch_subject(struct survey_watch *w, const struct matrix_subject *subject)
{
    w->subject = *subject;
}

void survey_watch_job(struct survey_watch *w, const char *job)
{
    struct watched *watched;

    w->jobs = xrealloc(w->jobs, (size_t)(w->job_count + 1) * sizeof *w->jobs);
    watched = &w->jobs[w->job_count++];
    *watched = (struct watched){ .last = { .eta_ms = -1 } };
    copy_text(watched->id, sizeof watched->id, job);
}

static void add_cell(void *arg, const struct cell *cell)
{
    matrix_add(arg, cell);
}

static enum err_code read_matrix(struct tx *tx, void *arg, struct err *err)
{
    struct survey_watch *w = arg;
    struct matrix *m = &w->matrix;
    char id[DIGEST_TEXT_SIZE];
    enum err_code code = matrix_subject_environment(tx, &w->subject, id, err);

    if (code == ERR_OK) {
        code = environments_get(tx, id, &m->environment, &m->environment_json, err);
    }
    if (code == ERR_OK) {
        m->has_environment = true;
        code = cells_each(tx, m->environment.id, 0, add_cell, m, err);
    }
    matrix_settle(m);
    return code == ERR_NOT_FOUND ? ERR_OK : code;
}

static void print_matrix(void *arg, const struct err *err)
{
    struct survey_watch *w = arg;
    struct buf text = BUF_INIT;
    bool v6 = strchr(w->address, ':') != NULL;

    w->reading = false;
    if (err->code != ERR_OK) {
        log_error("matrix: %s", err->message);
    } else if (!w->stopped) {
        buf_putc(&text, '\n');
        matrix_text(&w->matrix, &text);
        buf_printf(&text, "\nThe page: http://%s%s%s:%d/   (Ctrl-C stops)\n",
                   v6 ? "[" : "", w->address, v6 ? "]" : "", w->port);
        terminal_print(text.data);
    }
    buf_release(&text);
    matrix_release(&w->matrix);
}

void survey_watch_print(struct survey_watch *w)
{
    struct err err;

    if (w->reading || w->stopped) {
        return;
    }
    matrix_init(&w->matrix, profile_set_at(w->profiles, 0), clock_wall_ms(), false,
                w->stale_after_ms);
    w->reading = true;
    if (store_read(w->store, read_matrix, w, print_matrix, &err) != ERR_OK) {
        print_matrix(w, &err);
    }
}

static void add(struct scheduler_progress *sum, const struct scheduler_progress *p)
{
    sum->runs_done += p->runs_done;
    sum->runs_total += p->runs_total;
    sum->runs_failed += p->runs_failed;
}

/* What the open jobs add up to; those that ended since leave the list.  Devices work
 * beside each other: it takes as long as the slowest job, if all are known. */
static struct scheduler_progress add_open(struct survey_watch *w)
{
    struct scheduler_progress sum = { .eta_ms = 0 };
    int open = 0;

    for (int i = 0; i < w->job_count; i++) {
        struct watched *job = &w->jobs[i];

        if (!scheduler_progress(w->scheduler, job->id, &job->last)) {
            job->last.runs_done = job->last.runs_total;
            add(&w->ended, &job->last);
            continue;
        }
        add(&sum, &job->last);
        sum.eta_ms = sum.eta_ms < 0 || job->last.eta_ms < 0 ? -1
                     : job->last.eta_ms > sum.eta_ms        ? job->last.eta_ms
                                                            : sum.eta_ms;
        w->jobs[open++] = *job;
    }
    w->job_count = open;
    add(&sum, &w->ended);
    return sum;
}

void survey_watch_update(struct survey_watch *w)
{
    struct scheduler_progress p;

    if (w->stopped || w->job_count == 0) {
        return;
    }
    p = add_open(w);
    if (w->job_count > 0) {
        terminal_progress("survey", p.runs_done, p.runs_total, p.runs_failed, p.eta_ms);
        return;
    }
    w->ended = (struct scheduler_progress){ 0 };
    terminal_clear();
    survey_watch_print(w);
}

void survey_watch_stop(struct survey_watch *w)
{
    w->stopped = true;
    terminal_clear();
}
