/* Hosts are told to be lost and back once each, also over a restart, and not for a short
 * absence. */
#include "daemon/notices.h"

#include <poll.h>

#include "daemon/base/buf.h"
#include "db/events.h"
#include "db/tx.h"
#include "tests/unit/db/store_fixture.h"

static void settle(struct fixture *f)
{
    while (store_pending(f->store) > 0) {
        struct pollfd fd = { .fd = store_fd(f->store), .events = POLLIN };

        poll(&fd, 1, 1000);
        store_dispatch(f->store);
    }
}

static void tick_in(struct fixture *f, struct notices *n, const char *state,
                    const char *database, int64_t now)
{
    char cause[] = "no way";
    struct presence_host host = { .name = "far",
                                  .state = state,
                                  .online = strcmp(state, "online") == 0,
                                  .cause = cause };
    const struct presence presence = { .hosts = &host, .host_count = 1 };

    notices_tick(n, &presence, database, 1000 + now, now);
    settle(f);
}

static void tick(struct fixture *f, struct notices *n, bool online, const char *database,
                 int64_t now)
{
    tick_in(f, n, online ? "online" : "offline", database, now);
}

static void add_event(void *arg, const struct event *event)
{
    const char *state = strstr(event->data, "\"state\":\"");

    state += strlen("\"state\":\"");
    buf_printf(arg, "%s %.*s;", event->kind, (int)strcspn(state, "\""), state);
}

static enum err_code read_events(struct tx *tx, void *arg, struct err *err)
{
    return events_each(tx, 0, 100, add_event, arg, err);
}

static void expect(struct fixture *f, const char *wanted)
{
    struct buf text = BUF_INIT;

    buf_puts(&text, "");
    fixture_read(f, read_events, &text);
    assert_string_equal(text.data, wanted);
    buf_release(&text);
}

static struct notices *begin(struct fixture *f, bool online, int64_t now)
{
    struct notices *n = notices_new(f->store);

    tick(f, n, online, "", now); /* reads what was told */
    tick(f, n, online, "", now);
    return n;
}

/* It is away, but nobody misses it. */
static void test_a_host_that_is_not_wanted(void **state)
{
    static const char *const states[] = { "released", "waiting", "withheld", "starting" };
    struct fixture *f = *state;
    struct notices *n = begin(f, true, 10);

    for (int i = 0; i < 4; i++) {
        tick_in(f, n, states[i], "", 20);
        tick_in(f, n, states[i], "", 30 + 2 * NOTICES_UNHEARD_MS);
    }
    expect(f, "");
    tick(f, n, false, "", 40 + 2 * NOTICES_UNHEARD_MS);
    expect(f, "");
    tick(f, n, false, "", 40 + 2 * NOTICES_UNHEARD_MS + NOTICES_AWAY_MS);
    expect(f, "host lost;");
    notices_free(n);
}

static void test_a_host_that_is_lost(void **state)
{
    struct fixture *f = *state;
    struct notices *n = begin(f, true, 10);

    tick(f, n, false, "", 20);
    tick(f, n, false, "", 19 + NOTICES_AWAY_MS);
    tick(f, n, true, "", 20 + NOTICES_AWAY_MS);
    tick(f, n, false, "", 50 + NOTICES_AWAY_MS);
    tick(f, n, false, "", 49 + 2 * NOTICES_AWAY_MS);
    expect(f, "");
    tick(f, n, false, "", 50 + 2 * NOTICES_AWAY_MS);
    tick(f, n, false, "", 51 + 2 * NOTICES_AWAY_MS);
    expect(f, "host lost;");
    notices_free(n);
    n = begin(f, false, 10);
    tick(f, n, false, "", 10 + 2 * NOTICES_UNHEARD_MS);
    expect(f, "host lost;");
    tick(f, n, true, "", 20 + 2 * NOTICES_UNHEARD_MS);
    tick(f, n, true, "", 21 + 2 * NOTICES_UNHEARD_MS);
    expect(f, "host lost;host back;");
    notices_free(n);
}

static void test_a_host_that_was_never_heard(void **state)
{
    struct fixture *f = *state;
    struct notices *n = begin(f, false, 10);

    tick(f, n, false, "", 9 + NOTICES_UNHEARD_MS);
    expect(f, "");
    tick(f, n, false, "", 10 + NOTICES_UNHEARD_MS);
    expect(f, "host lost;");
    notices_free(n);
}

static void test_damage(void **state)
{
    struct fixture *f = *state;
    struct notices *n = begin(f, true, 10);

    tick(f, n, true, "a page", 20);
    tick(f, n, true, "two pages", 30);
    expect(f, "database damaged;");
    tick(f, n, true, "", 40);
    expect(f, "database damaged;database whole;");
    notices_free(n);
}

static void test_damage_that_was_repaired_meanwhile(void **state)
{
    struct fixture *f = *state;
    struct notices *n = begin(f, true, 10);

    tick(f, n, true, "a page", 20);
    notices_free(n);
    n = notices_new(f->store);
    tick(f, n, true, NULL, 10);
    tick(f, n, true, NULL, 20);
    tick(f, n, true, "a page", 30);
    expect(f, "database damaged;");
    tick(f, n, true, "", 40);
    expect(f, "database damaged;database whole;");
    notices_free(n);
}

static enum err_code execute(struct tx *tx, void *arg, struct err *err)
{
    int rc = sqlite3_exec(tx->db, arg, NULL, NULL, NULL);

    return rc == SQLITE_OK ? ERR_OK : tx_error(tx->db, rc, err);
}

static void test_what_could_not_be_stored(void **state)
{
    static char refuse[] =
        "CREATE TRIGGER none BEFORE INSERT ON event BEGIN SELECT RAISE (ABORT, 'no');"
        " END";
    static char allow[] = "DROP TRIGGER none";
    struct fixture *f = *state;
    struct notices *n = begin(f, true, 10);

    fixture_write(f, execute, refuse);
    tick(f, n, false, "a page", 20);
    tick(f, n, false, "a page", 20 + NOTICES_AWAY_MS);
    tick(f, n, false, "a page", 21 + NOTICES_AWAY_MS);
    expect(f, "");
    fixture_write(f, execute, allow);
    tick(f, n, false, "a page", 22 + NOTICES_AWAY_MS);
    tick(f, n, false, "a page", 23 + NOTICES_AWAY_MS);
    expect(f, "host lost;database damaged;");
    notices_free(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_a_host_that_is_not_wanted),
        STORE_TEST(test_a_host_that_is_lost),
        STORE_TEST(test_a_host_that_was_never_heard),
        STORE_TEST(test_damage),
        STORE_TEST(test_damage_that_was_repaired_meanwhile),
        STORE_TEST(test_what_could_not_be_stored),
    };

    return cmocka_run_group_tests_name("notices", tests, NULL, NULL);
}
