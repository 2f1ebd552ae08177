#include "daemon/notices.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/health.h"
#include "daemon/base/log.h"
#include "daemon/base/lookup.h"
#include "daemon/base/mem.h"
#include "daemon/jobs/case.h"
#include "db/webhooks/notices.h"

struct seen {
    char name[CASE_TITLE_SIZE];
    bool heard;      /* since the start */
    bool lost;       /* as it was told */
    bool telling;    /* it is being stored */
    int64_t away_ms; /* since when it is, monotonic; 0: it is not */
};

struct notices {
    struct store *store;
    struct seen **hosts;
    int count;
    struct lookup of_name; /* of these */
    bool reading, read;    /* what was told before the start */
    bool damaged;          /* as it was told */
    bool telling;          /* it is being stored */
    bool failing;          /* what was told last could not be stored */
};

struct notice {
    struct notices *notices;
    char host[CASE_TITLE_SIZE]; /* "": of the database */
    char cause[HEALTH_CAUSE_SIZE];
    int64_t now_ms;
};

struct notices *notices_new(struct store *store)
{
    struct notices *n = xcalloc(1, sizeof *n);

    n->store = store;
    return n;
}

void notices_free(struct notices *n)
{
    for (int i = 0; n && i < n->count; i++) {
        free(n->hosts[i]);
    }
    if (n) {
        lookup_release(&n->of_name);
        free(n->hosts);
        free(n);
    }
}

static struct seen *find(struct notices *n, const char *name)
{
    struct seen *seen = lookup_get(&n->of_name, name);

    if (!seen) {
        n->hosts = xgrow(n->hosts, n->count, sizeof(struct seen *));
        seen = n->hosts[n->count++] = xcalloc(1, sizeof *seen);
        copy_text(seen->name, sizeof seen->name, name);
        lookup_put(&n->of_name, seen->name, seen);
    }
    return seen;
}

static enum err_code store_notice(struct tx *tx, void *arg, struct err *err)
{
    const struct notice *notice = arg;
    const char *cause = notice->cause[0] ? notice->cause : NULL;

    return notice->host[0] ? notices_host(tx, notice->host, cause, notice->now_ms, err)
                           : notices_database(tx, cause, notice->now_ms, err);
}

/* What could not be stored was not told: the next tick tells it, if it is still so. */
static void notice_stored(void *arg, const struct err *result)
{
    struct notice *notice = arg;
    struct notices *n = notice->notices;
    struct seen *seen = notice->host[0] ? find(n, notice->host) : NULL;
    bool *telling = seen ? &seen->telling : &n->telling;
    bool *told = seen ? &seen->lost : &n->damaged;

    *telling = false;
    if (result->code != ERR_OK) {
        *told = !*told;
        if (!n->failing) {
            log_error("events: %s", result->message);
        }
    }
    n->failing = result->code != ERR_OK;
    free(notice);
}

/* SEEN: a host; NULL: of the database. */
static void tell(struct notices *n, struct seen *seen, const char *cause, int64_t now_ms)
{
    struct notice *notice = xcalloc(1, sizeof *notice);
    bool *telling = seen ? &seen->telling : &n->telling;
    bool *told = seen ? &seen->lost : &n->damaged;

    *telling = true;
    *told = !*told;
    notice->notices = n;
    copy_text(notice->host, sizeof notice->host, seen ? seen->name : "");
    copy_text(notice->cause, sizeof notice->cause, cause);
    notice->now_ms = now_ms;
    store_write(n->store, store_notice, notice, notice_stored);
}

static void take_lost(void *arg, const char *host)
{
    struct notices *n = arg;

    find(n, host)->lost = true;
}

static enum err_code read_lost(struct tx *tx, void *arg, struct err *err)
{
    struct notices *n = arg;

    return notices_each_lost(tx, take_lost, n, err) == ERR_OK
               ? notices_damaged(tx, &n->damaged, err)
               : err->code;
}

static void lost_were_read(void *arg, const struct err *result)
{
    struct notices *n = arg;

    n->reading = false;
    n->read = result->code == ERR_OK;
}

/* HOST should have an agent, and has none.  One that is started has had none to lose:
 * while it is tried again, it is offline. */
static bool is_away(const struct presence_host *host)
{
    const char *state = host->state;

    return !host->online && strcmp(state, "released") != 0 &&
           strcmp(state, "waiting") != 0 && strcmp(state, "withheld") != 0 &&
           strcmp(state, "starting") != 0;
}

static void look_at(struct notices *n, const struct presence_host *host, int64_t wall_ms,
                    int64_t now)
{
    struct seen *seen = find(n, host->name);
    bool online = host->online, away = is_away(host);
    const char *cause = host->cause ? host->cause : "";
    int64_t patience = seen->heard ? NOTICES_AWAY_MS : NOTICES_UNHEARD_MS;

    seen->heard = seen->heard || online;
    seen->away_ms = !away ? 0 : seen->away_ms ? seen->away_ms : now;
    if (seen->telling) {
        return;
    }
    if (online && seen->lost) {
        tell(n, seen, "", wall_ms);
    } else if (away && !seen->lost && now - seen->away_ms >= patience) {
        tell(n, seen, cause[0] ? cause : "it is not connected", wall_ms);
    }
}

void notices_tick(struct notices *n, const struct presence *presence,
                  const char *database, int64_t wall_ms, int64_t now)
{
    struct err err;

    if (!n->read) {
        n->reading = n->reading ||
                     store_read(n->store, read_lost, n, lost_were_read, &err) == ERR_OK;
        return;
    }
    for (int i = 0; i < presence->host_count; i++) {
        look_at(n, &presence->hosts[i], wall_ms, now);
    }
    if (database && !n->telling && n->damaged != (database[0] != '\0')) {
        tell(n, NULL, database, wall_ms);
    }
}
