/* The target of a request: path, query, and every kind of parameter. */
#include <string.h>

#include "api/http/params.h"
#include "api/http/request.h"
#include "daemon/base/clock.h"
#include "daemon/base/id.h"
#include "tests/fuzz/fuzz.h"

/* What was taken is what would have been written. */
static void check_cursor(struct request *r)
{
    const char *text = request_parameter(r, "cursor");
    char key[CURSOR_KEY_SIZE], again[CURSOR_KEY_SIZE];
    char cursor[CURSOR_SIZE], id[ID_SIZE];

    for (const char *kind = "jrch"; *kind; kind++) {
        param_cursor_id(r, *kind, id);
        FUZZ_CHECK(!id[0] || id_valid(id));
        if (text && cursor_decode(*kind, text, key) == 0) {
            cursor_encode(*kind, key, cursor);
            FUZZ_CHECK(cursor_decode(*kind, cursor, again) == 0);
            FUZZ_CHECK(strcmp(again, key) == 0);
        }
    }
}

static void check_time(struct request *r)
{
    int64_t ms = param_time(r, "as_of"), again = 0;
    char text[CLOCK_RFC3339_SIZE];

    if (ms) {
        clock_rfc3339(ms, text);
        FUZZ_CHECK(clock_parse_rfc3339(text, &again) == 0 && again == ms);
    }
}

static void check_numbers(struct request *r)
{
    int limit = param_limit(r);
    int64_t first, last;
    char run[ID_SIZE], name[32];

    FUZZ_CHECK(limit >= 1 && limit <= PARAM_LIMIT_MAX);
    FUZZ_CHECK(param_id(r, "cell") >= 0);
    param_range(r, "steps", &first, &last);
    param_run(r, "a", run, sizeof run);
    param_text(r, "workload", name, sizeof name);
    FUZZ_CHECK(r->problems.count || (first >= 0 && first <= last && id_valid(run)));
}

static void run(const uint8_t *data, size_t size)
{
    char *raw = fuzz_text(data, size);
    struct request r = { .method = "GET" };

    if (!target_parse(raw, &r.target)) {
        FUZZ_CHECK(r.target.path[0] == '/');
        check_cursor(&r);
        check_time(&r);
        check_numbers(&r);
    }
    target_release(&r.target);
    problems_release(&r.problems);
    free(raw);
}

FUZZ_TARGET("target", run);
