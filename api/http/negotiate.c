#include "api/http/negotiate.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *format_type(enum format format)
{
    static const char *const types[] = {
        [FORMAT_NONE] = "",
        [FORMAT_JSON] = "application/json",
        [FORMAT_TEXT] = "text/plain",
        [FORMAT_CSV] = "text/csv",
        [FORMAT_HTML] = "text/html",
        [FORMAT_EVENTS] = "text/event-stream",
        [FORMAT_OPENMETRICS] = "application/openmetrics-text",
        [FORMAT_FILE] = "application/octet-stream",
    };

    return types[format];
}

const char *format_content_type(enum format format)
{
    switch (format) {
    case FORMAT_TEXT:
        return "text/plain; charset=utf-8";
    case FORMAT_CSV:
        return "text/csv; charset=utf-8; header=present";
    case FORMAT_HTML:
        return "text/html; charset=utf-8";
    case FORMAT_OPENMETRICS:
        return "application/openmetrics-text; version=1.0.0; charset=utf-8";
    case FORMAT_NONE:
    case FORMAT_JSON:
    case FORMAT_EVENTS:
    case FORMAT_FILE:
        break;
    }
    return format_type(format);
}

enum format format_from_suffix(const char *suffix)
{
    if (strcmp(suffix, ".json") == 0) {
        return FORMAT_JSON;
    }
    if (strcmp(suffix, ".txt") == 0) {
        return FORMAT_TEXT;
    }
    return strcmp(suffix, ".csv") == 0 ? FORMAT_CSV : FORMAT_NONE;
}

/* One media range: "text/ * ; q=0.5". */
struct range {
    char type[64];
    int quality; /* thousandths */
};

static int parse_quality(const char *text)
{
    char *end;
    double q = strtod(text, &end);

    return end == text || !(q >= 0) ? 0 : q > 1 ? 1000 : (int)(q * 1000 + 0.5);
}

/* Reads one range of length LENGTH; false if it is not one. */
static bool parse_range(const char *text, size_t length, struct range *ret_range)
{
    char copy[256];
    char *rest = copy;
    char *type;

    if (length >= sizeof copy) {
        return false;
    }
    memcpy(copy, text, length);
    copy[length] = '\0';
    type = strsep(&rest, ";");
    type += strspn(type, " \t");
    type[strcspn(type, " \t")] = '\0';
    if (!strchr(type, '/') || strlen(type) >= sizeof ret_range->type) {
        return false;
    }
    snprintf(ret_range->type, sizeof ret_range->type, "%s", type);
    ret_range->quality = 1000;
    for (char *p = strsep(&rest, ";"); p; p = strsep(&rest, ";")) {
        p += strspn(p, " \t");
        if (strncasecmp(p, "q=", 2) == 0) {
            ret_range->quality = parse_quality(p + 2);
        }
    }
    return true;
}

/* How exactly RANGE names TYPE: 0 not at all, 3 exactly. */
static int specificity(const char *range, const char *type)
{
    size_t major = strcspn(type, "/") + 1;

    if (strcmp(range, "*/*") == 0) {
        return 1;
    }
    if (strncasecmp(range, type, major) == 0 && strcmp(range + major, "*") == 0) {
        return 2;
    }
    return strcasecmp(range, type) == 0 ? 3 : 0;
}

/* The quality ACCEPT gives TYPE: that of the most exact range.  -1 if ACCEPT holds no
 * range at all. */
static int quality_of(const char *accept, const char *type)
{
    int best = 0;
    int quality = -1;

    while (*accept) {
        size_t length = strcspn(accept, ",");
        struct range range;

        if (parse_range(accept, length, &range)) {
            int exact = specificity(range.type, type);

            quality = quality < 0 ? 0 : quality;
            if (exact > best) {
                best = exact;
                quality = range.quality;
            }
        }
        accept += length + (accept[length] == ',');
    }
    return quality;
}

enum format negotiate(const char *accept, const enum format *offered)
{
    enum format best = FORMAT_NONE;
    int best_quality = 0;

    if (!accept || offered[0] == FORMAT_FILE) {
        return offered[0];
    }
    for (; *offered != FORMAT_NONE; offered++) {
        int quality = quality_of(accept, format_type(*offered));

        if (quality < 0) {
            return *offered;
        }
        if (quality > best_quality) {
            best_quality = quality;
            best = *offered;
        }
    }
    return best;
}
