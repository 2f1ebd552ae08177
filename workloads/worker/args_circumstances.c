#include "workloads/worker/args_circumstances.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/worker/args_probes.h"

enum { PATTERN_DIGITS = 8 };

static bool read_decimal(const char *text, uint64_t maximum, uint64_t *ret_value)
{
    const char *end = args_decimal(text, maximum, ret_value);

    return end && *end == '\0';
}

static bool read_contention(const char *text, struct circumstances *c)
{
    uint64_t count;

    if (!read_decimal(text, CONTENTION_MAX, &count) || count < 1) {
        return false;
    }
    c->contention = (int)count;
    return true;
}

static bool read_poison(const char *text, struct circumstances *c)
{
    c->is_poisoned = true;
    if (strcmp(text, "random") == 0) {
        c->pattern = (uint32_t)circumstances_random();
        return true;
    }
    c->pattern = (uint32_t)strtoul(text, NULL, 16);
    return strlen(text) == PATTERN_DIGITS &&
           strspn(text, "0123456789abcdef") == PATTERN_DIGITS;
}

static bool read_jitter(const char *text, struct circumstances *c)
{
    c->is_jittered = true;
    if (strcmp(text, "random") == 0) {
        c->jitter = circumstances_random();
        return true;
    }
    return read_decimal(text, UINT64_MAX, &c->jitter);
}

bool args_circumstances_parse(const struct args_circumstances *texts,
                              struct circumstances *ret_circumstances,
                              char ret_message[ARGS_MESSAGE_SIZE])
{
    struct circumstances c = { 0 };

    if (texts->contention && !read_contention(texts->contention, &c)) {
        snprintf(ret_message, ARGS_MESSAGE_SIZE,
                 "--contention is '%.128s', not a number in 1 .. %d", texts->contention,
                 CONTENTION_MAX);
        return false;
    }
    if (texts->poison && !read_poison(texts->poison, &c)) {
        snprintf(ret_message, ARGS_MESSAGE_SIZE,
                 "--memory-poison is '%.128s', neither 'random' nor %d hex digits",
                 texts->poison, PATTERN_DIGITS);
        return false;
    }
    if (texts->jitter && !read_jitter(texts->jitter, &c)) {
        snprintf(ret_message, ARGS_MESSAGE_SIZE,
                 "--allocation-jitter is '%.128s', neither 'random' nor a number in "
                 "0 .. 2^64-1",
                 texts->jitter);
        return false;
    }
    *ret_circumstances = c;
    return true;
}
