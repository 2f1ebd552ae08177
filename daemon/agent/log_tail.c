#include "daemon/agent/log_tail.h"

#include <string.h>

void log_tail_add(struct log_tail *tail, const char *data, size_t length)
{
    size_t skip = length > LOG_TAIL_SIZE ? length - LOG_TAIL_SIZE : 0;
    size_t at = (size_t)((tail->written + (int64_t)skip) % LOG_TAIL_SIZE);
    size_t keep = length - skip;
    size_t first = keep < LOG_TAIL_SIZE - at ? keep : LOG_TAIL_SIZE - at;

    memcpy(tail->ring + at, data + skip, first);
    memcpy(tail->ring, data + skip + first, keep - first);
    tail->written += (int64_t)length;
}

size_t log_tail_copy(const struct log_tail *tail, char ret_text[LOG_TAIL_SIZE])
{
    size_t at = (size_t)(tail->written % LOG_TAIL_SIZE);

    if (tail->written < LOG_TAIL_SIZE) {
        memcpy(ret_text, tail->ring, at);
        return at;
    }
    memcpy(ret_text, tail->ring + at, LOG_TAIL_SIZE - at);
    memcpy(ret_text + LOG_TAIL_SIZE - at, tail->ring, at);
    return LOG_TAIL_SIZE;
}
