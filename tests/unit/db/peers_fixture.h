/* Two databases, one of which takes the other's runs: what tests of peers share. */
#ifndef TESTS_UNIT_DB_PEERS_FIXTURE_H
#define TESTS_UNIT_DB_PEERS_FIXTURE_H

#include "tests/unit/db/retention_fixture.h"
#include "tests/unit/db/runs_fixture.h"

#include "daemon/base/mem.h"
#include "db/fleet.h"
#include "db/peers/peer_export.h"
#include "db/peers/peer_rows.h"
#include "db/tx.h"

enum { UNORDERED, ORDERED_A, ORDERED_B, PULL_NOW_MS = 1000000 };

struct peers_fixture {
    struct fixture *here, *there;
};

static inline int peers_setup(void **state)
{
    struct peers_fixture *p = xcalloc(1, sizeof *p);

    p->here = fixture_new();
    p->there = fixture_new();
    fixture_open(p->here);
    fixture_open(p->there);
    *state = p;
    return 0;
}

static inline int peers_teardown(void **state)
{
    struct peers_fixture *p = *state;

    fixture_free(p->here);
    fixture_free(p->there);
    free(p);
    return 0;
}

#define PEERS_TEST(test)                                                                 \
    cmocka_unit_test_setup_teardown(test, peers_setup, peers_teardown)

struct seen {
    const char *device, *attributes;
    int second;
};

static inline enum err_code see(struct tx *tx, void *arg, struct err *err)
{
    const struct seen *s = arg;
    struct host host = { .name = "gpu-001", .last_seen_ms = s->second * 1000 };
    struct device device = { .host = "gpu-001", .backend = "cpu", .model = "m" };

    copy_text(device.id, sizeof device.id, s->device);
    device.attributes_json = s->attributes;
    device.last_seen_ms = s->second * 1000;
    return hosts_seen(tx, &host, err) == ERR_OK ? devices_seen(tx, &device, err)
                                                : err->code;
}

static inline void see_device(struct fixture *f, const char *device,
                              const char *attributes, int second)
{
    fixture_write(f, see, &(struct seen){ device, attributes, second });
}

static inline void measure_run(struct fixture *f, struct fixture_run run)
{
    fixture_write(f, fixture_whole_run, &run);
}

struct collected {
    struct peer_page page;
    const char *since, *peer;
    int limit;
    /* Changes a run on its way; NULL: nothing does. */
    void (*change)(struct peer_run *run);
};

static inline char *copied(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

static inline bool collect_run(void *arg, const struct peer_run *run)
{
    struct collected *c = arg;
    struct peer_run *copy;

    c->page.runs = xgrow(c->page.runs, c->page.count, sizeof *c->page.runs);
    copy = &c->page.runs[c->page.count++];
    *copy = *run;
    copy->digests = xcalloc((size_t)run->digest_count + 1, sizeof *run->digests);
    for (int i = 0; i < run->digest_count; i++) {
        copy->digests[i] = run->digests[i];
    }
    copy->attributes = copied(run->attributes);
    copy->environment = copied(run->environment);
    copy->environment_title = copied(run->environment_title);
    if (copy->refusal == PEER_TAKEN && c->change) {
        c->change(copy);
    }
    if (copy->refusal == PEER_TAKEN) {
        peer_run_qualify(copy, c->peer);
    }
    return true;
}

static inline enum err_code export_page(struct tx *tx, void *arg, struct err *err)
{
    struct collected *c = arg;
    struct peer_page page;
    enum err_code code = peers_export(tx, c->since, c->limit, collect_run, c, &page, err);

    page.runs = c->page.runs;
    page.count = c->page.count;
    c->page = page;
    copy_text(c->page.reprod, sizeof c->page.reprod, "1.2.3");
    return code;
}

struct taking {
    const char *peer;
    const struct peer_page *page;
    struct peer_taken taken;
};

static inline enum err_code take_page(struct tx *tx, void *arg, struct err *err)
{
    struct taking *t = arg;

    return peers_take(tx, t->peer, t->page, PULL_NOW_MS, &t->taken, err);
}

struct wanted {
    const char *peer;
    char cursor[ID_SIZE];
};

static inline enum err_code find_cursor(struct tx *tx, void *arg, struct err *err)
{
    struct wanted *w = arg;

    return peers_cursor(tx, w->peer, w->cursor, err);
}

/* Pulls pages of LIMIT until there are no more. */
static inline struct peer_taken pull_changed(struct peers_fixture *p, const char *peer,
                                             int limit,
                                             void (*change)(struct peer_run *run))
{
    struct peer_taken sum = { .taken = 0 };
    bool more = true;

    while (more) {
        struct wanted w = { .peer = peer };
        struct collected c = { .peer = peer, .limit = limit, .change = change };
        struct taking t = { .peer = peer, .page = &c.page };

        fixture_read(p->here, find_cursor, &w);
        c.since = w.cursor;
        fixture_read(p->there, export_page, &c);
        assert_true(c.page.count <= limit);
        fixture_write(p->here, take_page, &t);
        sum.taken += t.taken.taken;
        sum.known += t.taken.known;
        sum.refused += t.taken.refused;
        sum.reset = sum.reset || t.taken.reset;
        more = c.page.more && !t.taken.reset;
        peer_page_release(&c.page);
    }
    return sum;
}

static inline struct peer_taken pull(struct peers_fixture *p, const char *peer, int limit)
{
    return pull_changed(p, peer, limit, NULL);
}

struct progress_of {
    const char *peer;
    struct peer_progress progress;
    char reason[64], words[PEER_WORDS_SIZE]; /* of its first refusal */
};

static inline void match_progress(void *arg, const struct peer_progress *progress)
{
    struct progress_of *p = arg;

    if (strcmp(progress->name, p->peer) == 0) {
        p->progress = *progress;
    }
}

static inline void match_refusal(void *arg, const struct peer_refused *refused)
{
    struct progress_of *p = arg;

    if (!p->reason[0]) {
        copy_text(p->reason, sizeof p->reason, refused->reason);
        copy_text(p->words, sizeof p->words, refused->words);
    }
}

static inline enum err_code read_progress(struct tx *tx, void *arg, struct err *err)
{
    struct progress_of *p = arg;

    return peers_each(tx, match_progress, p, err) == ERR_OK
               ? peers_each_refusal(tx, p->peer, match_refusal, p, err)
               : err->code;
}

static inline struct progress_of progress(struct peers_fixture *p, const char *peer)
{
    struct progress_of of = { .peer = peer };

    fixture_read(p->here, read_progress, &of);
    return of;
}

#endif
