/* Which connections make room when there are too many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/http/connection.h"

enum { COUNT = 6 };

struct fixture {
    struct connections list;
    struct connection *connections[COUNT];
    int peers[COUNT];
};

/* COUNT connections, the first of which came first. */
static void open_all(struct fixture *f)
{
    *f = (struct fixture){ .list = { .next_due_ms = 0 } };
    for (int i = 0; i < COUNT; i++) {
        int pair[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        f->peers[i] = pair[1];
        f->connections[i] = connection_add(&f->list, pair[0], 7);
    }
}

static void close_all(struct fixture *f)
{
    for (int i = 0; i < COUNT; i++) {
        if (f->connections[i]) {
            close(f->connections[i]->fd);
            connection_remove(&f->list, f->connections[i]);
        }
        close(f->peers[i]);
    }
    assert_int_equal(f->list.count, 0);
}

/* ENDED has an x for each whose peer sees the end. */
static void expect(struct fixture *f, const char *ended)
{
    for (int i = 0; i < COUNT; i++) {
        char byte;
        ssize_t got = recv(f->peers[i], &byte, 1, MSG_DONTWAIT);

        assert_int_equal(got, ended[i] == 'x' ? 0 : -1);
    }
}

static void test_the_longest_waiting_make_room(void **state)
{
    struct fixture f;

    (void)state;
    open_all(&f);
    connections_make_room(&f.list, COUNT, 0);
    expect(&f, "......");
    connections_make_room(&f.list, COUNT - 2, 0);
    expect(&f, "xx....");
    connections_make_room(&f.list, COUNT - 2, 0); /* the library has not seen it yet */
    expect(&f, "xx....");
    assert_int_equal(f.list.made_room, 2);
    close_all(&f);
}

/* Who has just come may go on, even where all others are served. */
static void test_newcomers_are_spared(void **state)
{
    struct fixture f;

    (void)state;
    open_all(&f);
    for (int i = 0; i < 3; i++) {
        connection_expect(&f.list, f.connections[i], 0, 0);
    }
    connections_make_room(&f.list, 2, 3);
    expect(&f, "......");
    connections_make_room(&f.list, 2, 2);
    expect(&f, "...x..");
    connections_make_room(&f.list, 2, 2);
    expect(&f, "...x..");
    close_all(&f);
}

/* Whoever is served stays; whoever was served waits from then on. */
static void test_who_is_served_stays(void **state)
{
    struct fixture f;

    (void)state;
    open_all(&f);
    connection_expect(&f.list, f.connections[0], 0, 0);
    connection_expect(&f.list, f.connections[1], 7, CONNECTION_SEND_MS);
    connection_expect(&f.list, f.connections[2], 0, 0);
    connection_await(&f.list, f.connections[2], 7);
    connections_make_room(&f.list, COUNT - 3, 0);
    expect(&f, "...xxx");
    connections_make_room(&f.list, 1, 0);
    expect(&f, "..xxxx");
    close_all(&f);
}

static void test_those_that_left_count_no_more(void **state)
{
    struct fixture f;

    (void)state;
    open_all(&f);
    connections_make_room(&f.list, COUNT - 1, 0);
    close(f.connections[0]->fd);
    connection_remove(&f.list, f.connections[0]);
    f.connections[0] = NULL;
    connections_make_room(&f.list, COUNT - 1, 0);
    expect(&f, "x.....");
    close_all(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_longest_waiting_make_room),
        cmocka_unit_test(test_newcomers_are_spared),
        cmocka_unit_test(test_who_is_served_stays),
        cmocka_unit_test(test_those_that_left_count_no_more),
    };

    return cmocka_run_group_tests_name("connections", tests, NULL, NULL);
}
