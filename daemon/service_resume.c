/* What a service goes on with that the last one left: the time on record, what it found
 * damaged, open jobs, and runs that did not end. */
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/service.h"
#include "daemon/survey.h"
#include "db/cells.h"
#include "db/integrity/quarantine.h"
#include "db/jobs.h"
#include "db/runs.h"

enum { RECORD_AHEAD_MOST_MS = 48 * 3600 * 1000 };

static enum err_code lose_unfinished(struct tx *tx, void *arg, struct err *err)
{
    return runs_lose_all(tx, "the service ended while it ran", clock_wall_ms(), arg, err);
}

static void resume_job(void *arg, const struct job *job)
{
    struct service *s = arg;

    scheduler_add(s->scheduler, job);
    if (job->localise_runs) {
        localiser_add(s->localiser, job->id);
    }
    if (job->survey) {
        survey_watch_job(s->watch, job->id);
    }
}

static enum err_code read_open_jobs(struct tx *tx, void *arg, struct err *err)
{
    return jobs_each_open(tx, resume_job, arg, err);
}

static enum err_code read_latest(struct tx *tx, void *arg, struct err *err)
{
    return cells_latest(tx, arg, err);
}

/* Time goes on from what is on record, where the clock was set back by hours while no
 * service ran.  Times that lie further in the future are taken for wrong. */
static enum err_code continue_time(struct service *s, struct err *err)
{
    char text[CLOCK_RFC3339_SIZE];
    int64_t latest;

    if (store_read_sync(s->store, read_latest, &latest, err) != ERR_OK) {
        return err->code;
    }
    if (latest > clock_wall_ms()) {
        bool is_near = latest - clock_wall_ms() <= RECORD_AHEAD_MOST_MS;

        clock_rfc3339(latest, text);
        log_warning(
            "runs on record ended at %s, which is later than the clock says: %s", text,
            is_near ? "time goes on from there, at half its speed, until they agree"
                    : "their age is not known");
        clock_wall_at_least(is_near ? latest : 0);
    }
    return ERR_OK;
}

struct quarantine {
    int64_t count;
    char words[DAMAGED_WORDS_SIZE];
};

static enum err_code read_quarantine(struct tx *tx, void *arg, struct err *err)
{
    struct quarantine *q = arg;

    return quarantine_open(tx, &q->count, q->words, err);
}

/* What the last service found and nobody acknowledged. */
static enum err_code resume_quarantine(struct service *s, struct err *err)
{
    struct quarantine q;

    if (store_read_sync(s->store, read_quarantine, &q, err) == ERR_OK) {
        service_tell_quarantine(s, q.count, q.words);
    }
    return err->code;
}

enum err_code service_resume(struct service *s, struct err *err)
{
    int lost = 0;

    err->code = ERR_OK;
    if (continue_time(s, err) != ERR_OK || resume_quarantine(s, err) != ERR_OK) {
        return err->code;
    }
    if (s->reads_only) {
        return ERR_OK;
    }
    if (store_write_sync(s->store, lose_unfinished, &lost, err) != ERR_OK ||
        store_read_sync(s->store, read_open_jobs, s, err) != ERR_OK) {
        return err->code;
    }
    if (lost > 0) {
        log_warning("%d run%s of the last service ended as lost", lost,
                    lost == 1 ? "" : "s");
    }
    return ERR_OK;
}
