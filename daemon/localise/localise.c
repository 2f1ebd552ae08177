#include "daemon/localise/localise.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/localise/localise_look.h"

enum {
    STATES_MAX = 4, /* jobs whose traces are held; those of others are read again */
    FAILURES_MAX = 10
};

/* A job, and what is going on with it. */
struct search {
    struct localiser *localiser;
    char job[ID_SIZE];
    struct look_state state;
    struct look look;
    bool busy;      /* a look or a write is under way */
    bool due;       /* look at it again */
    bool forgotten; /* freed as soon as it is not busy */
    int failures;   /* in a row */
    uint64_t used;  /* serial of the last look */
};

struct localiser {
    struct store *store;
    struct scheduler *scheduler;
    struct localiser_hooks hooks;
    struct search **searches;
    int count;
    uint64_t serial;
};

static void look(struct search *search);

struct localiser *localiser_new(struct store *store, struct scheduler *scheduler,
                                const struct localiser_hooks *hooks)
{
    struct localiser *l = xcalloc(1, sizeof *l);

    l->store = store;
    l->scheduler = scheduler;
    l->hooks = *hooks;
    return l;
}

static void search_free(struct search *search)
{
    look_release(&search->look);
    look_state_release(&search->state);
    free(search);
}

void localiser_free(struct localiser *l)
{
    if (!l) {
        return;
    }
    for (int i = 0; i < l->count; i++) {
        search_free(l->searches[i]);
    }
    free(l->searches);
    free(l);
}

static struct search *find(const struct localiser *l, const char *job)
{
    for (int i = 0; i < l->count; i++) {
        if (strcmp(l->searches[i]->job, job) == 0) {
            return l->searches[i];
        }
    }
    return NULL;
}

/* Takes SEARCH off the list and frees it, at once or when it is not busy any more. */
static void forget(struct search *search)
{
    struct localiser *l = search->localiser;

    for (int i = 0; i < l->count; i++) {
        if (l->searches[i] == search) {
            l->searches[i] = l->searches[--l->count];
            break;
        }
    }
    search->forgotten = true;
    if (!search->busy) {
        search_free(search);
    }
}

/* Throws away what was seen of the job that was looked at least recently, where there are
 * too many. */
static void bound_states(struct localiser *l)
{
    struct search *oldest = NULL;
    int held = 0;

    for (int i = 0; i < l->count; i++) {
        struct search *s = l->searches[i];

        if (s->busy || s->state.divergence) { /* a busy one belongs to its thread */
            held++;
        }
        if (!s->busy && s->state.divergence && (!oldest || s->used < oldest->used)) {
            oldest = s;
        }
    }
    if (held > STATES_MAX && oldest) {
        look_state_release(&oldest->state);
    }
}

/* Whether SEARCH, whose work has ended, is still wanted. */
static bool end_work(struct search *search)
{
    search->busy = false;
    if (search->forgotten) {
        search_free(search);
        return false;
    }
    return true;
}

/* Something failed: it is tried again on a tick, and ended as failed when that does not
 * help. */
static void fail(struct search *search, const char *what, const struct err *err)
{
    if (search->failures++ == 0) {
        log_error("localise: job %s: %s: %s; trying again", search->job, what,
                  err->message);
    }
    look_state_release(&search->state);
    search->due = true;
}

static enum err_code store_capture(struct tx *tx, void *arg, struct err *err)
{
    const struct search *search = arg;
    const struct localisations_found found = {
        .job = search->job,
        .reason = search->look.reason,
        .search = search->look.search,
        .options = &search->look.options,
        .now_ms = clock_wall_ms(),
    };

    return localisations_capture(tx, &found, err);
}

static void capture_stored(void *arg, const struct err *err)
{
    struct search *search = arg;
    struct localiser *l = search->localiser;

    if (!end_work(search)) {
        return;
    }
    if (err->code == ERR_CONFLICT) {
        forget(search);
    } else if (err->code != ERR_OK) {
        fail(search, "the place cannot be stored", err);
    } else {
        log_info("localise: job %s: %s", search->job, search->look.reason);
        look_state_release(&search->state);
        scheduler_give_up(l->scheduler, search->job, LOCALISATION_SEARCH);
        scheduler_release(l->scheduler, search->job, LOCALISATION_CAPTURE,
                          &search->look.options);
        l->hooks.kick(l->hooks.arg);
    }
}

