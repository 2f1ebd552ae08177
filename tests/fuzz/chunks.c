/* A body in chunks, however it comes. */
#include <string.h>

#include "api/http/chunks.h"
#include "tests/fuzz/fuzz.h"

static void run(const uint8_t *data, size_t size)
{
    struct chunks whole, parts;
    size_t length;

    chunks_begin(&whole);
    chunks_begin(&parts);
    chunks_take(&whole, (const char *)data, size);
    for (size_t i = 0; i < size; i += length) {
        length = data[i] % 7 + 1;
        length = length < size - i ? length : size - i;
        chunks_take(&parts, (const char *)data + i, length);
    }
    FUZZ_CHECK(whole.at == parts.at && whole.left == parts.left &&
               whole.problem == parts.problem);
    FUZZ_CHECK(chunks_end(&whole) || whole.at == CHUNKS_DONE);
    /* What is taken has no LF but behind CR, unless chunks hold it. */
    FUZZ_CHECK(!size || data[0] != '\n' || chunks_problem(&whole));
    FUZZ_CHECK(whole.at == CHUNKS_DATA || whole.at == CHUNKS_DATA_CR || !whole.left ||
               whole.at == CHUNKS_SIZE || whole.at == CHUNKS_EXTENSION ||
               whole.at == CHUNKS_SIZE_LF);
}

FUZZ_TARGET("chunks", run);
