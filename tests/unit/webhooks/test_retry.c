/* When deliveries are tried again, and what answers say. */
#include "daemon/webhooks/retry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/array.h"
#include "daemon/webhooks/answer_head.h"

enum { HOUR_MS = 3600 * 1000 };

static void test_waits_grow_and_end(void **state)
{
    int64_t total = 0;

    (void)state;
    /* The shortest of a wait, and the longest. */
    assert_int_equal(retry_wait_ms(1, 1000, 0), 800);
    assert_int_equal(retry_wait_ms(1, 1000, 400), 1200);
    assert_int_equal(retry_wait_ms(1, 1000, 401), 800);
    assert_int_equal(retry_wait_ms(3, 1000, 0), 16 * 800);
    assert_int_equal(retry_wait_ms(60, 1000, 0), RETRY_LONGEST_MS / 5 * 4);
    assert_int_equal(retry_wait_ms(1, 10, UINT64_MAX) / 4, 2);
    for (int i = 1; i < RETRY_ATTEMPTS_MAX; i++) {
        total += retry_wait_ms(i, 1000, 0);
    }
    assert_true(total > 19 * HOUR_MS && total < 24 * HOUR_MS);
    /* A receiver is left alone from its third failure on. */
    assert_int_equal(retry_hold_ms(1, 1000, 200), 1000);
    assert_int_equal(retry_hold_ms(3, 1000, 200), 1000);
    assert_int_equal(retry_hold_ms(4, 1000, 400), 2000);
    assert_int_equal(retry_hold_ms(900, 1000, 0), RETRY_HOLD_MOST_MS / 5 * 4);
}

static void test_retry_after(void **state)
{
    static const int64_t now = INT64_C(1445412480000); /* Wed, 21 Oct 2015 07:28:00 GMT */
    static const char *const nothing[] = { "",
                                           "-1",
                                           "1.5",
                                           "12 ",
                                           "soon",
                                           "Wed, 21 Oct 2015 07:27:00 GMT",
                                           "Wed, 21 Oct 2015 07:29:00 GMT+1",
                                           "2015-10-21T07:29:00Z" };

    (void)state;
    assert_int_equal(retry_after_ms("120", now), 120 * 1000);
    assert_int_equal(retry_after_ms("0", now), 0);
    assert_int_equal(retry_after_ms("99999999999999999999", now), RETRY_AFTER_MOST_MS);
    assert_int_equal(retry_after_ms("999999999", now), RETRY_AFTER_MOST_MS);
    assert_int_equal(retry_after_ms("Wed, 21 Oct 2015 07:29:00 GMT", now), 60 * 1000);
    assert_int_equal(retry_after_ms("Wednesday, 21-Oct-15 07:29:00 GMT", now), 60 * 1000);
    assert_int_equal(retry_after_ms("Wed Oct 21 07:29:00 2015", now), 60 * 1000);
    assert_int_equal(retry_after_ms("Fri, 21 Oct 2016 07:28:00 GMT", now),
                     RETRY_AFTER_MOST_MS);
    for (int i = 0; i < COUNT_OF(nothing); i++) {
        assert_int_equal(retry_after_ms(nothing[i], now), 0);
    }
    assert_true(retry_delivered(200) && retry_delivered(204) && retry_delivered(299));
    assert_false(retry_delivered(0) || retry_delivered(199) || retry_delivered(302) ||
                 retry_delivered(410));
    assert_true(retry_gone(410) && !retry_gone(404));
}

static enum answer_head_state read_head(const char *text, struct answer_head *head)
{
    return answer_head_read(text, strlen(text), head);
}

static void test_heads_of_answers(void **state)
{
    static const char whole[] =
        "HTTP/1.1 100 Continue\r\nRetry-After: 9\r\n\r\n"
        "HTTP/1.1 503 Busy\r\nX: y\r\nretry-after: \t30 \r\n\r\n";
    static const char *const bad[] = {
        "HTTP/2 200 OK\r\n\r\n",   "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 2000\r\n\r\n",   "HTTP/1.1 600 X\r\n\r\n",
        "hello\r\n\r\n",           "\r\nHTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 099 X\r\n\r\n",  "HTTP/1.1 2x0 X\r\n\r\n",
        "HTTP/1.1 20x X\r\n\r\n",  "HTTP/1.x 200 OK\r\n\r\n",
        "HTTP/1.12200 OK\r\n\r\n",
    };
    char large[ANSWER_HEAD_MOST + 2];
    struct answer_head head;

    (void)state;
    for (size_t length = 0; length < strlen(whole); length++) {
        assert_int_equal(answer_head_read(whole, length, &head), ANSWER_HEAD_MORE);
    }
    assert_int_equal(read_head(whole, &head), ANSWER_HEAD_WHOLE);
    assert_int_equal(head.status, 503);
    assert_string_equal(head.retry_after, "30");
    assert_int_equal(read_head("HTTP/1.0 204\n\nbody", &head), ANSWER_HEAD_WHOLE);
    assert_int_equal(head.status, 204);
    assert_string_equal(head.retry_after, "");
    assert_int_equal(read_head("HTTP/1.1 200\r\n\r\n", &head), ANSWER_HEAD_WHOLE);
    for (int i = 0; i < COUNT_OF(bad); i++) {
        if (read_head(bad[i], &head) != ANSWER_HEAD_BAD) {
            fail_msg("'%s' is no head", bad[i]);
        }
    }
    memset(large, 'a', sizeof large);
    memcpy(large, "HTTP/1.1 200 OK\r\n", 17);
    assert_int_equal(answer_head_read(large, ANSWER_HEAD_MOST, &head), ANSWER_HEAD_MORE);
    assert_int_equal(answer_head_read(large, ANSWER_HEAD_MOST + 1, &head),
                     ANSWER_HEAD_BAD);
    /* A value that is too long says nothing. */
    memcpy(large, "HTTP/1.1 200 OK\r\nRetry-After: ", 30);
    memcpy(large + 200, "\r\n\r\n", 4);
    assert_int_equal(answer_head_read(large, 204, &head), ANSWER_HEAD_WHOLE);
    assert_string_equal(head.retry_after, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waits_grow_and_end),
        cmocka_unit_test(test_retry_after),
        cmocka_unit_test(test_heads_of_answers),
    };

    return cmocka_run_group_tests_name("webhook retries", tests, NULL, NULL);
}