static enum err_code store_end(struct tx *tx, void *arg, struct err *err)
{
    const struct search *search = arg;
    const struct localisations_end end = {
        .job = search->job,
        .state = search->look.state,
        .reason = search->look.reason,
        .search = search->look.search,
        .difference = search->look.difference,
        .runs = { search->look.runs[0], search->look.runs[1] },
        .now_ms = clock_wall_ms(),
    };

    return localisations_conclude(tx, &end, err);
}

static void end_stored(void *arg, const struct err *err)
{
    struct search *search = arg;
    struct localiser *l = search->localiser;

    if (!end_work(search)) {
        return;
    }
    if (err->code != ERR_OK && err->code != ERR_CONFLICT) {
        fail(search, "the end cannot be stored", err);
        return;
    }
    log_info("localise: job %s: %s: %s", search->job,
             localisation_state_name(search->look.state), search->look.reason);
    scheduler_cancel(l->scheduler, search->job);
    forget(search);
    l->hooks.kick(l->hooks.arg);
}

static void write_down(struct search *search, store_fn fn, store_done done)
{
    search->busy = true;
    store_write(search->localiser->store, fn, search, done);
}

static void act(struct search *search)
{
    struct localiser *l = search->localiser;

    switch (search->look.next) {
    case LOOK_AGAIN:
        look(search);
        break;
    case LOOK_GO_ON:
        scheduler_release(l->scheduler, search->job, search->look.item, NULL);
        l->hooks.kick(l->hooks.arg);
        break;
    case LOOK_CAPTURE:
        write_down(search, store_capture, capture_stored);
        break;
    case LOOK_CONCLUDE:
        write_down(search, store_end, end_stored);
        break;
    }
}

static enum err_code read_look(struct tx *tx, void *arg, struct err *err)
{
    struct search *search = arg;

    return look_at(tx, search->job, &search->state, &search->look, err);
}

static void looked(void *arg, const struct err *err)
{
    struct search *search = arg;

    if (!end_work(search)) {
        return;
    }
    if (err->code == ERR_OK && search->due) {
        look(search);
    } else if (err->code == ERR_OK) {
        search->failures = 0;
        act(search);
    } else if (search->failures < FAILURES_MAX) {
        fail(search, "its runs cannot be read", err);
    } else {
        search->look.state = LOCALISATION_FAILED;
        copy_text(search->look.reason, sizeof search->look.reason, err->message);
        write_down(search, store_end, end_stored);
    }
}

static void look(struct search *search)
{
    struct localiser *l = search->localiser;
    struct err err;

    if (search->busy) {
        search->due = true;
        return;
    }
    look_release(&search->look);
    search->due = false;
    search->busy = true;
    search->used = ++l->serial;
    if (store_read_heavy(l->store, read_look, search, looked, &err) != ERR_OK) {
        search->busy = false;
        search->due = true;
    }
    bound_states(l);
}

void localiser_add(struct localiser *l, const char *job)
{
    struct search *search = xcalloc(1, sizeof *search);

    search->localiser = l;
    search->due = true;
    copy_text(search->job, sizeof search->job, job);
    l->searches = xgrow(l->searches, l->count, sizeof(struct search *));
    l->searches[l->count++] = search;
}

void localiser_run_stored(struct localiser *l, const char *job)
{
    struct search *search = find(l, job);

    if (search) {
        look(search);
    }
}

void localiser_cancel(struct localiser *l, const char *job)
{
    struct search *search = find(l, job);

    if (search) {
        forget(search);
    }
}

void localiser_tick(struct localiser *l)
{
    for (int i = 0; i < l->count; i++) {
        if (l->searches[i]->due && !l->searches[i]->busy) {
            look(l->searches[i]);
        }
    }
}
