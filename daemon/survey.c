#include "daemon/survey.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/job_request.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"

struct survey {
    struct job job;
    char key[128]; /* idempotency key: one survey a fingerprint */
    char existing[ID_SIZE];
    void (*accepted)(void *arg, const struct job *job);
    void *arg;
};

static enum err_code store_survey(struct tx *tx, void *arg, struct err *err)
{
    struct survey *s = arg;

    return jobs_insert(tx, &s->job, s->key, s->existing, err);
}

static void survey_stored(void *arg, const struct err *err)
{
    struct survey *s = arg;

    if (err->code != ERR_OK) {
        log_error("survey: %s", err->message);
    } else if (s->existing[0]) {
        s->accepted(s->arg, NULL);
    } else {
        log_info("survey: job %s, %d runs", s->job.id, s->job.runs_total);
        s->accepted(s->arg, &s->job);
    }
    job_release(&s->job);
    free(s);
}

void survey_start(struct store *store, const struct catalogue *catalogue,
                  const struct api_device *devices, int device_count,
                  const char *fingerprint,
                  void (*accepted)(void *arg, const struct job *job), void *arg)
{
    struct survey *s = xcalloc(1, sizeof *s);
    struct problems problems = { 0 };
    json_t *request = json_pack("{s:b}", "survey", 1);
    enum err_code code =
        job_request_expand(request, catalogue, devices, device_count, &s->job, &problems);

    json_decref(request);
    if (code != ERR_OK) {
        log_warning("survey: %s",
                    problems.count ? problems.items[0].detail : err_name(code));
        problems_release(&problems);
        free(s);
        return;
    }
    problems_release(&problems);
    s->job.created_ms = clock_wall_ms();
    id_new(s->job.created_ms, s->job.id);
    snprintf(s->key, sizeof s->key, "survey:%s", fingerprint);
    s->accepted = accepted;
    s->arg = arg;
    store_write(store, store_survey, s, survey_stored);
}
