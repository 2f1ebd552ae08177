#include "daemon/peers/peers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "daemon/base/clock.h"
#include "daemon/base/json_in.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/config/peers.h"
#include "daemon/peers/peer_page.h"
#include "daemon/peers/pull.h"
#include "db/peers/peer_rows.h"

enum {
    BACKOFF_FIRST_MS = 1000,
    BACKOFF_MOST_MS = 600000,
    SILENT_MS = 120000,
    CAUSE_SIZE = 512
};

/* How the last pull ended. */
enum peer_state { NEW, WELL, UNREACHABLE, GARBAGE, INCOMPATIBLE, AHEAD, SAME, STORE };
static const char *const state_names[] = { "new",          "waiting",      "unreachable",
                                           "garbage",      "incompatible", "ahead",
                                           "same_service", "store" };

struct peer {
    struct peers *all;
    const json_t *config;
    const char *name;
    char *log_name;
    enum peer_state state;
    char cause[CAUSE_SIZE];
    int64_t since_ms; /* wall clock, of the state */
    int64_t next_ms, backoff_ms;
    char cursor[ID_SIZE];
    /* Of a pull that goes on. */
    struct pull *pull; /* NULL: none does */
    bool ended;        /* its command did */
    char **lines;      /* pages that came and were not looked at yet */
    int line_count;
    bool storing, resting;
    int64_t store_began_ms;
    uv_timer_t rest;
    struct peer_page page; /* while storing */
    struct peer_taken taken;
    int pages;            /* that were taken */
    bool more;            /* behind the last of them */
    bool cut;             /* the last of them: what is behind it is not to be read yet */
    bool again;           /* it has to begin anew */
    bool quiet;           /* it was ended, which is no failure */
    int anew;             /* how often on end it had to begin anew */
    enum peer_state went; /* WELL, as far as is known */
    char why[CAUSE_SIZE];
};

struct peers {
    uv_loop_t *loop;
    struct store *store;
    struct peer *list;
    int count;
    int open; /* handles and commands */
    bool closing;
    void (*closed)(void *arg);
    void *closed_arg;
};

static void advance(struct peer *peer);

int64_t peers_backoff(int64_t before_ms)
{
    int64_t next = before_ms ? before_ms * 2 : BACKOFF_FIRST_MS;

    return next < BACKOFF_MOST_MS ? next : BACKOFF_MOST_MS;
}

/* From three quarters of MS to five: peers that failed at once are not asked at once. */
static int64_t spread(int64_t ms)
{
    uint32_t drawn = 0;

    return getrandom(&drawn, sizeof drawn, GRND_NONBLOCK) == sizeof drawn
               ? ms * 3 / 4 + (int64_t)(drawn % 1024) * ms / 2048
               : ms;
}

/* The end of a pull */

static void drop_lines(struct peer *peer)
{
    for (int i = 0; i < peer->line_count; i++) {
        free(peer->lines[i]);
    }
    free(peer->lines);
    peer->lines = NULL;
    peer->line_count = 0;
}

static void set_state(struct peer *peer, enum peer_state state, const char *cause)
{
    if (peer->state != state || strcmp(peer->cause, cause) != 0) {
        if (state != WELL) {
            log_warning("peer %s: %s: %s", peer->name, state_names[state], cause);
        } else if (peer->state != NEW) {
            log_info("peer %s: it is read again", peer->name);
        }
    }
    if (peer->state != state) {
        peer->since_ms = clock_wall_ms();
    }
    peer->state = state;
    copy_text(peer->cause, sizeof peer->cause, cause);
}

static void one_closed(void *arg)
{
    struct peers *all = arg;

    if (--all->open == 0 && all->closing) {
        all->closed(all->closed_arg);
    }
}

static void conclude(struct peer *peer)
{
    int64_t now = clock_monotonic_ms();
    struct pull *pull = peer->pull;

    peer->pull = NULL;
    pull_close(pull, one_closed, peer->all);
    drop_lines(peer);
    peer->anew = peer->again ? peer->anew + 1 : 0;
    if (peer->anew > 1) { /* it would be read from the first run for ever */
        peer->went = GARBAGE;
        copy_text(peer->why, sizeof peer->why, "each time another service answers");
    }
    if (peer->went == WELL && peer->pages == 0 && !peer->again) {
        peer->went = GARBAGE;
        copy_text(peer->why, sizeof peer->why, "it printed nothing");
    }
    set_state(peer, peer->went, peer->went == WELL ? "" : peer->why);
    if (peer->went == WELL) {
        peer->backoff_ms = 0;
        peer->next_ms = peer->more || peer->again
                            ? now
                            : now + (int64_t)peers_every_seconds(peer->config) * 1000;
    } else {
        peer->backoff_ms = peers_backoff(peer->backoff_ms);
        peer->next_ms = now + spread(peer->backoff_ms);
    }
}

