/* GET /v1/events: a listener gets what it has missed and joins the streams
 * (api/http/stream.h). */
#include "db/events.h"

#include <inttypes.h>
#include <stdlib.h>

#include "api/http/handlers.h"
#include "api/http/params.h"
#include "api/http/reply.h"
#include "api/http/stream.h"
#include "daemon/base/mem.h"

enum { RETRY_MS = 2000 };

/* A listener on its way into the streams. */
struct joining {
    bool returns;   /* it said what it saw last */
    int64_t seen;   /* the event it saw last */
    int64_t newest; /* what it has seen once it was sent the backlog */
    int count;      /* events in the backlog */
    bool gap;       /* the store no longer has all that it missed */
    struct buf backlog;
};

static void joining_free(void *state)
{
    struct joining *j = state;

    buf_release(&j->backlog);
    free(j);
}

static void replay(void *arg, const struct event *event)
{
    struct joining *j = arg;

    j->gap |= event->id != j->newest + 1;
    j->newest = event->id;
    if (j->count++ < STREAM_REPLAY_EVENTS) {
        stream_format(&j->backlog, event);
    }
}

static enum err_code read_missed(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct joining *j = r->state;
    int64_t last;

    if (events_last(tx, &last, err) != ERR_OK) {
        return err->code;
    }
    j->newest = j->returns ? j->seen : last;
    j->gap = j->newest > last;
    if (j->returns && !j->gap &&
        events_each(tx, j->seen, STREAM_REPLAY_EVENTS + 1, replay, j, err) != ERR_OK) {
        return err->code;
    }
    if (j->gap || j->count > STREAM_REPLAY_EVENTS) {
        j->newest = last;
        buf_release(&j->backlog);
        buf_printf(&j->backlog, "id: %" PRId64 "\nevent: reset\ndata: {}\n\n", last);
    }
    return ERR_OK;
}

static bool refuse_more(struct request *r)
{
    int listeners = r->api->streams.count;

    if (!r->api->quiescing && listeners < STREAM_CLIENTS_MAX) {
        return false;
    }
    reply_problem(r, PROBLEM_BUSY, "there are %d listeners already", listeners);
    return true;
}

/* Others may have joined meanwhile. */
static void join(struct request *r)
{
    struct joining *j = r->state;
    struct buf hello = BUF_INIT;

    if (refuse_more(r)) {
        return;
    }
    /* The empty event tells the client where it stands, so that it misses nothing even if
     * the connection breaks before the first event. */
    buf_printf(&hello, "retry: %d\nid: %" PRId64 "\n\n", RETRY_MS,
               j->returns && j->count > 0 && !j->gap ? j->seen : j->newest);
    if (j->backlog.length > 0) {
        buf_add(&hello, j->backlog.data, j->backlog.length);
    }
    reply_stream(r, stream_join(&r->api->streams, r->connection, j->newest, &hello),
                 "text/event-stream");
}

void events_get(struct request *r)
{
    const char *last = request_header(r, "Last-Event-ID");
    struct joining *j = xcalloc(1, sizeof *j);

    request_keep(r, j, joining_free);
    if (refuse_more(r)) {
        return;
    }
    if (last && *last) {
        j->returns = true;
        j->seen = parse_event_id(last);
        if (j->seen < 0) {
            reply_problem(r, PROBLEM_BAD_REQUEST, "Last-Event-ID must be a number");
            return;
        }
    }
    request_read(r, read_missed, join);
}
