#include "workloads/worker/args_probes.h"

#include <stdio.h>
#include <string.h>

static const uint64_t STEP_MAX = 1000000000000;

const char *args_decimal(const char *text, uint64_t maximum, uint64_t *ret_value)
{
    uint64_t value = 0;
    const char *end = text;

    for (; *end >= '0' && *end <= '9'; end++) {
        uint64_t digit = (uint64_t)(*end - '0');

        if (value > maximum / 10 || (value == maximum / 10 && digit > maximum % 10)) {
            return NULL;
        }
        value = 10 * value + digit;
    }
    if (end == text) {
        return NULL;
    }
    *ret_value = value;
    return end;
}

static bool read_steps(const char *text, struct probes_request *request)
{
    uint64_t first = 0, last = 0;
    const char *end = args_decimal(text, STEP_MAX, &first);

    if (!end || *end != '-') {
        return false;
    }
    end = args_decimal(end + 1, STEP_MAX, &last);
    if (!end || *end != '\0' || first > last) {
        return false;
    }
    request->first_step = (int64_t)first;
    request->last_step = (int64_t)last;
    return true;
}

static bool place_allowed(const char *place)
{
    return place[0] && strlen(place) <= PROBES_PLACE_MAX;
}

static bool read_capture(const char *text, int iterations, struct probes_request *request)
{
    uint64_t iteration, step;
    const char *end = args_decimal(text, (uint64_t)iterations - 1, &iteration);

    if (!end || *end != ':') {
        return false;
    }
    end = args_decimal(end + 1, STEP_MAX, &step);
    if (!end || *end != ':' || !place_allowed(end + 1)) {
        return false;
    }
    request->capture = true;
    request->capture_iteration = (int)iteration;
    request->capture_step = (int64_t)step;
    request->capture_place = end + 1;
    return true;
}

static bool read_every(const char *text, struct probes_request *request)
{
    uint64_t every = 0;
    const char *end = text ? args_decimal(text, STEP_MAX, &every) : "";

    request->every = (int64_t)every;
    return end && *end == '\0';
}

bool args_probes_parse(const struct args_probes *texts, int iterations,
                       struct probes_request *ret_request,
                       char ret_message[ARGS_MESSAGE_SIZE])
{
    struct probes_request r = { .last_step = INT64_MAX, .names = texts->names };
    const char *useless = texts->names ? "--probe-names" : "--probe-steps";

    if (!read_every(texts->probes, &r)) {
        snprintf(ret_message, ARGS_MESSAGE_SIZE,
                 "--probes is '%.128s', not a number of steps (1: each, 0: none)",
                 texts->probes);
        return false;
    }
    if (r.every == 0 && (texts->names || texts->steps)) {
        snprintf(ret_message, ARGS_MESSAGE_SIZE,
                 "option '%s' says which probes, but --probes asks for none", useless);
        return false;
    }
    if (texts->names && !place_allowed(texts->names)) {
        snprintf(ret_message, ARGS_MESSAGE_SIZE,
                 "--probe-names is empty or longer than %d bytes", PROBES_PLACE_MAX);
        return false;
    }
    if (texts->steps && !read_steps(texts->steps, &r)) {
        snprintf(ret_message, ARGS_MESSAGE_SIZE,
                 "--probe-steps is '%.128s', not two numbers as in '10-20'",
                 texts->steps);
        return false;
    }
    if (texts->capture && !read_capture(texts->capture, iterations, &r)) {
        snprintf(
            ret_message, ARGS_MESSAGE_SIZE,
            "--capture is '%.128s', not ITERATION:STEP:PLACE with an iteration below "
            "%d",
            texts->capture, iterations);
        return false;
    }
    *ret_request = r;
    return true;
}
