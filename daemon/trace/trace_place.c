#include "daemon/trace/trace_place.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The next code point of AT and how many bytes it takes; 0 bytes where there is none, or
 * where it is not UTF-8 as RFC 3629 has it (overlong forms, surrogates). */
static int decode(const char *at, uint32_t *ret_code)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    const unsigned char *bytes = (const unsigned char *)at;
    int length = bytes[0] < 0x80   ? 1
                 : bytes[0] < 0xc2 ? 0
                 : bytes[0] < 0xe0 ? 2
                 : bytes[0] < 0xf0 ? 3
                 : bytes[0] < 0xf5 ? 4
                                   : 0;
    uint32_t code = length > 1 ? bytes[0] & (0x7fu >> length) : bytes[0];

    if (bytes[0] == 0) {
        return 0;
    }
    for (int i = 1; i < length; i++) {
        if ((bytes[i] & 0xc0) != 0x80) {
            return 0;
        }
        code = code << 6 | (bytes[i] & 0x3fu);
    }
    if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
        return 0;
    }
    *ret_code = code;
    return length;
}

static bool is_shown(uint32_t code)
{
    return code >= 0x20 && (code < 0x7f || code > 0x9f) &&
           !(code >= 0x2028 && code <= 0x202e) && !(code >= 0x2066 && code <= 0x2069);
}

bool trace_place_valid(const char *place)
{
    size_t length = strnlen(place, TRACE_PLACE_MAX + 1);
    const char *at = place;

    while (*at && at - place <= TRACE_PLACE_MAX) {
        uint32_t code = 0;
        int bytes = decode(at, &code);

        if (bytes == 0 || !is_shown(code)) {
            return false;
        }
        at += bytes;
    }
    return length >= 1 && length <= TRACE_PLACE_MAX;
}

static const char *next_character(const char *at)
{
    at++;
    while (((unsigned char)*at & 0xc0) == 0x80) {
        at++;
    }
    return at;
}

bool trace_place_matches(const char *glob, const char *place)
{
    const char *star = NULL; /* the last '*' seen, and where in PLACE it ends so far */
    const char *after = place;

    while (*place) {
        if (*glob == '*') {
            star = glob++;
            after = place;
        } else if (*glob == '?') {
            glob++;
            place = next_character(place);
        } else if (*glob == *place) {
            glob++;
            place++;
        } else if (star) {
            glob = star + 1;
            after = next_character(after);
            place = after;
        } else {
            return false;
        }
    }
    return glob[strspn(glob, "*")] == '\0';
}

enum trace_role trace_place_role(const char *place)
{
    static const char variable[] = "variable/", before[] = "/before";
    size_t length = strlen(place);

    if (strncmp(place, "data/", 5) == 0) {
        return TRACE_ROLE_DATA;
    }
    if (strncmp(place, "rng/", 4) == 0) {
        return TRACE_ROLE_RNG;
    }
    if (strncmp(place, "optimizer/", 10) == 0) {
        return TRACE_ROLE_STATE;
    }
    if (strncmp(place, "output/", 7) == 0) {
        return TRACE_ROLE_OUTPUT;
    }
    if (length > sizeof variable + sizeof before - 2 &&
        strncmp(place, variable, sizeof variable - 1) == 0 &&
        strcmp(place + length - (sizeof before - 1), before) == 0) {
        return TRACE_ROLE_VARIABLE;
    }
    return TRACE_ROLE_OTHER;
}
