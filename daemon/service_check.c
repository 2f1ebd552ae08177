/* A second look at what is stored, while the service runs: at its start and once a day
 * fsck reads the whole database, on a thread of its own that gives way to others.
 * service_check of daemon/service.h.
 *
 * What can be wrong: pages are damaged, and then nobody knows what else is, so nothing
 * more is accepted; a row is not what was stored, and then nothing follows from it, and
 * nothing more is accepted either, until a person says so, and likewise where rows
 * contradict each other; a cell is not what its runs give, and is built anew from them,
 * if these are what was stored.  A look that fails shows nothing: nothing is accepted
 * until one does not. */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/commands.h"
#include "daemon/service.h"
#include "db/backup.h"
#include "db/fsck.h"
#include "db/integrity/cell_repair.h"
#include "db/integrity/quarantine.h"
#include "db/upkeep/marks.h"

enum {
    EVERY_MS = 24 * 3600 * 1000,
    AGAIN_MS = 5000,           /* after a look that failed … */
    DAMAGED_AGAIN_MS = 600000, /* … and after one that found damage */
    LINES_LOGGED = 20,
    NICE = 19,
    MARKS_AT_ONCE = 256
};

/* Cells that were found right, on their way to the writer. */
struct marks {
    struct mark marks[MARKS_AT_ONCE];
    int count;
    int64_t now_ms;
};

struct check {
    uv_work_t work;
    struct service *service;
    atomic_bool stop;
    struct fsck_counts counts;
    enum err_code code;
    struct err err; /* unless CODE is ERR_OK */
    int64_t now_ms;
    struct marks *marks; /* that are collected; NULL: none */
    int64_t *cells;      /* that are to be built anew */
    int cell_count, lines, acknowledged;
    int64_t backup_ms;                         /* of the newest backup; 0: none */
    char first[HEALTH_CAUSE_SIZE / 2];         /* line of fsck … */
    char contradiction[HEALTH_CAUSE_SIZE / 2]; /* … and the first of those */
};

static void take_line(void *arg, const char *line)
{
    struct check *c = arg;

    if (c->lines == 0) {
        copy_text(c->first, sizeof c->first, line);
    }
    if (c->lines++ < LINES_LOGGED) {
        log_warning("fsck: %s", line);
    }
}

static void take_contradiction(void *arg, const char *line)
{
    struct check *c = arg;

    if (!c->contradiction[0]) {
        copy_text(c->contradiction, sizeof c->contradiction, line);
    }
}

static void take_acknowledged(void *arg, const char *line)
{
    struct check *c = arg;

    if (c->acknowledged++ < LINES_LOGGED) {
        log_info("fsck: %s", line);
    }
}

static void take_cell(void *arg, int64_t cell)
{
    struct check *c = arg;

    if (c->cell_count == 0 || c->cells[c->cell_count - 1] != cell) {
        c->cells = xgrow(c->cells, c->cell_count, sizeof *c->cells);
        c->cells[c->cell_count++] = cell;
    }
}

/* No read of the served database lasts longer than copying it does.  The copy becomes a
 * backup where one is due.  False: there is no copy. */
static bool look_at_copy(struct check *c, const struct fsck_served *fsck)
{
    int every_hours = c->service->config.backup_every_hours;
    int64_t now_ms = clock_wall_ms();
    char *path = database_path(c->service->config.data);
    char *partial = NULL;
    struct err err = { .code = ERR_OK };
    int64_t age_ms = now_ms - backup_newest_ms(path);
    bool due = age_ms >= (int64_t)every_hours * 3600 * 1000 ||
               age_ms < 0; /* the clock was ahead when it was made */

    if (every_hours && backup_begin(fsck->tx, path, &partial, &err) != ERR_OK) {
        log_warning("%s", err.message);
    }
    if (partial) {
        c->code = fsck_copy(partial, fsck, &c->counts, &c->err);
        if (!due || c->code != ERR_OK || !fsck_is_whole(&c->counts)) {
            backup_drop(partial);
        } else if (backup_keep(path, partial, now_ms, &err) != ERR_OK) {
            log_warning("no backup: %s", err.message);
        }
    }
    c->backup_ms = backup_newest_ms(path);
    free(path);
    due = partial != NULL;
    free(partial);
    return due;
}

