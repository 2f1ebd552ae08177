#include "daemon/jobs/job_circumstances.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { PATTERN_DIGITS = 8 };

static void read_contention(const json_t *value, json_t *options,
                            struct problems *problems)
{
    if (!json_is_integer(value) || json_integer_value(value) < 1 ||
        json_integer_value(value) > JOB_CONTENTION_MAX) {
        problems_add(problems, PROBLEM_INVALID, "/contention",
                     "must be an integer from 1 to %d, the load processes beside each "
                     "run; leave it out for none",
                     JOB_CONTENTION_MAX);
        return;
    }
    json_object_set(options, "contention", (json_t *)value);
}

static bool is_pattern(const char *text)
{
    return strlen(text) == PATTERN_DIGITS &&
           strspn(text, "0123456789abcdef") == PATTERN_DIGITS;
}

/* As a run says it back: without leading zeros, so never longer than its digits. */
static bool is_seed(const char *text)
{
    char *end;

    errno = 0;
    strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && (*text != '0' || text[1] == '\0') &&
           *end == '\0' && errno == 0;
}

/* VALUE: true asks for what is drawn in every process, false for nothing. */
static void read_drawn(const json_t *value, bool (*is_allowed)(const char *text),
                       const char *name, json_t *options, const char *pointer,
                       const char *wanted, struct problems *problems)
{
    const char *text = json_string_value(value);

    if (json_is_true(value)) {
        json_object_set_new(options, name, json_string("random"));
    } else if (text && is_allowed(text)) {
        json_object_set(options, name, (json_t *)value);
    } else if (!json_is_false(value)) {
        problems_add(problems, PROBLEM_INVALID, pointer, "must be true, false or %s",
                     wanted);
    }
}

void job_circumstances_read(const json_t *request, json_t *options,
                            struct problems *problems)
{
    const json_t *contention = json_object_get(request, "contention");
    const json_t *poison = json_object_get(request, "memory_poison");
    const json_t *jitter = json_object_get(request, "allocation_jitter");

    if (contention) {
        read_contention(contention, options, problems);
    }
    if (poison) {
        read_drawn(poison, is_pattern, "memory-poison", options, "/memory_poison",
                   "a pattern of 8 hex digits, in lower case", problems);
    }
    if (jitter) {
        read_drawn(jitter, is_seed, "allocation-jitter", options, "/allocation_jitter",
                   "a seed, as decimal text without leading zeros", problems);
    }
}
