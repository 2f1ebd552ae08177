/* Heavy reads that several clients ask for at a time are made once. */
#include "api/http/flight.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/http/reply.h"
#include "daemon/base/mem.h"

enum { MOST = 8 };

static struct request *resumed[MOST];
static int resumed_count;

static void resume(struct request *r)
{
    resumed[resumed_count++] = r;
}

struct fixture {
    struct api api;
    struct request requests[MOST];
    int count;
};

static struct request *ask(struct fixture *f, const char *target, enum format format,
                           uint64_t generation)
{
    struct request *r = &f->requests[f->count++];

    *r = (struct request){
        .api = &f->api, .raw = (char *)target, .format = format, .generation = generation
    };
    return r;
}

static void test_who_joins_whom(void **state)
{
    struct fixture f = { .count = 0 };
    struct request *first = ask(&f, "/v1/matrix", FORMAT_JSON, 7);
    struct request *later;

    (void)state;
    assert_false(flight_join(first));
    assert_true(flight_join(ask(&f, "/v1/matrix", FORMAT_JSON, 7)));
    assert_false(flight_join(ask(&f, "/v1/matrix", FORMAT_TEXT, 7)));
    assert_false(flight_join(ask(&f, "/v1/matrix?as_of=x", FORMAT_JSON, 7)));
    later = ask(&f, "/v1/matrix", FORMAT_JSON, 8); /* what it read is older */
    assert_false(flight_join(later));
    f.api.configured++;
    ask(&f, "/v1/matrix", FORMAT_JSON, 8)->configuration = 1;
    assert_false(flight_join(&f.requests[f.count - 1]));
    assert_int_equal(f.api.joined, 1);
    resumed_count = 0;
    reply_problem(first, PROBLEM_BUSY, "later");
    flight_land(first, resume);
    assert_int_equal(resumed_count, 1);
    assert_ptr_equal(resumed[0], &f.requests[1]);
    assert_false(flight_join(ask(&f, "/v1/matrix", FORMAT_JSON, 7)));
    reply_release(&first->reply);
    reply_release(&f.requests[1].reply);
}

/* Each gets it whole: the status, the headers and the body. */
static void test_all_get_the_same(void **state)
{
    for (int good = 0; good < 2; good++) {
        struct fixture f = { .count = 0 };
        struct request *r = NULL;
        struct buf buf = BUF_INIT;

        (void)state;
        for (int i = 0; i < 3; i++) {
            r = ask(&f, "/v1/compare?a=1&b=2", FORMAT_TEXT, 7);
            assert_int_equal(flight_join(r), i > 0);
        }
        r = &f.requests[0];
        if (good) {
            buf_puts(&buf, "the same");
            reply_text(r, &buf);
            reply_header(r, "Link", "next");
        } else {
            reply_problem(r, PROBLEM_BUSY, "later");
        }
        resumed_count = 0;
        flight_land(r, resume);
        assert_int_equal(resumed_count, 2);
        for (int i = 1; i < 3; i++) {
            const struct reply *reply = &f.requests[i].reply;

            assert_true(reply->ready);
            assert_int_equal(reply->status, good ? 200 : 503);
            assert_string_equal(reply->content_type, r->reply.content_type);
            assert_string_equal(reply->headers[0].name, good ? "Link" : "Retry-After");
            assert_string_equal(reply->headers[0].value, good ? "next" : "1");
            assert_ptr_equal(reply->shared, r->reply.shared);
            assert_int_equal(reply->shared != NULL, good);
            assert_string_equal(reply->etag, r->reply.etag);
            assert_true(good || strcmp(reply->body, r->reply.body) == 0);
        }
        flight_land(r, resume);
        assert_int_equal(resumed_count, 2);
        for (int i = 0; i < 3; i++) {
            reply_release(&f.requests[i].reply);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_joins_whom),
        cmocka_unit_test(test_all_get_the_same),
    };

    return cmocka_run_group_tests_name("flight", tests, NULL, NULL);
}
