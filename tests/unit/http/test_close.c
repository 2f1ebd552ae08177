/* The end of the interface, whatever its clients do. */
#include "api/api.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/db/store_fixture.h"

enum { CLIENTS = 8, ASKED_AT_ONCE = 4 };

static const char question[] = "GET /v1/environments HTTP/1.1\r\nHost: localhost\r\n\r\n";

static void kick(void *arg)
{
    (void)arg;
}

static const struct health *health(void *arg)
{
    static const struct health well;

    (void)arg;
    return &well;
}

static int connected(const struct api *api)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                   .sin_port = htons((uint16_t)api_port(api)) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void ask(int fd)
{
    for (int i = 0; i < ASKED_AT_ONCE; i++) {
        assert_int_equal(send(fd, question, sizeof question - 1, MSG_NOSIGNAL),
                         sizeof question - 1);
    }
}

/* What is read first while the interface is closed waits for nothing: the library ends
 * the process where a request waits. */
static void test_requests_that_come_while_it_is_closed(void **state)
{
    struct fixture *f = *state;
    struct api_options options = { .address = "127.0.0.1",
                                   .connection_limit = 100,
                                   .open_items_limit = 1,
                                   .version = "test" };
    struct api_hooks hooks = { .health = health, .kick = kick };
    int fds[CLIENTS];
    struct api *api;
    struct err err;

    assert_int_equal(api_open(&options, &hooks, f->store, &api, &err), ERR_OK);
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = connected(api);
        for (int turn = 0; turn < 2; turn++) {
            api_pump(api); /* it is accepted */
        }
    }
    for (int i = 0; i < CLIENTS; i++) {
        ask(fds[i]);
    }
    api_close(api);
    for (int i = 0; i < CLIENTS; i++) {
        close(fds[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_requests_that_come_while_it_is_closed),
    };

    return cmocka_run_group_tests_name("close", tests, NULL, NULL);
}
