#include "daemon/survey_watch.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "api/matrix.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/terminal.h"
#include "db/cells.h"
#include "db/fleet.h"

struct survey_watch {
    struct store *store;
    const struct scheduler *scheduler;
    const struct profile_set *profiles;
    int64_t stale_after_ms;
    const char *address;
    int port;
    struct matrix_subject subject;
    char job[ID_SIZE]; /* the survey that is shown; "": none */
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
    copy_text(w->job, sizeof w->job, job);
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

void survey_watch_update(struct survey_watch *w)
{
    struct scheduler_progress p;

    if (w->stopped || !w->job[0]) {
        return;
    }
    if (scheduler_progress(w->scheduler, w->job, &p)) {
        terminal_progress("survey", p.runs_done, p.runs_total, p.runs_failed, p.eta_ms);
        return;
    }
    terminal_clear();
    w->job[0] = '\0';
    survey_watch_print(w);
}

void survey_watch_stop(struct survey_watch *w)
{
    w->stopped = true;
    terminal_clear();
}
