/* The description of the interface (OpenAPI 3.1): the paths from the table of routes,
 * everything that they refer to from api/openapi.json. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "api/http/handlers.h"
#include "api/http/reply.h"
#include "api/http/routes.h"
#include "daemon/base/embed.h"
#include "daemon/base/json_out.h"

/* The patterns of ids: ULIDs of jobs and runs, digests of environments. */
#define ID_PATTERN     "^[0-7][0-9A-HJKMNP-TV-Z]{25}$"
#define DIGEST_PATTERN "^[0-9a-f]{32}$"
#define RANGE_PATTERN  "^[0-9]{1,19}(-[0-9]{1,19})?$"

static void ref_json(struct json_out *out, const char *key, const char *kind,
                     const char *name)
{
    out_open(out, key, '{');
    out_format(out, "$ref", "#/components/%s/%s", kind, name);
    out_close(out, '}');
}

static void choices_json(struct json_out *out, const struct parameter *p)
{
    out_open(out, "enum", '[');
    for (int i = 0; p->choice(i); i++) {
        out_text(out, NULL, p->choice(i));
    }
    out_close(out, ']');
    if (p->has_default) {
        out_text(out, "default", p->choice(0));
    }
}

/* What P may hold: bounds in addition to its type. */
static void bounds_json(struct json_out *out, const struct parameter *p)
{
    switch (p->type) {
    case PARAM_TEXT:
        break;
    case PARAM_NAME:
        out_int(out, "minLength", 1);
        out_int(out, "maxLength", p->max);
        break;
    case PARAM_ID:
        out_text(out, "pattern", ID_PATTERN);
        break;
    case PARAM_DIGEST:
        out_text(out, "pattern", DIGEST_PATTERN);
        break;
    case PARAM_RANGE:
        out_text(out, "pattern", RANGE_PATTERN);
        break;
    case PARAM_NUMBER:
        out_int(out, "minimum", 1);
        break;
    case PARAM_LIMIT:
        out_int(out, "minimum", 1);
        out_int(out, "maximum", p->max);
        out_int(out, "default", PARAM_LIMIT_DEFAULT);
        break;
    case PARAM_TIME:
        out_text(out, "format", "date-time");
        break;
    case PARAM_CHOICE:
        choices_json(out, p);
        break;
    }
}

static void parameter_json(struct json_out *out, const struct route *route,
                           const struct parameter *p)
{
    bool is_segment = route_has_segment(route, p);
    bool is_number = p->type == PARAM_NUMBER || p->type == PARAM_LIMIT;

    out_open(out, NULL, '{');
    out_text(out, "name", p->name);
    out_text(out, "in", is_segment ? "path" : "query");
    if (p->help) {
        out_text(out, "description", p->help);
    }
    if (is_segment || p->required) {
        out_bool(out, "required", true);
    }
    out_open(out, "schema", '{');
    out_text(out, "type", is_number ? "integer" : "string");
    bounds_json(out, p);
    out_close(out, '}');
    out_close(out, '}');
}

static bool is_get(const struct route *route)
{
    return strcmp(route->method, "GET") == 0;
}

/* Whether the answer is whole, and so has an ETag. */
static bool is_whole(const struct route *route)
{
    return is_get(route) && route->formats[0] != FORMAT_EVENTS;
}

static void parameters_json(struct json_out *out, const struct route *route)
{
    out_open(out, "parameters", '[');
    for (const struct parameter *const *p = route->parameters; *p; p++) {
        parameter_json(out, route, *p);
    }
    if (is_whole(route)) {
        ref_json(out, NULL, "parameters", "IfNoneMatch");
    } else if (route->formats[0] == FORMAT_EVENTS) {
        ref_json(out, NULL, "parameters", "LastEventId");
    } else if (route->creates) {
        ref_json(out, NULL, "parameters", "IdempotencyKey");
    } else if (route->refusals && strstr(route->refusals, "412")) {
        ref_json(out, NULL, "parameters", "IfMatch");
    }
    out_close(out, ']');
}

