#include "api/http/dispatch.h"

#include <stdio.h>
#include <string.h>

#include "api/http/params.h"
#include "api/http/reply.h"
#include "daemon/base/array.h"
#include "daemon/base/nearest.h"

enum { ROUTES_MAX = 64 };

/* Whether PATTERN has the segments of TARGET; collects the segments that fill {…}. */
static bool pattern_matches(const struct route *route, const struct target *target,
                            const char *arguments[REQUEST_ARGUMENTS_MAX])
{
    const char *at = route->pattern;
    int found = 0;

    for (int i = 0; i < target->segment_count; i++) {
        const char *segment = target->segments[i];
        size_t length;

        if (*at++ != '/') {
            return false;
        }
        length = strcspn(at, "/");
        if (*at == '{') {
            if (!*segment || (route->exists && !route->exists(segment))) {
                return false;
            }
            arguments[found++] = segment;
        } else if (strlen(segment) != length || strncmp(at, segment, length) != 0) {
            return false;
        }
        at += length;
    }
    return *at == '\0' || (target->segment_count == 0 && strcmp(at, "/") == 0);
}

static bool offers(const struct route *route, enum format format)
{
    for (const enum format *f = route->formats; *f != FORMAT_NONE; f++) {
        if (*f == format) {
            return true;
        }
    }
    return false;
}

static void allow_method(char *allow, size_t size, const char *method)
{
    size_t used = strlen(allow);

    snprintf(allow + used, size - used, "%s%s%s", used ? ", " : "", method,
             strcmp(method, "GET") == 0 ? ", HEAD" : "");
}

/* Looks for the path as it stands; SUFFIX is a format that the route must offer. */
static bool find_path(const char *method, const struct target *target, enum format suffix,
                      struct dispatch_match *m)
{
    for (int i = 0; i < route_count; i++) {
        const char *arguments[REQUEST_ARGUMENTS_MAX] = { NULL };

        if (!pattern_matches(&routes[i], target, arguments) ||
            (suffix != FORMAT_NONE && !offers(&routes[i], suffix))) {
            continue;
        }
        allow_method(m->allow, sizeof m->allow, routes[i].method);
        if (strcmp(routes[i].method, method) == 0) {
            m->route = &routes[i];
            m->suffix = suffix;
            memcpy(m->arguments, arguments, sizeof arguments);
        }
    }
    return m->allow[0] != '\0';
}

void dispatch_find(const char *method, struct target *target,
                   struct dispatch_match *ret_match)
{
    char *last;
    char *dot;
    enum format suffix;

    *ret_match = (struct dispatch_match){ .route = NULL };
    if (find_path(method, target, FORMAT_NONE, ret_match) &&
        !(ret_match->route && strchr(ret_match->route->pattern, '{'))) {
        return;
    }
    if (target->segment_count == 0) {
        return;
    }
    last = (char *)target->segments[target->segment_count - 1];
    dot = strrchr(last, '.');
    suffix = dot && dot != last ? format_from_suffix(dot) : FORMAT_NONE;
    if (suffix != FORMAT_NONE) {
        struct dispatch_match cut = { .route = NULL };

        *dot = '\0';
        if (find_path(method, target, suffix, &cut)) {
            *ret_match = cut;
        } else {
            *dot = '.';
        }
    }
}

const char *dispatch_nearest(const char *path)
{
    const char *patterns[ROUTES_MAX];
    int count = 0;

    for (int i = 0; i < route_count && count < ROUTES_MAX; i++) {
        if (!routes[i].exists) {
            patterns[count++] = routes[i].pattern;
        }
    }
    return nearest_name(path, patterns, count);
}

