#include "daemon/base/mem.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *must(void *memory)
{
    if (!memory) {
        fputs("reprod: out of memory\n", stderr);
        abort();
    }
    return memory;
}

void *xmalloc(size_t size)
{
    return must(malloc(size ? size : 1));
}

void *xcalloc(size_t count, size_t size)
{
    return must(calloc(count ? count : 1, size ? size : 1));
}

void *xrealloc(void *old, size_t size)
{
    return must(realloc(old, size ? size : 1));
}

void *xgrow(void *list, int64_t count, size_t size)
{
    bool is_full = (count & (count - 1)) == 0;

    return is_full ? xrealloc(list, (size_t)(count ? 2 * count : 1) * size) : list;
}

char *xstrdup(const char *text)
{
    return must(strdup(text));
}

char *xstrndup(const char *text, size_t length)
{
    return must(strndup(text, length));
}

char *xvasprintf(const char *format, va_list args)
{
    char *text = NULL;

    if (vasprintf(&text, format, args) < 0) {
        text = NULL;
    }
    return must(text);
}

char *xasprintf(const char *format, ...)
{
    char *text;
    va_list args;

    va_start(args, format);
    text = xvasprintf(format, args);
    va_end(args);
    return text;
}

void free_texts(char **texts)
{
    for (char **text = texts; text && *text; text++) {
        free(*text);
    }
    free(texts);
}

void copy_text(char *dest, size_t size, const char *text)
{
    size_t length = strnlen(text, size - 1);

    memcpy(dest, text, length);
    dest[length] = '\0';
}
