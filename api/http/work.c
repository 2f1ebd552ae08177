#include "api/http/work.h"
#include "api/http/reply.h"

static void suspend(struct request *r)
{
    r->api->in_store++;
    if (!r->suspended) {
        r->suspended = true;
        MHD_suspend_connection(r->connection);
    }
}

static void resume(struct request *r)
{
    if (r->suspended) {
        r->suspended = false;
        MHD_resume_connection(r->connection);
        api_kick(r->api);
    }
}

static void on_done(void *arg, const struct err *result)
{
    struct request *r = arg;

    r->api->in_store--;
    r->work = NULL;
    if (result->code != ERR_OK) {
        reply_release(&r->reply);
        reply_error(r, result);
    } else if (!r->reply.ready && r->then) {
        r->then(r);
    }
    if (r->work) {
        return; /* went on with more work */
    }
    if (!r->reply.ready) {
        reply_problem(r, PROBLEM_INTERNAL, "no reply was made");
    }
    resume(r);
}

void request_read(struct request *r, store_fn fn, void (*then)(struct request *r))
{
    struct err err = { .code = ERR_OK };

    r->then = then;
    if (store_read(r->api->store, fn, r, on_done, &err) != ERR_OK) {
        reply_error(r, &err);
        return;
    }
    r->work = fn;
    suspend(r);
}

void request_write(struct request *r, store_fn fn, void (*then)(struct request *r))
{
    r->then = then;
    r->work = fn;
    suspend(r);
    store_write(r->api->store, fn, r, on_done);
}