static void content_json(struct json_out *out, const struct route *route)
{
    out_open(out, "content", '{');
    for (const enum format *f = route->formats; *f != FORMAT_NONE; f++) {
        out_open(out, *f == FORMAT_FILE ? "*/*" : format_type(*f), '{');
        if (*f == FORMAT_JSON && route->schema) {
            ref_json(out, "schema", "schemas", route->schema);
        } else {
            out_open(out, "schema", '{');
            out_text(out, "type", *f == FORMAT_JSON ? "object" : "string");
            out_close(out, '}');
        }
        out_close(out, '}');
    }
    out_close(out, '}');
}

static bool has_pages(const struct route *route)
{
    const struct parameter *const *p = route->parameters;

    while (*p && strcmp((*p)->name, "cursor") != 0) {
        p++;
    }
    return *p != NULL;
}

static void success_json(struct json_out *out, const struct route *route)
{
    out_open(out, "200", '{');
    out_text(out, "description", route->help);
    content_json(out, route);
    if (is_whole(route)) {
        out_open(out, "headers", '{');
        ref_json(out, "ETag", "headers", "ETag");
        if (has_pages(route)) {
            ref_json(out, "Link", "headers", "Link");
        }
        out_close(out, '}');
    }
    out_close(out, '}');
}

static void refusals_json(struct json_out *out, const char *statuses)
{
    char status[4];

    for (; statuses && *statuses; statuses += strspn(statuses, " ")) {
        memcpy(status, statuses, 3);
        status[3] = '\0';
        ref_json(out, status, "responses", status);
        statuses += 3;
    }
}

static void responses_json(struct json_out *out, const struct route *route)
{
    char name[64];

    out_open(out, "responses", '{');
    if (route->creates) {
        snprintf(name, sizeof name, "%sCreated", route->schema);
        ref_json(out, "201", "responses", name);
        snprintf(name, sizeof name, "%sReplayed", route->schema);
        ref_json(out, "200", "responses", name);
    } else if (route->makes) {
        snprintf(name, sizeof name, "%sCreated", route->schema);
        ref_json(out, "201", "responses", name);
    } else {
        success_json(out, route);
    }
    if (is_whole(route)) {
        ref_json(out, "304", "responses", "304");
    }
    refusals_json(out, "400 403");
    refusals_json(out, strchr(route->pattern, '{') ? "404" : "");
    refusals_json(out, route->formats[0] == FORMAT_FILE ? "422 500" : "406 422 500");
    refusals_json(out, route->refusals);
    out_close(out, '}');
}

static void operation_json(struct json_out *out, const struct route *route)
{
    char method[16];
    size_t i = 0;

    do {
        method[i] = (char)tolower((unsigned char)route->method[i]);
    } while (route->method[i++]);
    out_open(out, method, '{');
    out_text(out, "operationId", route->operation);
    out_text(out, "summary", route->help);
    if (route->notes) {
        out_text(out, "description", route->notes);
    }
    parameters_json(out, route);
    if (route->body) {
        ref_json(out, "requestBody", "requestBodies", route->body);
    }
    responses_json(out, route);
    out_close(out, '}');
}

/* All routes of the path of routes[FIRST], unless one before has it. */
static void path_json(struct json_out *out, int first)
{
    const char *pattern = routes[first].pattern;

    for (int i = 0; i < first; i++) {
        if (strcmp(routes[i].pattern, pattern) == 0) {
            return;
        }
    }
    out_open(out, pattern, '{');
    for (int i = first; i < route_count; i++) {
        if (strcmp(routes[i].pattern, pattern) == 0) {
            operation_json(out, &routes[i]);
        }
    }
    out_close(out, '}');
}

static char *render(void)
{
    const struct embed *file = embed_find("api/openapi.json");
    const char *end = strrchr(file->start, '}');
    struct json_out out = JSON_OUT_INIT;

    /* The file is an object; "paths" becomes its last member. */
    buf_add(&out.buf, file->start, (size_t)(end - file->start));
    out.comma = true;
    out_open(&out, "paths", '{');
    for (int i = 0; i < route_count; i++) {
        path_json(&out, i);
    }
    out_close(&out, '}');
    buf_puts(&out.buf, "}\n");
    return buf_detach(&out.buf, NULL);
}

void openapi_get(struct request *r)
{
    static char *document; /* the same for as long as the process lives */

    if (!document) {
        document = render();
    }
    reply_file(r, "application/json", document, strlen(document));
}
