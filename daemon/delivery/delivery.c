#include "daemon/delivery/delivery.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/delivery/sending.h"
#include "daemon/delivery/trust.h"
#include "daemon/webhooks/retry.h"
#include "db/webhooks/deliveries.h"
#include "db/webhooks/outbox.h"
#include "db/webhooks/webhooks.h"

enum {
    GAP_MS = 50,        /* between two looks: many commits, one look */
    IDLE_MS = 60 * 1000 /* without a reason to look: the clock may have been set */
};

/* A try that is going on. */
struct attempt {
    struct delivery *delivery;
    struct receiver *receiver;
    struct sending *sending; /* NULL: its end is being stored */
    struct delivery_try ended;
};

/* What is known of a webhook beyond the database.  It stays where it is while a try is
 * going on. */
struct receiver {
    char id[ID_SIZE];
    char name[WEBHOOK_NAME_SIZE];
    struct attempt *attempt; /* NULL: none is going on */
    int failures;            /* in a row */
    int64_t held_ms;         /* nothing is sent before, monotonic */
    bool fails;              /* on record, by a try of this process … */
    bool failed;             /* … and did when the look began */
    bool listed;
};

/* What the store said last. */
struct look {
    struct delivery *delivery;
    int64_t after, last, now_ms;
    bool found; /* events that are to be taken */
    struct webhook webhooks[WEBHOOKS_MAX];
    int count;
    struct due {
        struct delivery_row row;
        char *body;
        int64_t next_ms;
    } due[WEBHOOKS_MAX];
    char busy[WEBHOOKS_MAX][ID_SIZE]; /* of which nothing is asked */
    int busy_count;
};

struct delivery {
    struct delivery_options options;
    uv_timer_t timer;
    int64_t wake_ms;            /* monotonic, of the timer */
    struct webhook *configured; /* their secrets are nowhere else */
    int configured_count;
    int64_t configure_ms; /* they are to be stored once more, monotonic; 0: they are */
    struct networks allowed;
    struct receiver *receivers[WEBHOOKS_MAX];
    int receiver_count;
    int64_t seen; /* up to this event nothing is to be taken */
    bool none;    /* there is no webhook: events are nobody's */
    bool started, stopped, looking, dirty;
    struct trust trust;
};

static void look(struct delivery *d);

static void on_timer(uv_timer_t *timer)
{
    struct delivery *d = timer->data;

    d->wake_ms = INT64_MAX;
    look(d);
}

static void wake_in(struct delivery *d, int64_t ms)
{
    int64_t at = clock_monotonic_ms() + ms;

    if (!d->stopped && at < d->wake_ms) {
        d->wake_ms = at;
        uv_timer_start(&d->timer, on_timer, (uint64_t)ms, 0);
    }
}

static void trust_was_read(void *arg)
{
    delivery_changed(arg, true);
}

struct delivery *delivery_new(const struct delivery_options *options)
{
    struct delivery *d = xcalloc(1, sizeof *d);

    d->options = *options;
    d->wake_ms = INT64_MAX;
    uv_timer_init(options->loop, &d->timer);
    d->timer.data = d;
    d->trust = (struct trust){ .loop = options->loop,
                               .ca_file = options->ca_file,
                               .read = trust_was_read,
                               .arg = d };
    return d;
}

void delivery_free(struct delivery *d)
{
    if (d) {
        for (int i = 0; i < d->receiver_count; i++) {
            free(d->receivers[i]->attempt);
            free(d->receivers[i]);
        }
        trust_release(&d->trust);
        free(d->configured);
        free(d);
    }
}

void delivery_changed(struct delivery *d, bool list)
{
    if (d->started && (list || !d->none)) {
        d->none = false;
        d->dirty = true;
        if (!d->looking) {
            wake_in(d, GAP_MS);
        }
    }
}

/* The configuration */

struct configuring {
    struct delivery *delivery;
    struct webhook *list;
    int count;
    int64_t now_ms, dropped;
};

static enum err_code store_configured(struct tx *tx, void *arg, struct err *err)
{
    struct configuring *c = arg;

    return webhooks_configure(tx, c->list, c->count, c->now_ms, &c->dropped, err) ==
                   ERR_OK
               ? deliveries_settle(tx, c->now_ms, err)
               : err->code;
}

