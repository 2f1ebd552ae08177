#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "api/http/handlers.h"
#include "api/http/params.h"
#include "api/http/reply.h"
#include "api/http/work.h"
#include "api/matrix_choice.h"
#include "api/render/matrix_json.h"
#include "api/render/matrix_text.h"
#include "daemon/base/clock.h"
#include "daemon/base/mem.h"

/* One rendering, and what the cache knows it by. */
struct view {
    struct matrix_choice choice;
    const struct profile_table *table;
    int64_t now_ms;
    uint64_t generation;
    char *key;
    struct matrix matrix;
    struct buf body;
    char etag[ETAG_SIZE];
};

static void view_free(void *state)
{
    struct view *view = state;

    matrix_release(&view->matrix);
    buf_release(&view->body);
    free(view->key);
    free(view);
}

static void render(struct request *r, struct view *view)
{
    struct json_out out = JSON_OUT_INIT;

    if (r->format == FORMAT_TEXT) {
        matrix_text(&view->matrix, &view->body);
    } else if (r->format == FORMAT_CSV) {
        matrix_csv(&view->matrix, &view->body);
    } else {
        matrix_json(&view->matrix, &out);
        buf_putc(&out.buf, '\n');
        view->body = out.buf;
    }
    etag_of(view->body.data, view->body.length, view->etag);
}

static enum err_code read_matrix(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct view *view = r->state;
    char id[DIGEST_TEXT_SIZE];
    enum err_code code =
        matrix_choice_environment(tx, &view->choice, &r->problems, id, err);

    if (code == ERR_OK) {
        code = matrix_read(tx, id, &view->matrix, err);
    } else if (code == ERR_NOT_FOUND) {
        matrix_settle(&view->matrix);
    }
    if (code == ERR_NOT_FOUND && view->choice.environment[0]) {
        problems_add_parameter(&r->problems, PROBLEM_UNKNOWN_ENVIRONMENT, "environment",
                               "there is no environment '%s'; see /v1/environments",
                               view->choice.environment);
    }
    if (r->problems.count > 0) {
        reply_problems(r);
        return ERR_OK;
    }
    if (code != ERR_OK && code != ERR_NOT_FOUND) {
        return code;
    }
    render(r, view);
    return ERR_OK;
}

static void share(struct request *r)
{
    struct view *view = r->state;
    size_t length;
    char *body = buf_detach(&view->body, &length);

    reply_shared(r,
                 cache_add(&r->api->cache, view->key, view->generation,
                           view->matrix.valid_until_ms, body, length, view->etag),
                 format_content_type(r->format));
}

/* Everything that decides the body, but for the store's contents and the time. */
static char *cache_key(const struct request *r, const struct view *view)
{
    const struct matrix_choice *c = &view->choice;

    return xasprintf("%d|%s|%s|%s|%s|%s|%lld", (int)r->format, view->table->id,
                     c->environment, c->device, c->subject.device, c->subject.stack,
                     (long long)c->as_of_ms);
}

void matrix_get(struct request *r)
{
    const struct profile_set *profiles = r->api->hooks.profiles(r->api->hooks.arg);
    struct view *view = xcalloc(1, sizeof *view);
    struct cached *cached;
    int64_t as_of_ms;

    request_keep(r, view, view_free);
    view->now_ms = clock_wall_ms();
    view->table = matrix_choice_table(r, profiles);
    matrix_choice_read(r, view->now_ms, &view->choice);
    if (params_refused(r)) {
        return;
    }
    as_of_ms = view->choice.as_of_ms;
    view->generation = store_generation(r->api->store);
    view->key = cache_key(r, view);
    cached = cache_find(&r->api->cache, view->key, view->generation, view->now_ms);
    if (cached) {
        reply_shared(r, cached, format_content_type(r->format));
    } else {
        matrix_init(&view->matrix, view->table,
                    r->api->hooks.catalogue(r->api->hooks.arg),
                    as_of_ms ? as_of_ms : view->now_ms, as_of_ms != 0,
                    r->api->options.stale_after_ms);
        request_read(r, read_matrix, share);
    }
}
