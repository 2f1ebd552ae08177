#include "daemon/survey.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/render/matrix.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/base/text.h"

/* One line of progress that stays last on a terminal, redrawn in place; elsewhere it is
 * printed at every tenth. */

enum { BAR_WIDTH = 32 };

static struct {
    bool is_terminal;
    bool drawn;
    char line[256];
    int last_tenth; /* elsewhere than on a terminal */
} terminal;

static void erase(void)
{
    if (terminal.drawn) {
        fputs("\r\033[K", stdout);
        terminal.drawn = false;
    }
}

static void draw(void)
{
    if (terminal.is_terminal && terminal.line[0]) {
        fputs(terminal.line, stdout);
        terminal.drawn = true;
    }
    fflush(stdout);
}

static void log_above(void *arg, const char *line)
{
    (void)arg;
    erase();
    fflush(stdout);
    fprintf(stderr, "%s\n", line);
    draw();
}

/* Removes the progress line. */
static void terminal_clear(void)
{
    erase();
    terminal.line[0] = '\0';
    fflush(stdout);
}

/* Log lines go above the progress line from now on. */
static void terminal_open(void)
{
    terminal.is_terminal = isatty(STDOUT_FILENO);
    terminal.last_tenth = -1;
    log_set_sink(log_above, NULL);
}

static void terminal_close(void)
{
    terminal_clear();
    log_set_sink(NULL, NULL);
}

static void format_eta(char *text, size_t size, int64_t eta_ms)
{
    int64_t seconds = (eta_ms + 999) / 1000;

    if (eta_ms < 0) {
        snprintf(text, size, "ETA unknown");
    } else if (seconds < 60) {
        snprintf(text, size, "ETA %" PRId64 " s", seconds);
    } else {
        snprintf(text, size, "ETA %" PRId64 " min %02" PRId64 " s", seconds / 60,
                 seconds % 60);
    }
}

/* LABEL: what is running ("survey").  ETA_MS -1: unknown. */
static void terminal_progress(const char *label, int done, int total, int failed,
                              int64_t eta_ms)
{
    char bar[BAR_WIDTH + 1];
    char eta[48];
    char trouble[48] = "";
    int filled = total > 0 ? (int)((int64_t)done * BAR_WIDTH / total) : 0;
    int tenth = total > 0 ? (int)((int64_t)done * 10 / total) : 0;

    memset(bar, '.', BAR_WIDTH);
    memset(bar, '#', (size_t)filled);
    bar[BAR_WIDTH] = '\0';
    format_eta(eta, sizeof eta, eta_ms);
    if (failed > 0) {
        snprintf(trouble, sizeof trouble, ", %d failed", failed);
    }
    erase();
    snprintf(terminal.line, sizeof terminal.line, "%s [%s] %d of %d runs%s, %s", label,
             bar, done, total, trouble, eta);
    if (!terminal.is_terminal && tenth != terminal.last_tenth) {
        terminal.last_tenth = tenth;
        printf("%s\n", terminal.line);
    }
    draw();
}

/* Prints TEXT (lines) above the progress line. */
static void terminal_print(const char *text)
{
    struct buf shown = BUF_INIT;

    text_show(&shown, text, strlen(text), "\n");
    erase();
    fputs(shown.data, stdout);
    draw();
    buf_release(&shown);
}

/* Showing one. */

struct watched {
    char id[ID_SIZE];
    struct scheduler_progress last;
};

struct survey_watch {
    struct store *store;
    const struct fleet *fleet;
    const struct scheduler *scheduler;
    const struct profile_set *profiles;
    int64_t stale_after_ms;
    const char *address;
    int port;
    struct matrix_default standard;
    struct watched *jobs; /* the open ones of the surveys that are shown */
    int job_count;
    struct scheduler_progress ended; /* the sum of those that ended */
    bool stopped;
    int64_t due_ns; /* monotonic: when progress is worth another look */
    bool reading;   /* the matrix is being read */
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

void survey_watch_open(struct survey_watch *w, const struct fleet *fleet,
                       const char *address, int port)
{
    w->fleet = fleet;
    w->address = address;
    w->port = port;
}

void survey_watch_configure(struct survey_watch *w, const struct profile_set *profiles,
                            int64_t stale_after_ms)
{
    w->profiles = profiles;
    w->stale_after_ms = stale_after_ms;
}

bool survey_watch_idle(const struct survey_watch *w)
{
    return !w->reading;
}

void survey_watch_default(struct survey_watch *w, const struct matrix_default *standard)
{
    w->standard = *standard;
}

void survey_watch_job(struct survey_watch *w, const char *job)
{
    struct watched *watched;

    w->jobs = xgrow(w->jobs, w->job_count, sizeof *w->jobs);
    watched = &w->jobs[w->job_count++];
    *watched = (struct watched){ .last = { .eta_ms = -1 } };
    copy_text(watched->id, sizeof watched->id, job);
}

static enum err_code read_matrix(struct tx *tx, void *arg, struct err *err)
{
    struct survey_watch *w = arg;
    char id[DIGEST_TEXT_SIZE];
    enum err_code code = matrix_default_environment(tx, &w->standard, id, err);

    if (code == ERR_OK) {
        code = matrix_read(tx, id, &w->matrix, err);
    }
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
    matrix_init(&w->matrix, profile_set_at(w->profiles, 0), fleet_catalogue(w->fleet),
                clock_wall_ms(), false, w->stale_after_ms);
    w->reading = true;
    if (store_read_heavy(w->store, read_matrix, w, print_matrix, &err) != ERR_OK) {
        print_matrix(w, &err);
    }
}

static void add(struct scheduler_progress *sum, const struct scheduler_progress *p)
{
    sum->runs_done += p->runs_done;
    sum->runs_total += p->runs_total;
    sum->runs_failed += p->runs_failed;
}

/* What the open jobs add up to; those that ended since leave the list.  Devices work at
 * the same time: it takes as long as the slowest job, if all are known. */
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

/* Runs end thousands of times a second in a large fleet: looking takes a part of the time
 * at most. */
void survey_watch_update(struct survey_watch *w)
{
    enum { REST = 50 }; /* times what it took */
    int64_t now_ns = clock_monotonic_ns();
    struct scheduler_progress p;

    if (w->stopped || w->job_count == 0 || now_ns < w->due_ns) {
        return;
    }
    p = add_open(w);
    w->due_ns = now_ns + REST * (clock_monotonic_ns() - now_ns);
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