static void configured(void *arg, const struct err *result)
{
    struct configuring *c = arg;

    c->delivery->configure_ms = 0;
    if (result->code != ERR_OK) {
        log_error(
            "webhooks of the configuration: %s; they are as before until that is "
            "over",
            result->message);
        c->delivery->configure_ms = clock_monotonic_ms() + IDLE_MS;
    } else if (c->dropped) {
        log_warning("webhooks: %" PRId64
                    " deliveries waited for webhooks that the configuration has no more",
                    c->dropped);
    }
    c->delivery->started = true;
    delivery_changed(c->delivery, true);
    free(c->list);
    free(c);
}

static void store_configuration(struct delivery *d)
{
    struct configuring *c = xcalloc(1, sizeof *c);
    size_t count = (size_t)d->configured_count;

    d->configure_ms = 0;
    c->delivery = d;
    c->list = xcalloc(count + 1, sizeof *c->list);
    c->count = d->configured_count;
    c->now_ms = clock_wall_ms();
    memcpy(c->list, d->configured, count * sizeof *c->list);
    store_write(d->options.store, store_configured, c, configured);
}

void delivery_configure(struct delivery *d, const struct webhook *list, int count,
                        const struct networks *allowed)
{
    free(d->configured);
    d->configured = xcalloc((size_t)count + 1, sizeof *list);
    d->configured_count = count;
    d->allowed = *allowed;
    if (count) {
        memcpy(d->configured, list, (size_t)count * sizeof *list);
    }
    store_configuration(d);
}

/* How tries end */

static enum err_code store_ended(struct tx *tx, void *arg, struct err *err)
{
    struct attempt *a = arg;

    return deliveries_tried(tx, &a->ended, err);
}

static uint64_t random_number(void)
{
    uint64_t number = 0;

    return getrandom(&number, sizeof number, GRND_NONBLOCK) == (ssize_t)sizeof number
               ? number
               : (uint64_t)clock_monotonic_ns();
}

static void tell(const struct attempt *a, const struct receiver *r)
{
    const struct delivery_try *t = &a->ended;

    if (t->disabled) {
        log_error(
            "webhook %s: the receiver said 410 Gone: nothing is sent there until "
            "the webhook is resumed",
            r->name);
    } else if (t->dead || t->given_up) {
        log_error("webhook %s: %" PRId64
                  " deliver%s given up: dead letters, which can be "
                  "replayed; the last one failed: %s",
                  r->name, t->given_up + t->dead,
                  t->given_up + t->dead == 1 ? "y was" : "ies were", t->cause);
    } else if (t->cause[0] && r->failures == 1) {
        log_warning("webhook %s: a delivery failed and is tried again: %s", r->name,
                    t->cause);
    }
}

static void ended_stored(void *arg, const struct err *result)
{
    struct attempt *a = arg;
    struct delivery *d = a->delivery;
    struct receiver *r = a->receiver;
    bool delivered = result->code == ERR_OK && retry_delivered(a->ended.status);

    r->attempt = NULL;
    if (result->code != ERR_OK) {
        log_error(
            "webhook %s: how a delivery ended could not be stored, so it is sent "
            "again: %s",
            r->name, result->message);
    }
    if (delivered && r->failures) {
        log_info("webhook %s: deliveries arrive again", r->name);
    }
    r->failures = delivered ? 0 : r->failures + 1;
    r->held_ms = 0;
    r->fails = r->failed = false;
    if (!delivered) {
        int64_t hold = retry_hold_ms(r->failures, WEBHOOK_RETRY_MS, a->ended.random);

        hold = result->code == ERR_OK ? a->ended.hold_ms : hold;
        r->fails = result->code == ERR_OK;
        r->held_ms = clock_monotonic_ms() + hold;
    }
    if (result->code == ERR_OK) {
        tell(a, r);
    }
    free(a);
    delivery_changed(d, true);
}

static void sent(void *arg, const struct sending_result *result)
{
    struct attempt *a = arg;
    struct delivery_try *t = &a->ended;
    int64_t system_ms = clock_wall_ms() + clock_wall_ahead_ms();

    a->sending = NULL;
    t->now_ms = clock_wall_ms();
    t->status = result->head.status;
    t->random = random_number();
    if (!retry_delivered(t->status)) {
        t->retry_after_ms = retry_after_ms(result->head.retry_after, system_ms);
        if (t->status) {
            snprintf(t->cause, sizeof t->cause, "it answered %d", t->status);
        } else {
            copy_text(t->cause, sizeof t->cause, result->cause);
        }
        t->failures = a->receiver->failures + 1;
        t->hold_ms = retry_hold_ms(t->failures, t->hold_ms, t->random);
        t->hold_ms = t->retry_after_ms > t->hold_ms ? t->retry_after_ms : t->hold_ms;
    }
    store_write(a->delivery->options.store, store_ended, a, ended_stored);
}

