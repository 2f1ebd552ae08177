/* Cursors of lists: what a client made up is refused, or is what would have been written;
 * and a key comes back as it was. */
#include <inttypes.h>
#include <string.h>

#include "api/http/page.h"
#include "api/http/params.h"
#include "api/http/request.h"
#include "tests/fuzz/fuzz.h"

static void check_number(const char *target)
{
    struct request r = { .method = "GET" };
    char key[CURSOR_KEY_SIZE];
    int64_t number;

    FUZZ_CHECK(!target_parse(target, &r.target));
    number = param_cursor_number(&r, 'n');
    FUZZ_CHECK(number >= 0 && (r.problems.count == 0 || number == 0));
    if (number && cursor_decode('n', request_parameter(&r, "cursor"), key) == 0) {
        FUZZ_CHECK(parse_id(key) == number);
    }
    target_release(&r.target);
    problems_release(&r.problems);
}

static void check_pair(const char *target)
{
    struct request r = { .method = "GET" };
    int64_t first;
    int64_t second;

    FUZZ_CHECK(!target_parse(target, &r.target));
    param_cursor_pair(&r, 'n', &first, &second);
    FUZZ_CHECK(r.problems.count > 0 || (first > 0) == (second > 0));
    target_release(&r.target);
    problems_release(&r.problems);
}

static void check_cursor(const char *cursor)
{
    char target[CURSOR_SIZE + 16];

    snprintf(target, sizeof target, "/?cursor=%s", cursor);
    check_number(target);
    check_pair(target);
}

static void check_text(const char *text)
{
    char key[CURSOR_KEY_SIZE], again[CURSOR_KEY_SIZE], cursor[CURSOR_SIZE];

    if (cursor_decode('n', text, key) == 0) {
        FUZZ_CHECK(key[0] && strlen(key) < CURSOR_KEY_SIZE);
        cursor_encode('n', key, cursor);
        FUZZ_CHECK(cursor_decode('n', cursor, again) == 0 && strcmp(key, again) == 0);
        FUZZ_CHECK(cursor_decode('m', cursor, again) != 0);
        check_cursor(cursor);
    }
}

static void check_key(const char *key)
{
    char again[CURSOR_KEY_SIZE], cursor[CURSOR_SIZE];

    if (key[0] && strlen(key) < CURSOR_KEY_SIZE) {
        cursor_encode('n', key, cursor);
        FUZZ_CHECK(cursor_decode('n', cursor, again) == 0 && strcmp(key, again) == 0);
        check_cursor(cursor);
    }
}

static void run(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);

    check_text(text);
    check_key(text);
    free(text);
}

FUZZ_TARGET("cursor", run);
