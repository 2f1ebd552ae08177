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
    connections_init(&f->list);
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
        connection_serve(&f.list, f.connections[i]);
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
    connection_serve(&f.list, f.connections[0]);
    connection_serve(&f.list, f.connections[1]);
    connection_serve(&f.list, f.connections[2]);
    connection_await(&f.list, f.connections[2], 7);
    connections_make_room(&f.list, COUNT - 3, 0);
    expect(&f, "...xxx");
    connections_make_room(&f.list, 1, 0);
    expect(&f, "..xxxx");
    close_all(&f);
}

/* A client that takes no reply makes room, but not before those that say nothing, and not
 * for itself: who has just come is spared. */
static void test_who_takes_no_reply_makes_room(void **state)
{
    struct fixture f;

    (void)state;
    open_all(&f);
    for (int i = 0; i < 4; i++) {
        connection_serve(&f.list, f.connections[i]);
        connection_take(&f.list, f.connections[i], 7);
    }
    connections_make_room(&f.list, COUNT - 2, 2);
    expect(&f, "....xx"); /* 4 and 5 wait, and longer than the others take */
    connections_make_room(&f.list, COUNT - 3, 2);
    expect(&f, "x...xx");
    connections_make_room(&f.list, 0, 2);
    expect(&f, "xx..xx");
    close_all(&f);
}

static void test_deadlines(void **state)
{
    struct fixture f;

    (void)state;
    open_all(&f);
    connection_take(&f.list, f.connections[1], 7);
    connection_serve(&f.list, f.connections[2]);
    connections_sweep(&f.list, 6 + CONNECTION_RECEIVE_MS);
    expect(&f, "......");
    connections_sweep(&f.list, 7 + CONNECTION_RECEIVE_MS);
    expect(&f, "x..xxx");
    connections_sweep(&f.list, 7 + CONNECTION_SEND_MS);
    expect(&f, "xx.xxx");
    assert_int_equal(f.list.overdue, 5);
    close_all(&f);
}

/* But what they said before is read first, and who is served is let alone. */
static void test_clients_that_left(void **state)
{
    struct fixture f;
    char byte;

    (void)state;
    open_all(&f);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(shutdown(f.peers[i], SHUT_WR), 0);
    }
    connection_serve(&f.list, f.connections[1]);
    assert_int_equal(send(f.peers[3], "x", 1, 0), 1);
    assert_int_equal(shutdown(f.peers[3], SHUT_WR), 0);
    connections_look(&f.list, 8); /* they have only just come */
    expect(&f, "......");
    connections_look(&f.list, 8 + CONNECTION_LOOK_MS - 1); /* not so often */
    expect(&f, "......");
    connections_look(&f.list, 8 + CONNECTION_LOOK_MS);
    expect(&f, "x.x...");
    assert_int_equal(recv(f.connections[3]->fd, &byte, 1, 0), 1);
    connections_look(&f.list, 8 + 2 * CONNECTION_LOOK_MS);
    expect(&f, "x.xx..");
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
        cmocka_unit_test(test_who_takes_no_reply_makes_room),
        cmocka_unit_test(test_deadlines),
        cmocka_unit_test(test_clients_that_left),
        cmocka_unit_test(test_those_that_left_count_no_more),
    };

    return cmocka_run_group_tests_name("connections", tests, NULL, NULL);
}
