#include "daemon/process/members.h"

#include <stdarg.h>
#include <string.h>

/* What a member of that KIND, as json_unpack has it, must be; NULL: VALUE is that. */
static const char *missed(char kind, const json_t *value)
{
    switch (kind) {
    case 's':
        return json_is_string(value) ? NULL : "a text";
    case 'I':
        return json_is_integer(value) ? NULL : "a whole number";
    case 'F':
        return json_is_number(value) ? NULL : "a number";
    default:
        return NULL;
    }
}

/* Says which member json_unpack did not find, or not so. */
static enum err_code name_member(const json_t *object, struct err *err,
                                 const char *format, va_list args)
{
    for (; (format = strpbrk(format, ":?")) != NULL; format++) {
        const char *key = va_arg(args, const char *);
        const json_t *value = json_object_get(object, key);
        const char *kind = missed(format[1], value);

        (void)va_arg(args, void *);
        if (format[2] == '%') {
            (void)va_arg(args, void *); /* the length of the text */
        }
        if (!value && *format == '?') {
            continue;
        }
        if (!value) {
            return err_set(err, ERR_PROTOCOL, "%s is missing", key);
        }
        if (kind) {
            return err_set(err, ERR_PROTOCOL, "%s is not %s", key, kind);
        }
    }
    return err_set(err, ERR_PROTOCOL, "it is not an object");
}

enum err_code members_unpack(const json_t *object, struct err *err, const char *format,
                             ...)
{
    enum err_code code = ERR_OK;
    json_error_t error;
    va_list args, again;

    va_start(args, format);
    va_copy(again, args);
    if (json_vunpack_ex((json_t *)object, &error, 0, format, args) != 0) {
        code = name_member(object, err, format, again);
    }
    va_end(again);
    va_end(args);
    return code;
}

enum err_code member_check_hex(const char *name, const char *text, size_t digits,
                               struct err *err)
{
    if (strlen(text) != digits || strspn(text, "0123456789abcdef") != digits) {
        return err_set(err, ERR_PROTOCOL, "%s is not %zu hex digits", name, digits);
    }
    return ERR_OK;
}
