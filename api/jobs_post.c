/* POST /v1/jobs and /v1/jobs/{id}/rerun: a request becomes a job, is stored, and only
 * then answered. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/http/handlers.h"
#include "api/http/params.h"
#include "api/http/reply.h"
#include "api/job_refusal.h"
#include "api/render/nouns_json.h"
#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "daemon/jobs/expand.h"
#include "db/jobs.h"

/* A job on its way into the store. */
struct submission {
    struct api *api;
    struct job job;
    int reserved; /* items that count as open until it is known whether they are */
    char key[IDEMPOTENCY_KEY_SIZE]; /* Idempotency-Key; "" if none was given */
    char existing[ID_SIZE]; /* the job that the key made before; "" for a new one */
};

static void settle(struct submission *s)
{
    s->api->items_reserved -= s->reserved;
    s->reserved = 0;
}

static void submission_free(void *state)
{
    struct submission *s = state;

    settle(s);
    job_release(&s->job);
    free(s);
}

static enum err_code insert(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct submission *s = r->state;
    enum err_code code =
        jobs_insert(tx, &s->job, s->key[0] ? s->key : NULL, s->existing, err);

    if (code == ERR_CONFLICT) {
        reply_problem(r, PROBLEM_IDEMPOTENCY, "%s", err->message);
        return ERR_OK;
    }
    if (code == ERR_OK && s->existing[0]) {
        job_release(&s->job);
        s->job = (struct job){ .state = JOB_QUEUED };
        code = jobs_get(tx, s->existing, &s->job, err);
    }
    return code;
}

static void inserted(struct request *r)
{
    const struct api_hooks *hooks = &r->api->hooks;
    struct submission *s = r->state;
    bool fresh = !s->existing[0];
    struct json_out out = JSON_OUT_INIT;

    settle(s);
    if (fresh) {
        hooks->job_accepted(hooks->arg, &s->job);
    } else {
        reply_header(r, "Idempotent-Replay", "true");
    }
    job_json(&out, NULL, &s->job, hooks->job_eta_ms(hooks->arg, s->job.id));
    reply_header(r, "Location", "/v1/jobs/%s", s->job.id);
    r->format = FORMAT_JSON;
    reply_json(r, fresh ? MHD_HTTP_CREATED : MHD_HTTP_OK, &out);
}

/* What is open is in memory.  False after having replied. */
static bool has_room(struct request *r)
{
    const struct api_hooks *hooks = &r->api->hooks;
    struct submission *s = r->state;
    int64_t open = hooks->open_items(hooks->arg) + r->api->items_reserved;
    int limit = r->api->options.open_items_limit;

    if (open + s->job.item_count <= limit) {
        s->reserved = s->job.item_count;
        r->api->items_reserved += s->reserved;
        return true;
    }
    reply_problem(r, PROBLEM_TOO_MANY,
                  "the open jobs have %" PRId64
                  " items, this one has %d, and together "
                  "they may have %d (open_items_limit): wait until one has finished, or "
                  "cancel one",
                  open, s->job.item_count, limit);
    return false;
}

/* Expands REQUEST and stores the job. */
static void submit(struct request *r, const json_t *request)
{
    const struct api_hooks *hooks = &r->api->hooks;
    const struct catalogue *catalogue = hooks->catalogue(hooks->arg);
    struct submission *s = r->state;
    const struct device_stack *devices;
    int device_count;

    if (!catalogue) {
        reply_problem(r, PROBLEM_NOT_READY, "no agent has said yet what it can run");
        return;
    }
    device_count = hooks->devices(hooks->arg, &devices);
    if (job_request_expand(request, catalogue, devices, device_count, &s->job,
                           &r->problems) != ERR_OK) {
        refuse_job(r);
        return;
    }
    if (!has_room(r)) {
        return;
    }
    s->job.created_ms = clock_wall_ms();
    id_new(s->job.created_ms, s->job.id);
    request_write(r, insert, inserted);
}

/* Keeps a fresh submission with the request's key; false after having replied. */
static bool keep_submission(struct request *r)
{
    struct submission *s = xcalloc(1, sizeof *s);

    s->api = r->api;
    request_keep(r, s, submission_free);
    return read_idempotency_key(r, s->key);
}

void jobs_post(struct request *r)
{
    json_t *body;

    if (!keep_submission(r)) {
        return;
    }
    body = body_json(r);
    if (body) {
        submit(r, body);
        json_decref(body);
    }
}

static enum err_code read_original(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct submission *s = r->state;

    return jobs_get(tx, r->arguments[0], &s->job, err);
}

static void submit_again(struct request *r)
{
    struct submission *s = r->state;
    json_t *request = json_loads(s->job.request ? s->job.request : "", 0, NULL);

    job_release(&s->job);
    s->job = (struct job){ .state = JOB_QUEUED };
    if (!request) {
        reply_problem(r, PROBLEM_INTERNAL, "the request of job %s cannot be read",
                      r->arguments[0]);
        return;
    }
    submit(r, request);
    json_decref(request);
}

void jobs_rerun(struct request *r)
{
    if (!keep_submission(r)) {
        return;
    }
    if (r->body.length > 0) {
        reply_problem(r, PROBLEM_INVALID,
                      "a rerun repeats the job's own request: send no body");
    } else {
        request_read(r, read_original, submit_again);
    }
}