static enum err_code store_marks(struct tx *tx, void *arg, struct err *err)
{
    const struct marks *marks = arg;

    return marks_store(tx, marks->marks, marks->count, marks->now_ms, err);
}

/* Without them the next look has more to do. */
static void marks_stored(void *arg, const struct err *result)
{
    (void)result;
    free(arg);
}

static void send_marks(struct check *c)
{
    if (c->marks) {
        store_write(c->service->store, store_marks, c->marks, marks_stored);
        c->marks = NULL;
    }
}

static void take_mark(void *arg, const struct mark *mark)
{
    struct check *c = arg;

    if (!c->marks) {
        c->marks = xcalloc(1, sizeof *c->marks);
        c->marks->now_ms = c->now_ms;
    }
    c->marks->marks[c->marks->count++] = *mark;
    if (c->marks->count == MARKS_AT_ONCE) {
        send_marks(c);
    }
}

/* On a thread of its own; Linux has a nice value for each. */
static void look(uv_work_t *work)
{
    struct check *c = work->data;
    const struct fsck_served fsck = { .tx = store_background(c->service->store),
                                      .now_ms = c->now_ms,
                                      .report = take_line,
                                      .report_acknowledged = take_acknowledged,
                                      .may_acknowledge = take_contradiction,
                                      .cell_differs = take_cell,
                                      .right = take_mark,
                                      .arg = c,
                                      .stop = &c->stop };
    int before = getpriority(PRIO_PROCESS, (id_t)gettid());

    setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
    if (!look_at_copy(c, &fsck)) {
        c->code = fsck_served(&fsck, &c->counts, &c->err);
    }
    send_marks(c);
    setpriority(PRIO_PROCESS, (id_t)gettid(), before);
}

struct repair {
    struct service *service;
    int64_t cell;
    enum cell_repair repair;
    int64_t open; /* in quarantine */
    char words[DAMAGED_WORDS_SIZE];
};

static enum err_code repair(struct tx *tx, void *arg, struct err *err)
{
    struct repair *r = arg;

    return cell_repair(tx, r->cell, clock_wall_ms(), &r->repair, err) == ERR_OK
               ? quarantine_open(tx, &r->open, r->words, err)
               : err->code;
}

static void tell(struct service *s, const char *cause)
{
    if (!s->health.conditions[HEALTH_DATABASE].cause[0]) {
        health_set(&s->health, HEALTH_DATABASE, cause, clock_wall_ms());
        health_log(&s->health);
    }
}

/* Another look, after WAIT_MS, may show that CAUSE is over. */
static void tell_until(struct service *s, const char *cause, int64_t wait_ms)
{
    s->check_again |= !s->health.conditions[HEALTH_DATABASE].cause[0];
    tell(s, cause);
    s->checked_ms = clock_monotonic_ms() - EVERY_MS + wait_ms;
}

/* Unknown is not right: it is looked again, soon. */
static void tell_failure(struct service *s, const char *what)
{
    char cause[HEALTH_CAUSE_SIZE];

    log_error("fsck: %s", what);
    snprintf(cause, sizeof cause,
             "whether what is stored is right is not known, and nothing is accepted "
             "until it is: %.380s",
             what);
    tell_until(s, cause, AGAIN_MS);
}

void service_tell_quarantine(struct service *s, int64_t count, const char *words)
{
    char cause[HEALTH_CAUSE_SIZE];

    if (count) {
        snprintf(cause, sizeof cause,
                 "%s (%" PRId64
                 " in quarantine): such cells are inconclusive, and nothing is accepted "
                 "until a backup is restored (reprod restore), or this is acknowledged "
                 "(reprod fsck --accept-loss)",
                 words, count);
        tell(s, cause);
    }
}

static void repaired(void *arg, const struct err *result)
{
    struct repair *r = arg;
    char what[HEALTH_CAUSE_SIZE];

    if (result->code != ERR_OK) {
        snprintf(what, sizeof what,
                 "cell %" PRId64
                 " is not what its runs give, and could not be built anew: %.300s",
                 r->cell, result->message);
        tell_failure(r->service, what);
    } else if (r->repair == CELL_REBUILT) {
        log_warning("cell %" PRId64
                    " was not what its runs give; it was built anew from "
                    "them",
                    r->cell);
    } else {
        log_error("cell %" PRId64 " is in quarantine", r->cell);
    }
    service_tell_quarantine(r->service, r->open, r->words);
    free(r);
}

