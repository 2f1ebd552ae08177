/* The head of a request as the HTTP library leaves it in its buffer: the colon and both
 * bytes of each line's end are NULs.  The bytes are lines of fields; '\n' ends one. */
#include <string.h>

#include "api/http/head.h"
#include "daemon/base/buf.h"
#include "tests/fuzz/fuzz.h"

static const char version[] = "HTTP/1.1\0";

/* As a library would that takes everything. */
static const char *check(const char *lines, size_t size, char library)
{
    char name[] = "0.9.75";
    struct head head;
    const char *end = lines + size;
    const char *line = lines + sizeof version;

    name[4] = library;
    head_begin(&head, lines, name);
    while (line < end) {
        const char *next = memchr(line, '\n', (size_t)(end - line));
        const char *stop = next ? next : end;
        const char *colon = memchr(line, ':', (size_t)(stop - line));
        const char *value = colon ? colon + 1 : stop;

        head_field(&head, line, (size_t)((colon ? colon : stop) - line), value,
                   (size_t)(stop - value));
        line = stop + 2;
    }
    return head_end(&head, (uintptr_t)line + 2);
}

static void run(const uint8_t *data, size_t size)
{
    struct buf lines = BUF_INIT;
    const char *problem;

    buf_add(&lines, version, sizeof version);
    buf_add(&lines, data, size);
    problem = check(lines.data, lines.length, '7');
    FUZZ_CHECK(!problem || problem[0]);
    check(lines.data, lines.length, '9');
    buf_release(&lines);
}

FUZZ_TARGET("head", run);
