#include "api/http/body.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/array.h"

/* How deep DATA nests, strings left out; exact for JSON that is well-formed. */
static int depth_of(const char *data, size_t length)
{
    int depth = 0;
    int deepest = 0;
    bool in_string = false;

    for (size_t i = 0; i < length; i++) {
        char c = data[i];

        if (in_string) {
            i += c == '\\';
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            depth++;
            deepest = depth > deepest ? depth : deepest;
        } else if (c == '}' || c == ']') {
            depth--;
        }
    }
    return deepest;
}

json_t *body_parse(const char *data, size_t length, char ret_detail[BODY_DETAIL_SIZE])
{
    json_error_t error;
    json_t *root;

    if (length == 0) {
        snprintf(ret_detail, BODY_DETAIL_SIZE, "the body is empty");
        return NULL;
    }
    if (depth_of(data, length) > BODY_DEPTH_MAX) {
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
