/* Idempotency-Key and Last-Event-ID, both of the same text. */
#include <inttypes.h>
#include <string.h>

#include "api/http/params.h"
#include "tests/fuzz/fuzz.h"

static void run(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    int64_t id = parse_event_id(text);
    char again[32];

    if (idempotency_key_valid(text)) {
        FUZZ_CHECK(text[0] && strlen(text) < IDEMPOTENCY_KEY_SIZE);
        for (const char *c = text; *c; c++) {
            FUZZ_CHECK(*c >= ' ' && *c <= '~');
        }
    }
    FUZZ_CHECK(id >= -1);
    if (id >= 0) {
        FUZZ_CHECK(strspn(text, "0123456789") == strlen(text));
        snprintf(again, sizeof again, "%" PRId64, id);
        FUZZ_CHECK(parse_event_id(again) == id);
    }
    free(text);
}

FUZZ_TARGET("header_values", run);
