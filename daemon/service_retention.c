/* Old runs are folded while the service runs: service_retention of daemon/service.h.
 *
 * Once a second the writer looks at some runs and folds those that may be
 * (db/upkeep/retention.h), in a transaction that others of the same moment share.  Where
 * a pass came to is in memory alone: after a start it begins anew, and what was folded
 * is.  While the store is in trouble, or the database damaged, nothing is folded. */
#include <inttypes.h>
#include <stdlib.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/service.h"
#include "db/upkeep/retention.h"

enum { AGAIN_MS = 24 * 3600 * 1000, AT_ONCE = 200 };

struct folding {
    struct service *service;
    struct retention retention;
    struct retention_place place, next; /* as stored, and as the slice leaves it */
    int64_t now_ms;
    bool waits; /* for the writer */
};

static enum err_code fold(struct tx *tx, void *arg, struct err *err)
{
    struct folding *f = arg;

    f->next = f->place;
    return retention_fold(tx, &f->retention, f->now_ms, &f->next, err);
}

static void end_pass(struct folding *f)
{
    struct service *s = f->service;

    if (f->place.folded) {
        log_info("retention: %" PRId64
                 " runs older than %d days, and not of the newest "
                 "%d of their cell, were folded into %" PRId64 " summaries",
                 f->place.folded, f->retention.days, f->retention.runs,
                 f->place.summaries);
    }
    s->folding = NULL;
    s->folded_ms = clock_monotonic_ms();
    free(f);
}

/* What went wrong with the store is told where the store is watched. */
static void folded(void *arg, const struct err *result)
{
    struct folding *f = arg;

    f->waits = false;
    if (result->code == ERR_OK) {
        f->place = f->next;
    } else if (result->code != ERR_IO && result->code != ERR_BUSY) {
        log_error("retention: %s", result->message);
        f->place.finished = true;
    }
    if (f->place.finished || f->service->stopping.stage != STOPPING_NOT) {
        end_pass(f);
    }
}

static bool is_in_trouble(const struct service *s)
{
    return s->health.conditions[HEALTH_STORAGE].cause[0] ||
           s->health.conditions[HEALTH_DATABASE].cause[0] || store_failing(s->store);
}

static struct folding *begin_pass(struct service *s)
{
    struct folding *f = xcalloc(1, sizeof *f);

    f->service = s;
    f->retention = (struct retention){ .days = s->config.retention_days,
                                       .runs = s->config.retention_runs,
                                       .at_once = AT_ONCE };
    return f;
}

void service_retention(struct service *s)
{
    int64_t now = clock_monotonic_ms();

    if (s->folding && s->folding->waits) {
        return;
    }
    if (s->stopping.stage != STOPPING_NOT) {
        if (s->folding) {
            end_pass(s->folding);
        }
        return;
    }
    if (s->config.retention_days == 0 || is_in_trouble(s) ||
        (!s->folding && s->folded_ms && now - s->folded_ms < AGAIN_MS)) {
        return;
    }
    if (!s->folding) {
        s->folding = begin_pass(s);
    }
    s->folding->now_ms = clock_wall_ms();
    s->folding->waits = true;
    store_write(s->store, fold, s->folding, folded);
}
