/* Peers of a configuration: what one must be, how they fit together, their commands. */
#include "daemon/config/peers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/array.h"
#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"

#define CURSOR "01M8CETA000000000000000001"
#define EAST   "{\"name\":\"east\",\"launch\":[\"ssh\",\"{cursor}\"]}"

static json_t *parsed(const char *text)
{
    json_t *json = json_loads(text, 0, NULL);

    assert_non_null(json);
    return json;
}

static void test_what_a_peer_must_be(void **state)
{
    static const struct {
        const char *peer, *words;
    } wrong[] = {
        { "{\"launch\":[\"{cursor}\"]}", "name is missing" },
        { "{\"name\":\"\",\"launch\":[\"{cursor}\"]}", "name" },
        { "{\"name\":\"a/b\",\"launch\":[\"{cursor}\"]}", "letters, digits" },
        { "{\"name\":\"123456789012345678901234567890123\",\"launch\":[\"{cursor}\"]}",
          "name" },
        { "{\"name\":\"a\"}", "launch is missing" },
        { "{\"name\":\"a\",\"launch\":[]}", "[program, argument, ...]" },
        { "{\"name\":\"a\",\"launch\":[\"reprod\",\"export\"]}", "no word has {cursor}" },
        { "{\"name\":\"a\",\"launch\":[\"{cursor}\"],\"every_seconds\":0}",
          "every_seconds" },
        { "{\"name\":\"a\",\"launch\":[\"{cursor}\"],\"every_second\":1}",
          "every_seconds" }, /* the nearest */
    };

    (void)state;
    for (int i = 0; i < COUNT_OF(wrong); i++) {
        json_t *peer = parsed(wrong[i].peer);
        struct err err = { .message = "" };

        assert_int_not_equal(in_read_wire(peers_element.shape, peer, NULL, &err), ERR_OK);
        if (!strstr(err.message, wrong[i].words)) {
            fail_msg("%s: %s", wrong[i].peer, err.message);
        }
        json_decref(peer);
    }
}

static enum err_code check(const char *peers, const char *hosts, const char *stacks,
                           struct err *err)
{
    json_t *lists[] = { parsed(peers), parsed(hosts), parsed(stacks) };
    enum err_code code = peers_check(lists[0], lists[1], lists[2], "c.json", err);

    for (int i = 0; i < COUNT_OF(lists); i++) {
        json_decref(lists[i]);
    }
    return code;
}

static void test_names_mean_one_thing(void **state)
{
    struct err err;

    (void)state;
    assert_int_equal(check("[" EAST "]", "[{\"name\":\"eastern/1\"}]",
                           "[{\"name\":\"eastern:cpu\"},{\"name\":\"east\"}]", &err),
                     ERR_OK);
    assert_int_equal(check("[" EAST "," EAST "]", "[]", "[]", &err), ERR_INVALID);
    assert_string_equal(err.message, "c.json: /peers/1/name: 'east' is listed twice");
    assert_int_equal(check("[" EAST "]", "[{\"name\":\"east/1\"}]", "[]", &err),
                     ERR_INVALID);
    assert_string_equal(
        err.message, "c.json: /peers/0/name: host 'east/1' could be one of peer 'east'");
    assert_int_equal(check("[" EAST "]", "[]", "[{\"name\":\"east:cpu\"}]", &err),
                     ERR_INVALID);
    assert_string_equal(
        err.message,
        "c.json: /peers/0/name: stack 'east:cpu' could be one of peer 'east'");
}

static void test_the_cursor_goes_into_its_place(void **state)
{
    json_t *peer = parsed(
        "{\"name\":\"east\",\"launch\":[\"ssh\",\"h\",\"curl\","
        "\"a?since={cursor}&x={cursor}\",\"{curso}\"]}");
    char **argv = peers_command(peer, CURSOR);

    (void)state;
    assert_string_equal(argv[0], "ssh");
    assert_string_equal(argv[3], "a?since=" CURSOR "&x=" CURSOR);
    assert_string_equal(argv[4], "{curso}");
    assert_null(argv[5]);
    free_texts(argv);
    assert_int_equal(peers_every_seconds(peer), PEER_EVERY_SECONDS);
    json_object_set_new(peer, "every_seconds", json_integer(7));
    assert_int_equal(peers_every_seconds(peer), 7);
    json_decref(peer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_peer_must_be),
        cmocka_unit_test(test_names_mean_one_thing),
        cmocka_unit_test(test_the_cursor_goes_into_its_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
