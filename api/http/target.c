#include "api/http/target.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes TEXT in place. */
static const char *decode(char *text, bool plus_is_space)
{
    char *to = text;

    for (const char *from = text; *from; from++) {
        unsigned char c = (unsigned char)*from;

        if (c == '%') {
            int high = hex_digit(from[1]);
            int low = high < 0 ? -1 : hex_digit(from[2]);

            if (low < 0) {
                return "a % in the target is not followed by two hexadecimal digits";
            }
            c = (unsigned char)(high * 16 + low);
            from += 2;
        } else if (c == '+' && plus_is_space) {
            c = ' ';
        }
        if (c < 0x20 || c == 0x7f) {
            return "the target holds a control character";
        }
        *to++ = (char)c;
    }
    *to = '\0';
    return NULL;
}

static const char *parse_path(char *path, struct target *t)
{
    if (path[0] != '/') {
        return "the target does not begin with /";
    }
    if (!path[1]) {
        return NULL;
    }
    for (char *segment = path + 1; segment;) {
        char *slash = strchr(segment, '/');
        const char *problem;

        if (slash) {
            *slash++ = '\0';
        }
        if (t->segment_count == TARGET_SEGMENTS_MAX) {
            return "the path has too many segments";
        }
        problem = decode(segment, false);
        if (problem) {
            return problem;
        }
        t->segments[t->segment_count++] = segment;
        segment = slash;
    }
    return NULL;
}

static const char *parse_query(char *query, struct target *t)
{
    char *rest = query;

    for (char *pair = strsep(&rest, "&"); pair; pair = strsep(&rest, "&")) {
        char *value = strchr(pair, '=');
        const char *problem;

        if (!*pair) {
            continue;
        }
        if (t->parameter_count == TARGET_PARAMETERS_MAX) {
            return "the query has too many parameters";
        }
        if (value) {
            *value++ = '\0';
        } else {
            value = pair + strlen(pair);
        }
        problem = decode(pair, true);
        if (!problem) {
            problem = decode(value, true);
        }
        if (problem) {
            return problem;
        }
        t->parameters[t->parameter_count++] = (struct target_parameter){ pair, value };
    }
    return NULL;
}

/* Takes "http://host" off an absolute-form target (RFC 9112, 3.2.2); returns the path. */
static char *strip_authority(char *text, struct target *t)
{
    char *slash;

    if (strncasecmp(text, "http://", 7) != 0) {
        return text;
    }
    slash = strchr(text + 7, '/');
    if (!slash) {
        return text;
    }
    memmove(text, text + 7, (size_t)(slash - (text + 7)));
    text[slash - (text + 7)] = '\0';
    t->authority = text;
    return slash;
}

const char *target_parse(const char *raw, struct target *ret_target)
{
    size_t length = strlen(raw);
    char *path;
    char *query;
    const char *problem;

    *ret_target = (struct target){ .text = xmalloc(2 * length + 2) };
    memcpy(ret_target->text, raw, length + 1);
    path = strip_authority(ret_target->text, ret_target);
    query = strchr(path, '?');
    if (query) {
        *query++ = '\0';
    }
    /* Segments are cut in a copy, so that the path stays whole for messages. */
    ret_target->path = path;
    path = memcpy(ret_target->text + length + 1, path, strlen(path) + 1);
    problem = parse_path(path, ret_target);
    return problem || !query ? problem : parse_query(query, ret_target);
}

void target_release(struct target *target)
{
    free(target->text);
    *target = (struct target){ 0 };
}

const char *target_parameter(const struct target *target, const char *name)
{
    for (int i = 0; i < target->parameter_count; i++) {
        if (strcmp(target->parameters[i].name, name) == 0) {
            return target->parameters[i].value;
        }
    }
    return NULL;
}