/* Sending */

/* The authorities are read again for the next try. */
static void fail_for_trust(struct attempt *a)
{
    struct sending_result result = { .cause = "" };

    snprintf(result.cause, sizeof result.cause, "TLS: %.200s",
             a->delivery->trust.err.message);
    trust_forget_failure(&a->delivery->trust);
    sent(a, &result);
}

static const char *secret_of(const struct delivery *d, const struct webhook *w)
{
    for (int i = 0; w->configured && i < d->configured_count; i++) {
        if (strcmp(d->configured[i].name, w->name) == 0) {
            return d->configured[i].secret;
        }
    }
    return w->secret;
}

/* False: not now. */
static bool start(struct delivery *d, struct receiver *r, const struct webhook *w,
                  const struct due *due)
{
    struct sending_request request = { .body = due->body, .timeout_ms = w->timeout_ms };
    const char *secret = secret_of(d, w);
    struct buf headers = BUF_INIT;
    struct attempt *a;

    /* Both were checked; a configuration that is being taken over may have no secret. */
    if (url_read(w->url, &request.url) || secret_check(secret) ||
        (request.url.tls && !trust_is_known(&d->trust))) {
        return false;
    }
    request.allowed = d->allowed;
    request.trust = d->trust.tls;
    webhook_headers(&headers, secret, due->row.message,
                    (clock_wall_ms() + clock_wall_ahead_ms()) / 1000, due->body);
    request.headers = headers.data;
    a = xcalloc(1, sizeof *a);
    a->delivery = d;
    a->receiver = r;
    a->ended.delivery = due->row.number;
    a->ended.hold_ms = w->retry_ms;
    copy_text(a->ended.webhook, sizeof a->ended.webhook, w->id);
    r->attempt = a;
    if (request.url.tls && !d->trust.tls) {
        fail_for_trust(a);
    } else {
        a->sending = sending_start(d->options.loop, &request, sent, a);
    }
    buf_release(&headers);
    return true;
}

/* Looking */

static bool is_busy(const struct look *l, const char *id)
{
    for (int i = 0; i < l->busy_count; i++) {
        if (strcmp(l->busy[i], id) == 0) {
            return true;
        }
    }
    return false;
}

static enum err_code read_look(struct tx *tx, void *arg, struct err *err)
{
    struct look *l = arg;
    enum err_code code = outbox_look(tx, l->after, &l->found, &l->last, err);

    if (code == ERR_OK) {
        code = webhooks_list(tx, false, l->webhooks, &l->count, err);
    }
    for (int i = 0; i < l->count && code == ERR_OK; i++) {
        const struct webhook *w = &l->webhooks[i];
        struct due *due = &l->due[i];

        if (!w->paused && !w->disabled[0] && !is_busy(l, w->id)) {
            code = deliveries_due(tx, w->id, l->now_ms, &due->row, &due->body,
                                  &due->next_ms, err);
        }
    }
    return code;
}

static struct receiver *receiver_of(struct delivery *d, const struct webhook *w)
{
    struct receiver *r = NULL;

    for (int i = 0; i < d->receiver_count; i++) {
        if (strcmp(d->receivers[i]->id, w->id) == 0) {
            r = d->receivers[i];
        }
    }
    if (!r && d->receiver_count < WEBHOOKS_MAX) {
        r = xcalloc(1, sizeof *r);
        copy_text(r->id, sizeof r->id, w->id);
        d->receivers[d->receiver_count++] = r;
    }
    if (r) {
        r->listed = true;
        copy_text(r->name, sizeof r->name, w->name);
    }
    return r;
}

/* Those that are deleted stay until their try has ended. */
static void forget_others(struct delivery *d)
{
    int kept = 0;

    for (int i = 0; i < d->receiver_count; i++) {
        struct receiver *r = d->receivers[i];

        if (r->listed || r->attempt) {
            r->listed = false;
            d->receivers[kept++] = r;
        } else {
            free(r);
        }
    }
    d->receiver_count = kept;
}

