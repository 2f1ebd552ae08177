#include "api/http/params.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/http/reply.h"
#include "daemon/base/clock.h"
#include "daemon/base/id.h"
#include "daemon/base/mem.h"

int64_t parse_id(const char *text)
{
    char *end;
    long long value;

    if (*text < '0' || *text > '9') {
        return -1;
    }
    errno = 0;
    value = strtoll(text, &end, 10);
    return errno || *end || value < 1 ? -1 : value;
}

int param_limit(struct request *r)
{
    return param_limit_up_to(r, PARAM_LIMIT_MAX);
}

int param_limit_up_to(struct request *r, int max)
{
    const char *text = request_parameter(r, "limit");
    int64_t limit = text ? parse_id(text) : PARAM_LIMIT_DEFAULT;

    if (limit < 1 || limit > max) {
        problems_add_parameter(&r->problems, PROBLEM_INVALID_PARAMETER, "limit",
                               "must be a number from 1 to %d", max);
        return PARAM_LIMIT_DEFAULT;
    }
    return (int)limit;
}

static void refuse_cursor(struct request *r)
{
    problems_add_parameter(&r->problems, PROBLEM_INVALID_PARAMETER, "cursor",
                           "is not a cursor of this list; take it from its 'next'");
}

/* "" if it is not given. */
static void param_cursor(struct request *r, char kind, char ret_key[CURSOR_KEY_SIZE])
{
    const char *text = request_parameter(r, "cursor");

    ret_key[0] = '\0';
    if (text && cursor_decode(kind, text, ret_key) != 0) {
        refuse_cursor(r);
    }
}

void param_cursor_id(struct request *r, char kind, char ret_id[ID_SIZE])
{
    char key[CURSOR_KEY_SIZE];

    ret_id[0] = '\0';
    param_cursor(r, kind, key);
    if (key[0] && !id_valid(key)) {
        refuse_cursor(r);
    } else {
        copy_text(ret_id, ID_SIZE, key);
    }
}

int64_t param_cursor_number(struct request *r, char kind)
{
    char key[CURSOR_KEY_SIZE];
    int64_t number;

    param_cursor(r, kind, key);
    number = key[0] ? parse_id(key) : 0;
    if (number < 0) {
        refuse_cursor(r);
        return 0;
    }
    return number;
}

void param_cursor_pair(struct request *r, char kind, int64_t *ret_first,
                       int64_t *ret_second)
{
    char key[CURSOR_KEY_SIZE];
    char *dot;

    *ret_first = *ret_second = 0;
    param_cursor(r, kind, key);
    if (!key[0]) {
        return;
    }
    dot = strchr(key, '.');
    if (dot) {
        *dot = '\0';
        *ret_first = parse_id(key);
        *ret_second = parse_id(dot + 1);
    }
    if (*ret_first < 1 || *ret_second < 1) {
        refuse_cursor(r);
    }
}

int64_t param_time(struct request *r, const char *name)
{
    const char *text = request_parameter(r, name);
    int64_t ms = 0;

    if (text && (clock_parse_rfc3339(text, &ms) != 0 || ms <= 0)) {
        problems_add_parameter(
            &r->problems, PROBLEM_INVALID_PARAMETER, name,
            "must be a time like 2026-11-21T10:45:00Z (a + in an offset "
            "is written %%2B)");
        return 0;
    }
    return ms;
}

int64_t param_id(struct request *r, const char *name)
{
    const char *text = request_parameter(r, name);
    int64_t id = text ? parse_id(text) : 0;

    if (id < 0) {
        problems_add_parameter(&r->problems, PROBLEM_INVALID_PARAMETER, name,
                               "must be a number from 1");
        return 0;
    }
    return id;
}

/* Digits only, from 0; -1 for any other text.  *RET_END is behind them. */
static int64_t read_number(const char *text, const char **ret_end)
{
    size_t digits = strspn(text, "0123456789");
    long long value;

    *ret_end = text + digits;
    errno = 0;
    value = strtoll(text, NULL, 10);
    return digits == 0 || errno ? -1 : value;
}

void param_range(struct request *r, const char *name, int64_t *ret_first,
                 int64_t *ret_last)
{
    const char *text = request_parameter(r, name);
    const char *end;

    *ret_first = 0;
    *ret_last = INT64_MAX;
    if (!text) {
        return;
    }
    *ret_first = *ret_last = read_number(text, &end);
    if (*end == '-') {
        *ret_last = read_number(end + 1, &end);
    }
    if (*end || *ret_first < 0 || *ret_last < *ret_first) {
        problems_add_parameter(&r->problems, PROBLEM_INVALID_PARAMETER, name,
                               "must be a number, or a range like 30-40");
    }
}

void param_run(struct request *r, const char *name, char *ret_id, size_t size)
{
    const char *text = request_parameter(r, name);

    if (!text) {
        problems_add_parameter(&r->problems, PROBLEM_INVALID_PARAMETER, name,
                               "must be given: the id of a run");
    } else if (!id_valid(text)) {
        problems_add_parameter(&r->problems, PROBLEM_INVALID_PARAMETER, name,
                               "'%.64s' is not the id of a run", text);
    }
    copy_text(ret_id, size, text ? text : "");
}

void param_text(struct request *r, const char *name, char *ret_text, size_t size)
{
    const char *text = request_parameter(r, name);

    ret_text[0] = '\0';
    if (text && (!*text || strlen(text) >= size)) {
        problems_add_parameter(&r->problems, PROBLEM_INVALID_PARAMETER, name,
                               "must be a name of 1 to %zu bytes", size - 1);
    } else if (text) {
        copy_text(ret_text, size, text);
    }
}

bool params_refused(struct request *r)
{
    if (r->problems.count > 0) {
        reply_problems(r);
        return true;
    }
    return false;
}
