/* If-None-Match: the list up to a line feed, and the validator behind it. */
#include <string.h>

#include "api/http/reply.h"
#include "tests/fuzz/fuzz.h"

static void run(const uint8_t *data, size_t size)
{
    char *list = fuzz_text(data, size);
    char *line = strchr(list, '\n');
    char etag[ETAG_SIZE], both[2 * ETAG_SIZE + 8];

    if (line) {
        *line++ = '\0';
        etag_of(line, strlen(line), etag);
        etag_listed(list, etag);
        snprintf(both, sizeof both, "\"x\", W/%s , \"y\"", etag);
        FUZZ_CHECK(etag_listed(both, etag) && etag_listed("*", etag));
        FUZZ_CHECK(!etag_listed_strongly(list, etag) || etag_listed(list, etag));
        FUZZ_CHECK(!etag_listed("", etag) && !etag_listed("\"x\"", etag));
        /* What names it holds it. */
        FUZZ_CHECK(!etag_listed(list, etag) || strchr(list, '*') || strstr(list, etag));
    }
    free(list);
}

FUZZ_TARGET("etag", run);
