#include "daemon/base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *err_name(enum err_code code)
{
    switch (code) {
    case ERR_OK:
        return "ok";
#define X(code, text)                                                                    \
    case code:                                                                           \
        return text;
        ERR_MAP(X)
#undef X
    }
    return "unknown";
}

enum err_code err_set(struct err *err, enum err_code code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    err->code = code;
    return code;
}

enum err_code err_set_errno(struct err *err, int errnum, const char *format, ...)
{
    char reason[128];
    size_t used;
    va_list args;

    va_start(args, format);
    vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    used = strlen(err->message);
    snprintf(err->message + used, sizeof err->message - used, ": %s",
             strerror_r(errnum, reason, sizeof reason));
    err->code = ERR_IO;
    return ERR_IO;
}

enum err_code err_wrap(struct err *err, const char *format, ...)
{
    char inner[sizeof err->message];
    size_t used;
    va_list args;

    memcpy(inner, err->message, sizeof inner);
    va_start(args, format);
    vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    used = strlen(err->message);
    snprintf(err->message + used, sizeof err->message - used, ": %s", inner);
    return err->code;
}
