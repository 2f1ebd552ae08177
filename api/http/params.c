#include "api/http/params.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/http/reply.h"
#include "daemon/base/array.h"
#include "daemon/base/clock.h"
#include "daemon/base/id.h"
#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"
#include "daemon/base/nearest.h"
#include "daemon/jobs/case.h"

enum { CHOICES_MAX = 32 };

int64_t parse_event_id(const char *text)
{
    char *end;
    long long value;

    if (*text < '0' || *text > '9') {
        return -1;
    }
    errno = 0;
    value = strtoll(text, &end, 10);
    return errno || *end ? -1 : value;
}

int64_t parse_id(const char *text)
{
    int64_t value = parse_event_id(text);

    return value < 1 ? -1 : value;
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

static bool read_range(const char *text, int64_t *ret_first, int64_t *ret_last)
{
    const char *end;

    *ret_first = *ret_last = read_number(text, &end);
    if (*end == '-') {
        *ret_last = read_number(end + 1, &end);
    }
    return *end == '\0' && *ret_first >= 0 && *ret_last >= *ret_first;
}

static void __attribute__((format(printf, 3, 4)))
refuse(struct request *r, const struct parameter *p, const char *format, ...)
{
    char detail[256];
    va_list args;

    va_start(args, format);
    vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    problems_add_parameter(&r->problems,
                           p->problem ? p->problem : PROBLEM_INVALID_PARAMETER, p->name,
                           "%s", detail);
}

static void check_choice(struct request *r, const struct parameter *p, const char *text)
{
    const char *names[CHOICES_MAX];
    char hint[NEAREST_HINT_SIZE];
    int count = 0;

    for (const char *name = p->choice(0); name && count < CHOICES_MAX;
         name = p->choice(count)) {
        names[count++] = name;
        if (strcmp(name, text) == 0) {
            return;
        }
    }
    nearest_hint(text, names, count, hint);
    refuse(r, p, "there is no %s '%.64s'%s%s", p->name, text,
           count == 1 ? "; there is: " : hint, count == 1 ? names[0] : "");
}

/* A date that no calendar has, like 2026-02-30. */
static bool names_no_day(const char *text)
{
    int year, month, day;

    return sscanf(text, "%4d-%2d-%2d", &year, &month, &day) == 3 && month >= 1 &&
           month <= 12 && day > clock_days(year, month) && day <= 31;
}

static void check_value(struct request *r, const struct parameter *p, const char *text)
{
    int64_t first, last;

    switch (p->type) {
    case PARAM_TEXT:
        break;
    case PARAM_NAME:
        if (!*text || strlen(text) > (size_t)p->max) {
            refuse(r, p, "must be a name of 1 to %d bytes", (int)p->max);
        }
        break;
    case PARAM_ID:
        if (!id_valid(text)) {
            refuse(r, p, "'%.64s' is not the id of a %s", text, p->noun);
        }
        break;
    case PARAM_DIGEST:
        if (!*text || strlen(text) >= DIGEST_TEXT_SIZE) { /* what is shorter has a hint */
            refuse(r, p,
                   "the id of an environment is %d hexadecimal digits; see "
                   "/v1/environments",
                   DIGEST_TEXT_SIZE - 1);
        }
        break;
    case PARAM_NUMBER:
        if (parse_id(text) < 0) {
            refuse(r, p, "must be a number from 1");
        }
        break;
    case PARAM_LIMIT:
        if (parse_id(text) < 1 || parse_id(text) > p->max) {
            refuse(r, p, "must be a number from 1 to %d", (int)p->max);
        }
        break;
    case PARAM_TIME:
        if (names_no_day(text)) {
            refuse(r, p, "there is no day %.10s", text);
        } else if (clock_parse_rfc3339(text, &first) != 0 || first <= 0) {
            refuse(r, p,
                   "must be a time like 2026-11-21T10:45:00Z (a + in an offset is "
                   "written %%2B)");
        }
        break;
    case PARAM_RANGE:
        if (!read_range(text, &first, &last)) {
            refuse(r, p, "must be a number, or a range like 30-40");
        }
        break;
    case PARAM_CHOICE:
        check_choice(r, p, text);
        break;
    }
}

/* The query parameters of ROUTE, separated by blanks.  Caller frees. */
static char *names_of(const struct route *route)
{
    struct buf names = BUF_INIT;

    for (const struct parameter *const *p = route->parameters; *p; p++) {
        if (!route_has_segment(route, *p)) {
            buf_printf(&names, "%s%s", names.length ? " " : "", (*p)->name);
        }
    }
    return names.length ? buf_detach(&names, NULL) : xstrdup("");
}

static void refuse_unknown(struct request *r, const char *name)
{
    char *known = names_of(r->route);

    problems_add_parameter(&r->problems, PROBLEM_UNKNOWN_PARAMETER, name,
                           "there is no such parameter here; there %s%s",
                           *known ? "are: " : "are none", known);
    free(known);
}

/* The parameter of ROUTE's query called NAME, or NULL. */
static const struct parameter *find(const struct route *route, const char *name)
{
    const struct parameter *const *p = route->parameters;

    while (*p && (strcmp((*p)->name, name) != 0 || route_has_segment(route, *p))) {
        p++;
    }
    return *p;
}

/* Whether the parameter at INDEX was given before. */
static bool is_repeated(const struct target *t, int index)
{
    for (int i = 0; i < index; i++) {
        if (strcmp(t->parameters[i].name, t->parameters[index].name) == 0) {
            return true;
        }
    }
    return false;
}

void params_check(struct request *r)
{
    const struct target *t = &r->target;

    for (int i = 0; i < t->parameter_count; i++) {
        const struct parameter *p = find(r->route, t->parameters[i].name);

        if (!p) {
            refuse_unknown(r, t->parameters[i].name);
        } else if (is_repeated(t, i)) {
            problems_add_parameter(&r->problems, PROBLEM_INVALID_PARAMETER, p->name,
                                   "is given twice");
        }
    }
}

/* Whether TEXT is a possible value of P, a segment of a path. */
static bool can_name(const struct parameter *p, const char *text)
{
    switch (p->type) {
    case PARAM_ID:
        return id_valid(text);
    case PARAM_NUMBER:
        return parse_id(text) > 0;
    case PARAM_DIGEST:
        return strlen(text) < DIGEST_TEXT_SIZE;
    default:
        return true;
    }
}

bool params_check_path(struct request *r)
{
    int segment = 0;

    for (const struct parameter *const *p = r->route->parameters; *p; p++) {
        const char *text;

        if (!route_has_segment(r->route, *p)) {
            continue;
        }
        text = r->arguments[segment++];
        if (!can_name(*p, text)) {
            reply_problem(r, PROBLEM_NOT_FOUND, "there is no %s '%.64s'", (*p)->noun,
                          text);
            return false;
        }
    }
    return true;
}

bool params_refused(struct request *r)
{
    if (r->problems.count > 0) {
        reply_problems(r);
        return true;
    }
    return false;
}

const char *param_value(struct request *r, const char *name)
{
    const struct parameter *p = find(r->route, name);
    const char *text = request_parameter(r, name);
    int before = r->problems.count;

    if (text) {
        check_value(r, p, text);
    } else if (p && p->required) {
        refuse(r, p, "must be given: the id of a %s", p->noun);
    }
    return r->problems.count == before ? text : NULL;
}

int param_limit(struct request *r)
{
    const char *text = param_value(r, "limit");

    return text ? (int)parse_id(text) : PARAM_LIMIT_DEFAULT;
}

int64_t param_number(struct request *r, const char *name)
{
    const char *text = param_value(r, name);

    return text ? parse_id(text) : 0;
}

int64_t param_time(struct request *r, const char *name)
{
    const char *text = param_value(r, name);
    int64_t ms = 0;

    if (text) {
        clock_parse_rfc3339(text, &ms);
    }
    return ms;
}

void param_range(struct request *r, const char *name, int64_t *ret_first,
                 int64_t *ret_last)
{
    const char *text = param_value(r, name);

    *ret_first = 0;
    *ret_last = INT64_MAX;
    if (text) {
        read_range(text, ret_first, ret_last);
    }
}

void param_text(struct request *r, const char *name, char *ret_text, size_t size)
{
    const char *text = param_value(r, name);

    copy_text(ret_text, size, text ? text : "");
}

json_t *body_parse(const char *data, size_t length, char ret_detail[BODY_DETAIL_SIZE])
{
    json_error_t error;
    json_t *root;

    if (length == 0) {
        snprintf(ret_detail, BODY_DETAIL_SIZE, "the body is empty");
        return NULL;
    }
    if (in_depth(data, length) > BODY_DEPTH_MAX) {
        snprintf(ret_detail, BODY_DETAIL_SIZE, "nested deeper than %d", BODY_DEPTH_MAX);
        return NULL;
    }
    root = json_loadb(data, length, JSON_REJECT_DUPLICATES, &error);
    if (!root && json_error_code(&error) == json_error_null_character) {
        snprintf(ret_detail, BODY_DETAIL_SIZE,
                 "line %d, column %d: text may not hold \\u0000", error.line,
                 error.column);
    } else if (!root && json_error_code(&error) == json_error_numeric_overflow) {
        snprintf(ret_detail, BODY_DETAIL_SIZE,
                 "line %d, column %d: a number that 64 bits do not hold; a seed beyond "
                 "9223372036854775807 is written as text",
                 error.line, error.column);
    } else if (!root) {
        snprintf(ret_detail, BODY_DETAIL_SIZE, "line %d, column %d: %s", error.line,
                 error.column, error.text);
    }
    return root;
}

bool body_type_is_json(const char *content_type)
{
    static const char *const types[] = { "application/json",
                                         "application/x-www-form-urlencoded" };
    size_t length;

    if (!content_type) {
        return true;
    }
    length = strcspn(content_type, "; \t");
    for (int i = 0; i < COUNT_OF(types); i++) {
        if (strlen(types[i]) == length &&
            strncasecmp(content_type, types[i], length) == 0) {
            return true;
        }
    }
    return false;
}

json_t *body_json(struct request *r)
{
    char detail[BODY_DETAIL_SIZE];
    json_t *body;

    if (!body_type_is_json(request_header(r, "Content-Type"))) {
        reply_problem(r, PROBLEM_MEDIA_TYPE, "send the body as application/json");
        reply_header(r, "Accept-Post", "application/json");
        return NULL;
    }
    body = body_parse(r->body.data, r->body.length, detail);
    if (!body) {
        reply_problem(r, PROBLEM_MALFORMED_JSON, "%s", detail);
    }
    return body;
}

bool idempotency_key_valid(const char *key)
{
    for (const char *c = key; *c; c++) {
        if (*c < 0x20 || *c > 0x7e) {
            return false;
        }
    }
    return *key && strlen(key) < IDEMPOTENCY_KEY_SIZE;
}

bool read_idempotency_key(struct request *r, char ret_key[IDEMPOTENCY_KEY_SIZE])
{
    const char *key = request_header(r, "Idempotency-Key");

    ret_key[0] = '\0';
    if (!key) {
        return true;
    }
    if (!idempotency_key_valid(key)) {
        reply_problem(r, PROBLEM_BAD_REQUEST,
                      "Idempotency-Key must be 1 to %d printable ASCII characters",
                      IDEMPOTENCY_KEY_SIZE - 1);
        return false;
    }
    copy_text(ret_key, IDEMPOTENCY_KEY_SIZE, key);
    return true;
}
