#include "daemon/survey.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/jobs/job_request.h"
#include "daemon/jobs/survey_jobs.h"
#include "db/jobs.h"

struct survey {
    struct survey_jobs jobs;
    char key[128]; /* idempotency key of the first: one survey a fingerprint */
    char existing[ID_SIZE];
    void (*accepted)(void *arg, const struct job *job);
    void *arg;
};

/* All in this transaction, so the first speaks for all. */
static enum err_code store_survey(struct tx *tx, void *arg, struct err *err)
{
    struct survey *s = arg;
    enum err_code code = jobs_insert(tx, &s->jobs.jobs[0], s->key, s->existing, err);

    for (int i = 1; i < s->jobs.count && code == ERR_OK && !s->existing[0]; i++) {
        char existing[ID_SIZE];

        code = jobs_insert(tx, &s->jobs.jobs[i], NULL, existing, err);
    }
    return code;
}

static void survey_stored(void *arg, const struct err *err)
{
    struct survey *s = arg;

    if (err->code != ERR_OK) {
        log_error("survey: %s", err->message);
    } else if (s->existing[0]) {
        s->accepted(s->arg, NULL);
    } else {
        for (int i = 0; i < s->jobs.count; i++) {
            log_info("survey: job %s, %d runs", s->jobs.jobs[i].id,
                     s->jobs.jobs[i].runs_total);
            s->accepted(s->arg, &s->jobs.jobs[i]);
        }
    }
    survey_jobs_release(&s->jobs);
    free(s);
}

void survey_start(struct store *store, const struct catalogue *catalogue,
                  const struct device_stack *devices, int device_count,
                  const char *fingerprint,
                  void (*accepted)(void *arg, const struct job *job), void *arg)
{
    struct survey *s = xcalloc(1, sizeof *s);
    struct problems problems = { 0 };
    enum err_code code =
        survey_jobs_make(catalogue, devices, device_count, &s->jobs, &problems);

    if (code != ERR_OK) {
        log_warning("survey: %s",
                    problems.count ? problems.items[0].detail : err_name(code));
        problems_release(&problems);
        free(s);
        return;
    }
    problems_release(&problems);
    for (int i = 0; i < s->jobs.count; i++) {
        s->jobs.jobs[i].created_ms = clock_wall_ms();
        id_new(s->jobs.jobs[i].created_ms, s->jobs.jobs[i].id);
    }
    snprintf(s->key, sizeof s->key, "survey:%s", fingerprint);
    s->accepted = accepted;
    s->arg = arg;
    store_write(store, store_survey, s, survey_stored);
}