static void take_due(struct delivery *d, const struct look *l)
{
    for (int i = 0; i < l->count; i++) {
        const struct due *due = &l->due[i];
        struct receiver *r = receiver_of(d, &l->webhooks[i]);

        if (!r || r->attempt || (!due->row.number && !due->next_ms)) {
            continue;
        }
        if (!due->row.number) {
            wake_in(d, due->next_ms - l->now_ms + 1);
        } else if (!start(d, r, &l->webhooks[i], due)) {
            wake_in(d, IDLE_MS);
        }
    }
}

/* Events on their way to be deliveries. */
struct taking {
    struct delivery *delivery;
    int64_t last;
    bool more;
};

static enum err_code take_events(struct tx *tx, void *arg, struct err *err)
{
    struct taking *t = arg;

    return outbox_take(tx, clock_wall_ms(), &t->more, err);
}

static void taken(void *arg, const struct err *result)
{
    struct taking *t = arg;
    struct delivery *d = t->delivery;

    d->looking = false;
    if (result->code != ERR_OK) {
        log_error("webhooks: %s", result->message);
        wake_in(d, WEBHOOK_RETRY_MS);
    } else {
        d->seen = t->more ? d->seen : t->last;
        delivery_changed(d, true);
    }
    free(t);
}

static void take_found(struct delivery *d, int64_t last)
{
    struct taking *t = xcalloc(1, sizeof *t);

    d->looking = true;
    t->delivery = d;
    t->last = last;
    store_write(d->options.store, take_events, t, taken);
}

/* One that was left alone, and by its record does not fail any more, was resumed, or has
 * another URL: it begins anew. */
static void begin_resumed(struct delivery *d, const struct look *l)
{
    for (int i = 0; i < l->count; i++) {
        struct receiver *r = receiver_of(d, &l->webhooks[i]);

        if (r && r->failed && !r->attempt && !l->webhooks[i].failing_ms) {
            r->fails = r->failed = false;
            r->failures = 0;
            r->held_ms = 0;
            d->dirty = true;
        }
    }
}

static void use(struct delivery *d, const struct look *l)
{
    begin_resumed(d, l);
    d->none = l->count == 0 && !d->dirty;
    take_due(d, l);
    forget_others(d);
    if (l->found && l->count > 0) {
        take_found(d, l->last);
    } else {
        d->seen = l->last;
        wake_in(d, d->dirty ? GAP_MS : IDLE_MS);
    }
}

static void looked(void *arg, const struct err *result)
{
    struct look *l = arg;
    struct delivery *d = l->delivery;

    d->looking = false;
    if (result->code != ERR_OK && !d->stopped) {
        log_error("webhooks: %s", result->message);
        wake_in(d, WEBHOOK_RETRY_MS);
    } else if (!d->stopped) {
        use(d, l);
    }
    for (int i = 0; i < l->count; i++) {
        free(l->due[i].body);
    }
    free(l);
}

static void look(struct delivery *d)
{
    int64_t now = clock_monotonic_ms();
    struct look *l;
    struct err err;

    if (d->looking || d->stopped || !d->started) {
        return;
    }
    if (d->configure_ms && now >= d->configure_ms) {
        store_configuration(d);
    }
    l = xcalloc(1, sizeof *l);
    d->dirty = false;
    d->looking = true;
    l->delivery = d;
    l->after = d->seen;
    l->now_ms = clock_wall_ms();
    for (int i = 0; i < d->receiver_count; i++) {
        struct receiver *r = d->receivers[i];

        r->failed = r->fails;
        if (r->attempt || r->held_ms > now) {
            copy_text(l->busy[l->busy_count++], ID_SIZE, r->id);
        }
        if (!r->attempt && r->held_ms > now) {
            wake_in(d, r->held_ms - now);
        }
    }
    if (store_read(d->options.store, read_look, l, looked, &err) != ERR_OK) {
        d->looking = false;
        free(l);
        wake_in(d, WEBHOOK_RETRY_MS);
    }
}

void delivery_stop(struct delivery *d)
{
    if (d->stopped) {
        return;
    }
    d->stopped = true;
    for (int i = 0; i < d->receiver_count; i++) {
        struct attempt *a = d->receivers[i]->attempt;

        if (a && a->sending) {
            sending_abort(a->sending);
            a->sending = NULL;
            d->receivers[i]->attempt = NULL;
            free(a);
        }
    }
    uv_close((uv_handle_t *)&d->timer, NULL);
}