/* No line is looked at any more; with WELL it ends as it is. */
static void give_up(struct peer *peer, enum peer_state state, const char *why)
{
    peer->quiet = peer->quiet || state == WELL;
    if (peer->went == WELL) {
        peer->went = state;
        copy_text(peer->why, sizeof peer->why, why);
    }
    drop_lines(peer);
    if (!peer->ended) {
        pull_pause(peer->pull, false);
        pull_abort(peer->pull);
    }
}

/* A page */

static enum err_code take_page(struct tx *tx, void *arg, struct err *err)
{
    struct peer *peer = arg;

    return peers_take(tx, peer->name, &peer->page, clock_wall_ms(), &peer->taken, err);
}

static void rest_is_over(uv_timer_t *timer)
{
    struct peer *peer = timer->data;

    peer->resting = false;
    advance(peer);
}

static void log_taken(const struct peer *peer)
{
    const struct peer_taken *t = &peer->taken;

    if (t->refused > 0) {
        log_warning("peer %s: %" PRId64 " runs were refused: GET /v1/peers says why",
                    peer->name, t->refused);
    }
    if (peer->page.folded > 0) {
        log_warning("peer %s: %" PRId64
                    " runs are missing: it had folded them before they were read",
                    peer->name, peer->page.folded);
    }
    if (t->reset) {
        log_warning(
            "peer %s: it is another service now, %s: its runs are read from the "
            "first",
            peer->name, peer->page.service);
    }
}

static void page_taken(struct peer *peer)
{
    int64_t took = clock_monotonic_ms() - peer->store_began_ms;

    log_taken(peer);
    peer->again = peer->taken.reset;
    if (peer->again) {
        copy_text(peer->cursor, sizeof peer->cursor, PEER_CURSOR_FIRST);
        give_up(peer, WELL, "");
        return;
    }
    copy_text(peer->cursor, sizeof peer->cursor, peer->page.cursor);
    peer->cut = peer->page.cut;
    peer->pages++;
    peer->more = peer->page.more;
    peer->resting = true;
    uv_timer_start(&peer->rest, rest_is_over, (uint64_t)(took > 0 ? took : 0), 0);
}

static void page_stored(void *arg, const struct err *err)
{
    struct peer *peer = arg;

    peer->storing = false;
    if (peer->pull && !peer->all->closing) {
        if (err->code == ERR_OK) {
            page_taken(peer);
        } else {
            give_up(peer, err->code == ERR_UNSUPPORTED ? SAME : STORE, err->message);
        }
    }
    peer_page_release(&peer->page);
    if (peer->pull && !peer->all->closing) {
        advance(peer);
    }
}

static void read_line(struct peer *peer)
{
    char *line = peer->lines[0];
    struct err err;
    enum err_code code;

    if (peer->pages > 0 && !peer->more) {
        give_up(peer, peer->cut ? WELL : GARBAGE, "it prints on behind its last page");
        return;
    }
    memmove(peer->lines, peer->lines + 1,
            (size_t)--peer->line_count * sizeof *peer->lines);
    code = peer_page_read(line, strlen(line), peer->name, peer->cursor, clock_wall_ms(),
                          &peer->page, &err);
    free(line);
    if (code != ERR_OK) {
        peer_page_release(&peer->page);
        give_up(peer,
                code == ERR_UNSUPPORTED ? INCOMPATIBLE
                : code == ERR_BUSY      ? AHEAD
                                        : GARBAGE,
                err.message);
        return;
    }
    peer->storing = true;
    peer->store_began_ms = clock_monotonic_ms();
    store_write(peer->all->store, take_page, peer, page_stored);
}

/* Looks at the next page, reads on, or concludes. */
static void advance(struct peer *peer)
{
    if (peer->storing || peer->resting || !peer->pull) {
        return;
    }
    if (peer->line_count > 0) {
        read_line(peer);
    }
    if (peer->storing || peer->line_count > 0) {
        return;
    }
    if (peer->ended) {
        conclude(peer);
    } else {
        pull_pause(peer->pull, false);
    }
}

/* The command */

static void on_line(void *arg, const char *text, size_t length)
{
    struct peer *peer = arg;

    peer->lines = xgrow(peer->lines, peer->line_count, sizeof *peer->lines);
    peer->lines[peer->line_count++] = xstrndup(text, length);
    pull_pause(peer->pull, true);
    advance(peer);
}