static void refuse(struct request *r, const struct dispatch_match *m)
{
    const char *near;

    if (m->allow[0] && strcmp(r->method, "OPTIONS") == 0) {
        reply_nothing(r, MHD_HTTP_NO_CONTENT);
        reply_header(r, "Allow", "%s, OPTIONS", m->allow);
    } else if (m->allow[0]) {
        reply_problem(r, PROBLEM_METHOD, "%.20s does not apply to %.200s; %s do",
                      r->method, r->target.path, m->allow);
        reply_header(r, "Allow", "%s, OPTIONS", m->allow);
    } else {
        near = dispatch_nearest(r->target.path);
        reply_problem(r, PROBLEM_NOT_FOUND, "there is nothing at %.200s%s%s%s",
                      r->target.path, near ? "; did you mean " : "", near ? near : "",
                      near ? "?" : "");
    }
}

static void list_types(const struct route *route, char *ret_types, size_t size)
{
    ret_types[0] = '\0';
    for (const enum format *f = route->formats; *f != FORMAT_NONE; f++) {
        size_t used = strlen(ret_types);

        snprintf(ret_types + used, size - used, "%s%s", used ? ", " : "",
                 format_type(*f));
    }
}

/* The suffix of what the path names, where it is that of a format which the route does
 * not have; NULL otherwise.  No id ends so. */
static const char *unoffered_suffix(const struct request *r,
                                    const struct dispatch_match *m)
{
    const struct target *t = &r->target;
    const char *pattern = m->route->pattern;
    const char *dot =
        t->segment_count > 0 ? strrchr(t->segments[t->segment_count - 1], '.') : NULL;

    return dot && m->suffix == FORMAT_NONE && strcmp(m->route->method, "GET") == 0 &&
                   pattern[strlen(pattern) - 1] == '}' && !m->route->exists &&
                   format_from_suffix(dot) != FORMAT_NONE
               ? dot
               : NULL;
}

static bool choose_format(struct request *r, const struct dispatch_match *m)
{
    const char *suffix = unoffered_suffix(r, m);
    char types[128];

    if (suffix) {
        list_types(r->route, types, sizeof types);
        reply_problem(r, PROBLEM_NOT_FOUND, "this is not available as %s, only as %s",
                      suffix, types);
        return false;
    }
    r->format = m->suffix != FORMAT_NONE
                    ? m->suffix
                    : negotiate(request_header(r, "Accept"), r->route->formats);
    if (r->format != FORMAT_NONE) {
        return true;
    }
    list_types(r->route, types, sizeof types);
    reply_problem(r, PROBLEM_NOT_ACCEPTABLE, "this is available as %s", types);
    return false;
}

/* What would be stored while the service stops might be stored no more, and in a damaged
 * database nobody knows what is. */
static bool takes_nothing(struct request *r)
{
    static const struct {
        enum health_condition condition;
        enum problem_kind problem;
    } refusals[] = { { HEALTH_STOPPING, PROBLEM_NOT_READY },
                     { HEALTH_DATABASE, PROBLEM_STORAGE } };
    const struct api_hooks *hooks = &r->api->hooks;
    const struct health *health = hooks->health(hooks->arg);

    for (int i = 0; i < COUNT_OF(refusals); i++) {
        const char *cause = health->conditions[refusals[i].condition].cause;

        if (strcmp(r->route->method, "GET") != 0 && cause[0]) {
            reply_problem(r, refusals[i].problem, "%s", cause);
            return true;
        }
    }
    return false;
}

void dispatch(struct request *r)
{
    struct dispatch_match m;

    if (strcmp(r->raw, "*") == 0) {
        reply_nothing(r, MHD_HTTP_NO_CONTENT);
        reply_header(r, "Allow", "GET, HEAD, POST, PUT, DELETE, OPTIONS");
        return;
    }
    dispatch_find(r->method, &r->target, &m);
    r->route = m.route;
    memcpy(r->arguments, m.arguments, sizeof r->arguments);
    if (!r->route) {
        refuse(r, &m);
        return;
    }
    r->heavy = r->route->heavy;
    if (!choose_format(r, &m) || takes_nothing(r)) {
        return;
    }
    /* The page keeps its state in the query. */
    if (r->format != FORMAT_HTML) {
        params_check(r);
    }
    if (!params_refused(r) && params_check_path(r)) {
        r->route->handle(r);
    }
}
