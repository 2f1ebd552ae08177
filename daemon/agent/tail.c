#include "daemon/agent/tail.h"

#include <string.h>

void tail_add(struct tail *tail, const char *data, size_t length)
{
    size_t skip = length > TAIL_SIZE ? length - TAIL_SIZE : 0;
    size_t at = (size_t)((tail->written + (int64_t)skip) % TAIL_SIZE);
    size_t keep = length - skip;
    size_t first = keep < TAIL_SIZE - at ? keep : TAIL_SIZE - at;

    memcpy(tail->ring + at, data + skip, first);
    memcpy(tail->ring, data + skip + first, keep - first);
    tail->written += (int64_t)length;
}

size_t tail_copy(const struct tail *tail, char ret_text[TAIL_SIZE])
{
    size_t at = (size_t)(tail->written % TAIL_SIZE);

    if (tail->written < TAIL_SIZE) {
        memcpy(ret_text, tail->ring, at);
        return at;
    }
    memcpy(ret_text, tail->ring + at, TAIL_SIZE - at);
    memcpy(ret_text + TAIL_SIZE - at, tail->ring, at);
    return TAIL_SIZE;
}
