/* A second look at what is stored, while the service runs: at its start and once a day
 * fsck reads the whole database, on a thread of its own that gives way to others.
 * service_check of daemon/service.h.
 *
 * What can be wrong: pages are damaged, and then nobody knows what else is, so nothing
 * more is accepted; rows contradict each other, which is told; a cell is not what its
 * runs give, and is built anew from them. */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/service.h"
#include "db/cells.h"
#include "db/fsck.h"

enum { EVERY_MS = 24 * 3600 * 1000, LINES_LOGGED = 20, NICE = 19 };

struct check {
    uv_work_t work;
    struct service *service;
    atomic_bool stop;
    struct fsck_counts counts;
    struct err err;
    int64_t *cells; /* that are to be built anew */
    int cell_count, lines;
    char first[HEALTH_CAUSE_SIZE / 2];
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

static void take_cell(void *arg, int64_t cell)
{
    struct check *c = arg;

    if (c->cell_count == 0 || c->cells[c->cell_count - 1] != cell) {
        c->cells = xgrow(c->cells, c->cell_count, sizeof *c->cells);
        c->cells[c->cell_count++] = cell;
    }
}

/* On a thread of its own; Linux has a nice value for each. */
static void look(uv_work_t *work)
{
    struct check *c = work->data;
    const struct fsck_served fsck = { .tx = store_background(c->service->store),
                                      .report = take_line,
                                      .cell_differs = take_cell,
                                      .arg = c,
                                      .stop = &c->stop };
    int before = getpriority(PRIO_PROCESS, (id_t)gettid());

    setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
    fsck_served(&fsck, &c->counts, &c->err);
    setpriority(PRIO_PROCESS, (id_t)gettid(), before);
}

struct repair {
    int64_t cell;
};

static enum err_code rebuild(struct tx *tx, void *arg, struct err *err)
{
    const struct repair *repair = arg;

    return cells_rebuild(tx, repair->cell, clock_wall_ms(), err);
}

static void rebuilt(void *arg, const struct err *result)
{
    struct repair *repair = arg;

    if (result->code == ERR_OK) {
        log_warning("cell %" PRId64
                    " was not what its runs give; it was built anew from "
                    "them",
                    repair->cell);
    } else {
        log_error("cell %" PRId64
                  " is not what its runs give, and cannot be built anew: "
                  "%s",
                  repair->cell, result->message);
    }
    free(repair);
}

static void repair_cells(struct check *c)
{
    for (int i = 0; i < c->cell_count; i++) {
        struct repair *repair = xcalloc(1, sizeof *repair);

        repair->cell = c->cells[i];
        store_write(c->service->store, rebuild, repair, rebuilt);
    }
}

static void tell_damage(struct check *c)
{
    char cause[HEALTH_CAUSE_SIZE];

    snprintf(
        cause, sizeof cause,
        "the database is damaged (%.240s): what it holds can be read as far as it goes, "
        "and nothing is accepted; stop the service, and restore a backup (reprod "
        "restore)",
        c->counts.damaged ? c->first : c->err.message);
    health_set(&c->service->health, HEALTH_DATABASE, cause, clock_wall_ms());
    health_log(&c->service->health);
}

static void looked(uv_work_t *work, int status)
{
    struct check *c = work->data;
    struct service *s = c->service;

    (void)status;
    s->check = NULL;
    if (s->stopping.stage != STOPPING_NOT) {
        log_info("fsck: not finished, the service ends");
    } else if (c->counts.damaged || c->err.code == ERR_CORRUPT) {
        tell_damage(c);
    } else if (c->err.code != ERR_OK) {
        log_error("fsck: %s", c->err.message);
    } else {
        log_info("fsck: %" PRId64 " cells and %" PRId64 " jobs recomputed, %d fault%s",
                 c->counts.cells, c->counts.jobs, c->lines, c->lines == 1 ? "" : "s");
        repair_cells(c);
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
        s->health.conditions[HEALTH_DATABASE].cause[0]) {
        return;
    }
    s->checked_ms = now;
    c = xcalloc(1, sizeof *c);
    c->work.data = c;
    c->service = s;
    atomic_init(&c->stop, false);
    s->check = c;
    uv_queue_work(&s->loop, &c->work, look, looked);
}
