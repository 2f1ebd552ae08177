/* Values of headers: Accept, Content-Type, and Host with Origin (up to a line feed, and
 * behind it). */
#include <string.h>

#include "api/http/guard.h"
#include "api/http/negotiate.h"
#include "api/http/params.h"
#include "tests/fuzz/fuzz.h"

static void run(const uint8_t *data, size_t size)
{
    static const enum format offered[] = { FORMAT_JSON, FORMAT_TEXT, FORMAT_HTML,
                                           FORMAT_NONE };
    char *text = fuzz_text(data, size);
    char *origin = strchr(text, '\n');
    enum format format = negotiate(text, offered);

    FUZZ_CHECK(format == FORMAT_NONE || format == FORMAT_JSON || format == FORMAT_TEXT ||
               format == FORMAT_HTML);
    body_type_is_json(text);
    if (origin) {
        *origin++ = '\0';
        /* A page of this server's own is on this machine. */
        FUZZ_CHECK(!guard_origin_is_own(origin, text) || strcasestr(origin, text));
    }
    guard_host_is_loopback(text);
    free(text);
}

FUZZ_TARGET("headers", run);