static void on_ended(void *arg, const char *cause, bool too_long)
{
    struct peer *peer = arg;

    peer->ended = true;
    if (cause && peer->went == WELL && !peer->quiet) {
        peer->went = too_long ? GARBAGE : UNREACHABLE;
        copy_text(peer->why, sizeof peer->why, cause);
    }
    advance(peer);
}

static const struct pull_events events = {
    .line_max = PEER_LINE_MAX,
    .silent_ms = SILENT_MS,
    .line = on_line,
    .ended = on_ended,
};

static void start(struct peer *peer)
{
    char **argv = peers_command(peer->config, peer->cursor);
    struct err err;

    peer->ended = peer->more = peer->again = peer->quiet = false;
    peer->pages = 0;
    peer->went = WELL;
    if (pull_start(peer->all->loop, peer->log_name, argv, &events, peer, &peer->pull,
                   &err) == ERR_OK) {
        peer->all->open++;
    } else {
        peer->pull = NULL;
        set_state(peer, UNREACHABLE, err.message);
        peer->backoff_ms = peers_backoff(peer->backoff_ms);
        peer->next_ms = clock_monotonic_ms() + spread(peer->backoff_ms);
    }
    free_texts(argv);
}

void peers_tick(struct peers *peers, int64_t now_monotonic_ms)
{
    for (int i = 0; i < peers->count && !peers->closing; i++) {
        struct peer *peer = &peers->list[i];

        if (!peer->pull && !peer->storing && now_monotonic_ms >= peer->next_ms) {
            start(peer);
        }
    }
}

/* The set */

static enum err_code read_cursors(struct tx *tx, void *arg, struct err *err)
{
    struct peers *peers = arg;

    for (int i = 0; i < peers->count; i++) {
        if (peers_cursor(tx, peers->list[i].name, peers->list[i].cursor, err) != ERR_OK) {
            return err->code;
        }
    }
    return ERR_OK;
}

enum err_code peers_new(uv_loop_t *loop, struct store *store, const json_t *config,
                        struct peers **ret_peers, struct err *err)
{
    struct peers *peers = xcalloc(1, sizeof *peers);

    peers->loop = loop;
    peers->store = store;
    peers->count = (int)json_array_size(config);
    peers->list = xcalloc((size_t)peers->count + 1, sizeof *peers->list);
    for (int i = 0; i < peers->count; i++) {
        struct peer *peer = &peers->list[i];

        peer->all = peers;
        peer->config = json_array_get(config, (size_t)i);
        peer->name = in_text_or_empty(peer->config, "name");
        peer->log_name = xasprintf("peer %s", peer->name);
        peer->since_ms = clock_wall_ms();
        uv_timer_init(loop, &peer->rest);
        peer->rest.data = peer;
        peers->open++;
    }
    *ret_peers = peers;
    return store_read_sync(store, read_cursors, peers, err);
}

json_t *peers_json(const struct peers *peers)
{
    json_t *list = json_array();

    for (int i = 0; i < peers->count; i++) {
        const struct peer *peer = &peers->list[i];
        bool pulls = peer->pull && peer->state <= WELL;

        json_array_append_new(
            list, json_pack("{s:s,s:s,s:s,s:I}", "name", peer->name, "state",
                            pulls ? "pulling" : state_names[peer->state], "cause",
                            peer->cause, "since", (json_int_t)peer->since_ms));
    }
    return list;
}

static void timer_closed(uv_handle_t *handle)
{
    struct peer *peer = handle->data;

    one_closed(peer->all);
}

void peers_close(struct peers *peers, void (*closed)(void *arg), void *arg)
{
    peers->closing = true;
    peers->closed = closed;
    peers->closed_arg = arg;
    if (peers->open == 0) {
        closed(arg);
        return;
    }
    for (int i = 0; i < peers->count; i++) {
        struct peer *peer = &peers->list[i];

        if (peer->pull) {
            pull_close(peer->pull, one_closed, peers);
            peer->pull = NULL;
        }
        uv_close((uv_handle_t *)&peer->rest, timer_closed);
    }
}

void peers_free(struct peers *peers)
{
    if (!peers) {
        return;
    }
    for (int i = 0; i < peers->count; i++) {
        drop_lines(&peers->list[i]);
        peer_page_release(&peers->list[i].page);
        free(peers->list[i].log_name);
    }
    free(peers->list);
    free(peers);
}
