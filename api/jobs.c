/* GET and DELETE of /v1/jobs: the list, one job with its items, cancelling. */
#include <stdlib.h>
#include <string.h>

#include "api/http/handlers.h"
#include "api/http/page.h"
#include "api/http/params.h"
#include "api/http/reply.h"
#include "api/render/nouns_json.h"
#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "db/jobs.h"

static int64_t eta_of(const struct request *r, const char *id)
{
    return r->api->hooks.job_eta_ms(r->api->hooks.arg, id);
}

/* One page of the list: read, completed with what only the loop knows, then written. */
struct list {
    struct page page;
    char before[ID_SIZE];
    bool requested; /* without background evidence */
    int count;
    struct job jobs[PARAM_LIMIT_MAX + 1];
    int64_t eta_ms[PARAM_LIMIT_MAX + 1];
};

static void release_jobs(void *state)
{
    struct list *list = state;

    for (int i = 0; i < list->count; i++) {
        job_release(&list->jobs[i]);
    }
}

static void take_job(void *arg, const struct job *job)
{
    struct list *list = arg;
    struct job *copy = &list->jobs[list->count++];

    *copy = *job;
    copy->request = job->request ? xstrdup(job->request) : NULL;
    copy->localisation = job->localisation ? xstrdup(job->localisation) : NULL;
    copy->items = NULL;
    copy->item_count = 0;
}

static enum err_code read_page(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct list *list = r->state;

    return jobs_list(tx, list->before, list->requested, page_rows(&list->page), take_job,
                     list, err);
}

static enum err_code write_page(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct list *list = r->state;
    struct json_out *out = &list->page.out;

    (void)tx;
    (void)err;
    list_open(out);
    for (int i = 0; i < list->count; i++) {
        if (page_takes(&list->page, "%s", list->jobs[i].id)) {
            job_json(out, NULL, &list->jobs[i], list->eta_ms[i]);
        }
    }
    page_reply(r, &list->page);
    return ERR_OK;
}

static void add_etas(struct request *r)
{
    struct list *list = r->state;

    for (int i = 0; i < list->count; i++) {
        bool open = list->jobs[i].finished_ms == 0;

        list->eta_ms[i] = open ? eta_of(r, list->jobs[i].id) : -1;
    }
    request_read(r, write_page, NULL);
}

void jobs_get_list(struct request *r)
{
    struct list *list = page_new(r, sizeof *list, 'j');

    list->page.release = release_jobs;
    param_cursor_id(r, 'j', list->before);
    list->requested = param_value(r, "background") != NULL;
    if (!params_refused(r)) {
        request_read(r, read_page, add_etas);
    }
}

/* One job, read or cancelled. */
struct one {
    int64_t eta_ms;
    json_t *waits, *known; /* as job_json_with_items has them; NULL: it is cancelled */
    struct job job;
};

static void one_free(void *state)
{
    struct one *one = state;

    job_release(&one->job);
    json_decref(one->waits);
    json_decref(one->known);
    free(one);
}

static struct one *keep_one(struct request *r)
{
    struct one *one = xcalloc(1, sizeof *one);

    request_keep(r, one, one_free);
    return one;
}

static enum err_code read_one(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct one *one = r->state;
    struct json_out out = JSON_OUT_INIT;

    if (jobs_get(tx, r->arguments[0], &one->job, err) != ERR_OK) {
        return err->code;
    }
    job_json_with_items(&out, &one->job, one->eta_ms, one->waits, one->known);
    reply_json(r, 200, &out);
    return ERR_OK;
}

/* The keys are the devices that hosts have.  New reference. */
static json_t *known_now(struct api *api)
{
    const struct device_stack *devices;
    int count = api->hooks.devices(api->hooks.arg, &devices);
    json_t *known = json_object();

    for (int d = 0; d < count; d++) {
        json_object_set_new(known, devices[d].id, json_true());
    }
    return known;
}

/* What runs on each device would wait for. */
static json_t *waits_now(struct api *api)
{
    const struct device_stack *devices;
    int count = api->hooks.devices(api->hooks.arg, &devices);
    json_t *foreign = api->hooks.foreign(api->hooks.arg), *waits = json_array(), *each;
    size_t i;

    json_array_foreach(foreign, i, each)
    {
        if (json_is_true(json_object_get(each, "waits"))) {
            char *list = json_dumps(json_object_get(each, "processes"), JSON_ENCODE_ANY);

            json_array_append_new(
                waits, json_pack("{s:O,s:o}", "device", json_object_get(each, "device"),
                                 "text", json_sprintf("is used by others: %s", list)));
            free(list);
        }
    }
    json_decref(foreign);
    for (int d = 0; d < count; d++) {
        if (devices[d].is_default && devices[d].state &&
            strcmp(devices[d].state, "online") != 0) {
            json_array_append_new(
                waits, json_pack("{s:s,s:o}", "device", devices[d].id, "text",
                                 json_sprintf("is %s, on host %s: %s", devices[d].state,
                                              devices[d].host, devices[d].cause)));
        }
    }
    return waits;
}

void jobs_get_one(struct request *r)
{
    struct one *one = keep_one(r);

    one->eta_ms = eta_of(r, r->arguments[0]);
    one->waits = waits_now(r->api);
    one->known = known_now(r->api);
    request_read(r, read_one, NULL);
}

static enum err_code cancel_one(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct one *one = r->state;

    if (jobs_cancel(tx, r->arguments[0], clock_wall_ms(), err) != ERR_OK) {
        return err->code;
    }
    return jobs_get(tx, r->arguments[0], &one->job, err);
}

static void cancelled(struct request *r)
{
    struct one *one = r->state;
    struct json_out out = JSON_OUT_INIT;

    r->api->hooks.job_cancelled(r->api->hooks.arg, one->job.id);
    job_json(&out, NULL, &one->job, -1);
    reply_json(r, 200, &out);
}

void jobs_delete(struct request *r)
{
    keep_one(r);
    request_write(r, cancel_one, cancelled);
}