static void repair_cells(struct check *c)
{
    for (int i = 0; i < c->cell_count; i++) {
        struct repair *r = xcalloc(1, sizeof *r);

        r->service = c->service;
        r->cell = c->cells[i];
        store_write(c->service->store, repair, r, repaired);
    }
}

/* Rows that are not what was stored, and whose cells the repair tells of. */
static void tell_rows(struct check *c)
{
    char cause[HEALTH_CAUSE_SIZE];

    snprintf(cause, sizeof cause,
             "%.200s (%" PRId64
             " such rows): nothing follows from them, and nothing is accepted until a "
             "backup is restored (reprod restore), or this is acknowledged (reprod fsck "
             "--accept-loss)",
             c->first, c->counts.rows_damaged);
    tell(c->service, cause);
}

static void tell_contradictions(struct check *c)
{
    char cause[HEALTH_CAUSE_SIZE];

    if (c->contradiction[0]) {
        snprintf(cause, sizeof cause,
                 "%.200s: what is stored contradicts itself, and nothing is accepted "
                 "until a backup is restored (reprod restore), or this is acknowledged "
                 "(reprod fsck --accept-loss)",
                 c->contradiction);
        tell(c->service, cause);
    }
}

/* A disk that could not be read looks like damage to SQLite. */
static void tell_damage(struct check *c)
{
    struct service *s = c->service;
    bool disk_fails = s->health.conditions[HEALTH_STORAGE].cause[0];
    char cause[HEALTH_CAUSE_SIZE];
    char *path = database_path(s->config.data);
    char *backup = backup_newest(path);

    snprintf(
        cause, sizeof cause,
        "the database is damaged (%.180s): what it holds can be read as far as it goes, "
        "and nothing is accepted; stop the service, and restore a backup (reprod "
        "restore)%s%.120s",
        c->counts.damaged ? c->first : c->err.message,
        backup ? "; the newest good one is " : "", backup ? backup : "");
    free(backup);
    free(path);
    tell_until(s, cause, disk_fails ? AGAIN_MS : DAMAGED_AGAIN_MS);
}

static void take_result(struct check *c)
{
    struct service *s = c->service;

    if (s->check_again) {
        s->check_again = false;
        health_set(&s->health, HEALTH_DATABASE, NULL, 0);
    }
    if (c->counts.damaged || c->code == ERR_CORRUPT) {
        tell_damage(c);
        return;
    }
    if (c->counts.rows_damaged) { /* which may be why it failed */
        tell_rows(c);
    }
    tell_contradictions(c);
    if (c->code != ERR_OK) {
        tell_failure(s, c->err.message);
        return;
    }
    log_info("fsck: %" PRId64 " cells and %" PRId64 " jobs recomputed, %" PRId64
             " cells unchanged since they were, %d fault%s",
             c->counts.cells - c->counts.cells_trusted, c->counts.jobs,
             c->counts.cells_trusted, c->lines, c->lines == 1 ? "" : "s");
    repair_cells(c);
}

static void looked(uv_work_t *work, int status)
{
    struct check *c = work->data;
    struct service *s = c->service;

    (void)status;
    s->check = NULL;
    s->backup_ms = c->backup_ms;
    if (s->stopping.stage != STOPPING_NOT) {
        log_info("fsck: not finished, the service ends");
    } else {
        take_result(c);
    }
    free(c->cells);
    free(c);
}

void service_check(struct service *s)
{
    int64_t now = clock_monotonic_ms();
    struct check *c;

    if (s->check) {
        if (s->stopping.stage != STOPPING_NOT) {
            atomic_store(&s->check->stop, true);
        }
        return;
    }
    if (s->stopping.stage != STOPPING_NOT ||
        (s->checked_ms && now - s->checked_ms < EVERY_MS) ||
        (s->health.conditions[HEALTH_DATABASE].cause[0] && !s->check_again)) {
        return;
    }
    s->checked_ms = now;
    c = xcalloc(1, sizeof *c);
    c->work.data = c;
    c->service = s;
    c->now_ms = clock_wall_ms();
    atomic_init(&c->stop, false);
    s->check = c;
    uv_queue_work(&s->loop, &c->work, look, looked);
}
