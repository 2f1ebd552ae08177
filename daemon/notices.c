#include "daemon/notices.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/health.h"
#include "daemon/base/json_in.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/jobs/case.h"
#include "db/webhooks/notices.h"

struct seen {
    char name[CASE_TITLE_SIZE];
    bool heard;      /* since the start */
    bool lost;       /* as it was told */
    int64_t away_ms; /* since when it is, monotonic; 0: it is not */
};

struct notices {
    struct store *store;
    struct seen *hosts;
    int count;
    bool reading, read; /* what was told before the start */
    bool damaged;       /* as it was told */
};

struct notice {
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
    if (n) {
        free(n->hosts);
        free(n);
    }
}

static struct seen *find(struct notices *n, const char *name)
{
    struct seen *new;

    for (int i = 0; i < n->count; i++) {
        if (strcmp(n->hosts[i].name, name) == 0) {
            return &n->hosts[i];
        }
    }
    n->hosts = xgrow(n->hosts, n->count, sizeof *n->hosts);
    new = &n->hosts[n->count++];
    *new = (struct seen){ .heard = false };
    copy_text(new->name, sizeof new->name, name);
    return new;
}

static enum err_code store_notice(struct tx *tx, void *arg, struct err *err)
{
    const struct notice *notice = arg;
    const char *cause = notice->cause[0] ? notice->cause : NULL;

    return notice->host[0] ? notices_host(tx, notice->host, cause, notice->now_ms, err)
                           : notices_database(tx, cause, notice->now_ms, err);
}

static void notice_stored(void *arg, const struct err *result)
{
    if (result->code != ERR_OK) {
        log_error("events: %s", result->message);
    }
    free(arg);
}

static void tell(struct notices *n, const char *host, const char *cause, int64_t now_ms)
{
    struct notice *notice = xcalloc(1, sizeof *notice);

    copy_text(notice->host, sizeof notice->host, host);
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
    return notices_each_lost(tx, take_lost, arg, err);
}

static void lost_were_read(void *arg, const struct err *result)
{
    struct notices *n = arg;

    n->reading = false;
    n->read = result->code == ERR_OK;
}

/* HOST should have an agent, and has none.  One that is started has had none to lose:
 * while it is tried again, it is offline. */
static bool is_away(const json_t *host)
{
    const char *state = in_text_or_empty(host, "state");

    return !json_is_true(json_object_get(host, "online")) &&
           strcmp(state, "released") != 0 && strcmp(state, "waiting") != 0 &&
           strcmp(state, "withheld") != 0 && strcmp(state, "starting") != 0;
}

static void look_at(struct notices *n, const json_t *host, int64_t wall_ms, int64_t now)
{
    struct seen *seen = find(n, in_text_or_empty(host, "name"));
    bool online = json_is_true(json_object_get(host, "online")), away = is_away(host);
    const char *cause = in_text_or_empty(host, "cause");
    int64_t patience = seen->heard ? NOTICES_AWAY_MS : NOTICES_UNHEARD_MS;

    seen->heard = seen->heard || online;
    seen->away_ms = !away ? 0 : seen->away_ms ? seen->away_ms : now;
    if (online && seen->lost) {
        seen->lost = false;
        tell(n, seen->name, "", wall_ms);
    } else if (away && !seen->lost && now - seen->away_ms >= patience) {
        seen->lost = true;
        tell(n, seen->name, cause[0] ? cause : "it is not connected", wall_ms);
    }
}

void notices_tick(struct notices *n, const json_t *hosts, const char *database,
                  int64_t wall_ms, int64_t now)
{
    struct err err;
    size_t i;
    json_t *host;

    if (!n->read) {
        n->reading = n->reading ||
                     store_read(n->store, read_lost, n, lost_were_read, &err) == ERR_OK;
        return;
    }
    json_array_foreach((json_t *)hosts, i, host)
    {
        look_at(n, host, wall_ms, now);
    }
    if (n->damaged != (database[0] != '\0')) {
        n->damaged = !n->damaged;
        tell(n, "", database, wall_ms);
    }
}
