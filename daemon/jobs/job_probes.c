#include "daemon/jobs/job_probes.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/nearest.h"
#include "daemon/evidence/catalogue.h"
#include "daemon/trace/trace.h"

static const json_int_t STEP_MAX = 1000000000000; /* as the worker's */

static void read_every(const json_t *value, const char *pointer, json_t *options,
                       struct problems *problems)
{
    json_int_t every = value ? json_integer_value(value) : 1;

    if (every < 1 || every > STEP_MAX) {
        problems_add(problems, PROBLEM_INVALID, pointer,
                     "must be %sa number of steps from 1: 10 records every tenth",
                     strcmp(pointer, "/probes") == 0 ? "true, false, an object or " : "");
        return;
    }
    json_object_set_new(options, "probes", json_integer(every));
}

/* Quotes and backslashes would make the text longer where it is stored; '?' stands for
 * them.  What begins with '-' is no value of an argument; '[-]' stands for that. */
static void read_names(const json_t *value, json_t *options, struct problems *problems)
{
    const char *names = json_string_value(value);

    if (!names || !trace_place_valid(names) || strpbrk(names, "\"\\") ||
        names[0] == '-') {
        problems_add(
            problems, PROBLEM_INVALID, "/probes/names",
            "must be a glob of 1 to %d bytes, without control characters, quotes "
            "and backslashes, that does not begin with '-': conv*/forward",
            JOB_PROBE_NAMES_MAX);
        return;
    }
    json_object_set(options, "probe-names", (json_t *)value);
}

static void read_steps(const json_t *value, json_t *options, struct problems *problems)
{
    const json_t *first = json_array_get(value, 0);
    const json_t *last = json_array_get(value, 1);
    char text[64];

    if (json_array_size(value) != 2 || !json_is_integer(first) ||
        !json_is_integer(last) || json_integer_value(first) < 0 ||
        json_integer_value(last) < json_integer_value(first) ||
        json_integer_value(last) > STEP_MAX) {
        problems_add(problems, PROBLEM_INVALID, "/probes/steps",
                     "must be the first and the last step, as in [100,199]");
        return;
    }
    snprintf(text, sizeof text, "%" PRId64 "-%" PRId64,
             (int64_t)json_integer_value(first), (int64_t)json_integer_value(last));
    json_object_set_new(options, "probe-steps", json_string(text));
}

static void check_members(const json_t *probes, struct problems *problems)
{
    static const char *const members[] = { "every", "names", "steps" };
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)probes, key, value)
    {
        const char *near = nearest_name(key, members, 3);

        if (!near || strcmp(near, key) != 0) {
            problems_add(problems, PROBLEM_UNKNOWN_MEMBER, "/probes",
                         "probes have no member '%.100s'%s%s%s", key,
                         near ? "; did you mean '" : "", near ? near : "",
                         near ? "'?" : "");
        }
    }
}

void job_probes_read(const json_t *request, json_t *options, struct problems *problems)
{
    const json_t *probes = json_object_get(request, "probes");

    if (!probes || json_is_false(probes)) {
        return;
    }
    if (!json_is_object(probes)) {
        read_every(json_is_true(probes) ? NULL : probes, "/probes", options, problems);
        return;
    }
    check_members(probes, problems);
    read_every(json_object_get(probes, "every"), "/probes/every", options, problems);
    if (json_object_get(probes, "names")) {
        read_names(json_object_get(probes, "names"), options, problems);
    }
    if (json_object_get(probes, "steps")) {
        read_steps(json_object_get(probes, "steps"), options, problems);
    }
}
