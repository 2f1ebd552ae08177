#include "api/http/cursor.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const char alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void cursor_encode(char kind, const char *key, char ret_cursor[CURSOR_SIZE])
{
    char plain[CURSOR_KEY_SIZE + 2];
    size_t length = (size_t)snprintf(plain, sizeof plain, "%c:%s", kind, key);
    char *to = ret_cursor;
    uint32_t bits = 0;
    int have = 0;

    for (size_t i = 0; i < length; i++) {
        bits = bits << 8 | (unsigned char)plain[i];
        for (have += 8; have >= 6; have -= 6) {
            *to++ = alphabet[bits >> (have - 6) & 63];
        }
    }
    if (have > 0) {
        *to++ = alphabet[bits << (6 - have) & 63];
    }
    *to = '\0';
}

int cursor_decode(char kind, const char *cursor, char ret_key[CURSOR_KEY_SIZE])
{
    char plain[CURSOR_SIZE];
    size_t length = 0;
    uint32_t bits = 0;
    int have = 0;

    if (strlen(cursor) >= CURSOR_SIZE) {
        return -1;
    }
    for (; *cursor; cursor++) {
        const char *digit = strchr(alphabet, *cursor);

        if (!digit) {
            return -1;
        }
        bits = bits << 6 | (uint32_t)(digit - alphabet);
        have += 6;
        if (have >= 8) {
            have -= 8;
            plain[length++] = (char)(bits >> have & 255);
        }
    }
    plain[length] = '\0';
    if (length < 3 || length >= CURSOR_KEY_SIZE + 2 || plain[0] != kind ||
        plain[1] != ':' || strlen(plain) != length) {
        return -1;
    }
    memcpy(ret_key, plain + 2, length - 1);
    return 0;
}
