/* The target of a request: path, query, and every kind of parameter. */
#include <string.h>

#include "api/http/page.h"
#include "api/http/params.h"
#include "api/http/request.h"
#include "daemon/base/clock.h"
#include "daemon/base/id.h"
#include "daemon/jobs/case.h"
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

/* Whatever is read is as its type says, and as if not given where it is refused. */
static void check_values(struct request *r)
{
    char again[CLOCK_RFC3339_SIZE], text[2 * CASE_TITLE_SIZE];
    const struct parameter *const *p = r->route->parameters;
    int64_t first, last;

    params_check(r);
    for (; *p && r->problems.count == 0; p++) {
        bool given = param_value(r, (*p)->name) != NULL;

        if ((*p)->type == PARAM_LIMIT) {
            FUZZ_CHECK(param_limit(r) >= 1 && param_limit(r) <= (*p)->max);
        } else if ((*p)->type == PARAM_NUMBER) {
            FUZZ_CHECK(param_number(r, (*p)->name) >= given);
        } else if ((*p)->type == PARAM_RANGE) {
            param_range(r, (*p)->name, &first, &last);
            FUZZ_CHECK(first >= 0 && first <= last);
        } else if ((*p)->type == PARAM_TIME && given) {
            first = param_time(r, (*p)->name);
            clock_rfc3339(first, again);
            FUZZ_CHECK(clock_parse_rfc3339(again, &last) == 0 && first == last);
        } else if ((*p)->type == PARAM_ID && given) {
            param_text(r, (*p)->name, text, ID_SIZE);
            FUZZ_CHECK(id_valid(text));
        } else {
            param_text(r, (*p)->name, text, sizeof text);
        }
    }
    problems_release(&r->problems);
}

static void run(const uint8_t *data, size_t size)
{
    char *raw = fuzz_text(data, size);
    struct request r = { .method = "GET" };

    if (!target_parse(raw, &r.target)) {
        FUZZ_CHECK(r.target.path[0] == '/');
        check_cursor(&r);
        for (int i = 0; i < route_count; i++) {
            r.route = &routes[i];
            check_values(&r);
        }
    }
    target_release(&r.target);
    problems_release(&r.problems);
    free(raw);
}

FUZZ_TARGET("target", run);
