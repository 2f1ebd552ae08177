#include "daemon/jobs/request.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/array.h"
#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"
#include "daemon/trace/trace.h"

enum { LIST_MAX = 1000 };

static const json_int_t STEP_MAX = 1000000000000; /* as the worker's */

bool name_list_allows(const json_t *list, const char *name)
{
    size_t i;
    json_t *item;

    json_array_foreach((json_t *)list, i, item)
    {
        const char *listed = json_string_value(item);

        if (listed && strcmp(listed, name) == 0) {
            return true;
        }
    }
    return list == NULL;
}

/* What may be wrong with a value beyond its kind */

static void check_names(struct in_reader *reader, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        char key[24];
        bool listed = false;

        snprintf(key, sizeof key, "%zu", i);
        for (size_t j = 0; j < i; j++) {
            listed |= json_equal(json_array_get(list, i), json_array_get(list, j));
        }
        if (!name || !*name) {
            in_refuse(reader, key, "must be a name");
        } else if (listed) {
            in_refuse(reader, key, "'%.100s' is listed twice", name);
        }
    }
}

static bool is_all(const json_t *value)
{
    return json_is_string(value) && strcmp(json_string_value(value), "all") == 0;
}

static void check_stacks(struct in_reader *reader, const json_t *value)
{
    if (is_all(value)) {
        return;
    }
    if (json_array_size(value) == 0 || json_array_size(value) > LIST_MAX) {
        in_refuse(reader, NULL,
                  "must be an array of 1 to %d names, or \"all\"; leave the member out "
                  "for the default",
                  LIST_MAX);
    }
    check_names(reader, value);
}

/* An integer from 0, or one as decimal text, since JSON numbers lose bits. */
static bool read_seed(const json_t *value, uint64_t *ret_seed)
{
    const char *text = json_string_value(value);
    char *end;

    if (json_is_integer(value) && json_integer_value(value) >= 0) {
        *ret_seed = (uint64_t)json_integer_value(value);
        return true;
    }
    if (!text || *text < '0' || *text > '9') {
        return false;
    }
    errno = 0;
    *ret_seed = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0';
}

static bool take_seed(struct in_reader *reader, const char *key, const json_t *value,
                      uint64_t *ret_seed)
{
    bool is_seed = read_seed(value, ret_seed);

    if (!is_seed) {
        in_refuse(reader, key,
                  "must be an integer from 0 to 18446744073709551615, as a number or as "
                  "decimal text");
    }
    return is_seed;
}

static void check_seed(struct in_reader *reader, const json_t *value)
{
    uint64_t seed;

    take_seed(reader, NULL, value, &seed);
}

static void check_seeds(struct in_reader *reader, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        uint64_t seed, other;
        char key[24];
        bool is_seed;

        snprintf(key, sizeof key, "%zu", i);
        is_seed = take_seed(reader, key, json_array_get(list, i), &seed);
        for (size_t j = 0; j < i && is_seed; j++) {
            if (read_seed(json_array_get(list, j), &other) && other == seed) {
                in_refuse(reader, key, "this seed is listed twice");
                break;
            }
        }
    }
}

static bool is_timeout(double seconds)
{
    return seconds >= 0.001 && seconds <= JOB_TIMEOUT_SECONDS_MAX;
}

static void check_timeout(struct in_reader *reader, const json_t *value)
{
    if (!is_timeout(json_number_value(value))) {
        in_refuse(reader, NULL, "must be a number from 0.001 to %d",
                  JOB_TIMEOUT_SECONDS_MAX);
    }
}

static void check_poison(struct in_reader *reader, const json_t *value)
{
    const char *text = json_string_value(value);

    if (!json_is_boolean(value) && !(text && in_is_hex(text, 8))) {
        in_refuse(reader, NULL,
                  "must be true, false or a pattern of 8 hex digits, in lower case");
    }
}

/* As a run says it back: without leading zeros, so never longer than its digits. */
static void check_jitter(struct in_reader *reader, const json_t *value)
{
    const char *text = json_string_value(value);
    uint64_t seed;

    if (!json_is_boolean(value) &&
        !(text && read_seed(value, &seed) && (*text != '0' || text[1] == '\0'))) {
        in_refuse(reader, NULL,
                  "must be true, false or a seed, as decimal text without leading zeros");
    }
}

static bool is_step_count(const json_t *value)
{
    return json_integer_value(value) >= 1 && json_integer_value(value) <= STEP_MAX;
}

static void check_probes(struct in_reader *reader, const json_t *value)
{
    if (!json_is_boolean(value) && !json_is_object(value) && !is_step_count(value)) {
        in_refuse(
            reader, NULL,
            "must be true, false, an object or a number of steps from 1: 10 records "
            "every tenth");
    }
}

static void check_every(struct in_reader *reader, const json_t *value)
{
    if (!is_step_count(value)) {
        in_refuse(reader, NULL,
                  "must be a number of steps from 1: 10 records every tenth");
    }
}

/* Quotes and backslashes would make the text longer where it is stored; '?' replaces
 * them.  What begins with '-' cannot be a value of an argument; '[-]' can. */
static void check_glob(struct in_reader *reader, const json_t *value)
{
    const char *names = json_string_value(value);

    if (!names || !trace_place_valid(names) || strpbrk(names, "\"\\") ||
        names[0] == '-') {
        in_refuse(reader, NULL,
                  "must be a glob of 1 to %d bytes, without control characters, quotes "
                  "and backslashes, that does not begin with '-': conv*/forward",
                  TRACE_PLACE_MAX);
    }
}

static void check_steps(struct in_reader *reader, const json_t *value)
{
    const json_t *first = json_array_get(value, 0);
    const json_t *last = json_array_get(value, 1);

    if (json_array_size(value) != 2 || !json_is_integer(first) ||
        !json_is_integer(last) || json_integer_value(first) < 0 ||
        json_integer_value(last) < json_integer_value(first) ||
        json_integer_value(last) > STEP_MAX) {
        in_refuse(reader, NULL, "must be the first and the last step, as in [100,199]");
    }
}

/* Reading */

struct reading {
    struct job_request request;
    const json_t *seeds;
    const char *priority;
    double timeout_seconds;
    bool shared_import;
};

#define TO(field) IN_AT(struct reading, field), .flags = IN_OPTIONAL
#define NAMES(key, field)                                                                \
    {                                                                                    \
        (key), IN_ARRAY, TO(request.field),                                              \
            .least = 1, .most = LIST_MAX, .check = check_names,                          \
            .wanted =                                                                    \
                "must be an array of 1 to 1000 names; leave the member out for "         \
                "the default"                                                            \
    }
#define CHECKED(key, function)                                                           \
    {                                                                                    \
        (key), IN_JSON, .flags = IN_OPTIONAL, .check = (function)                        \
    }

static const char *const priorities[] = { "interactive", "confirmation", "scheduled",
                                          "background", NULL };
static const struct in_member members[] = {
    NAMES("workloads", workloads),
    NAMES("variants", variants),
    NAMES("sizes", sizes),
    NAMES("dtypes", dtypes),
    NAMES("devices", devices),
    CHECKED("stacks", check_stacks),
    { "seeds", IN_ARRAY, TO(seeds), .least = 1, .most = LIST_MAX, .check = check_seeds,
      .wanted = "must be an array of 1 to 1000 seeds; leave the member out for the "
                "default" },
    CHECKED("seed", check_seed),
    { "runs", IN_INT, TO(request.runs), .least = 1, .most = JOB_RUNS_MAX },
    { "iterations", IN_INT, TO(request.iterations), .least = 1,
      .most = JOB_ITERATIONS_MAX },
    { "timeout_seconds", IN_REAL, TO(timeout_seconds), .check = check_timeout,
      .wanted = "must be a number from 0.001 to 86400" },
    { "survey", IN_BOOL, TO(request.survey) },
    { "stop_when_varies", IN_BOOL, TO(request.stop_when_varies) },
    { "priority", IN_TEXT, TO(priority), .names = priorities },
    { "contention", IN_INT, TO(request.options.circumstances.contention), .least = 1,
      .most = JOB_CONTENTION_MAX,
      .wanted = "must be an integer from 1 to 64, the loads beside each run; "
                "leave it out for none" },
    { "shared_import", IN_BOOL, TO(shared_import) },
    CHECKED("memory_poison", check_poison),
    CHECKED("allocation_jitter", check_jitter),
    CHECKED("probes", check_probes),
    { "localise", IN_BOOL, TO(request.localise) },
    { "runs_max", IN_INT, TO(request.runs_max), .least = 1,
      .most = JOB_LOCALISE_RUNS_MAX },
    { "note", IN_TEXT, .flags = IN_OPTIONAL, .most = JOB_NOTE_MAX },
};
static const struct in_shape shape = IN_SHAPE(members, "a job has no member");

static const struct in_member of_probes[] = {
    CHECKED("every", check_every),
    CHECKED("names", check_glob),
    CHECKED("steps", check_steps),
};
static const struct in_shape probes_shape = IN_SHAPE(of_probes, "probes have no member");

static void add_problem(void *problems, const struct in_fault *fault)
{
    problems_add(problems, fault->unknown ? PROBLEM_UNKNOWN_MEMBER : PROBLEM_INVALID,
                 fault->pointer, "%s", fault->reason);
}

/* An unknown member is a fault of the probes object itself. */
static void add_probes_problem(void *problems, const struct in_fault *fault)
{
    char pointer[32];

    snprintf(pointer, sizeof pointer, "/probes%s", fault->unknown ? "" : fault->pointer);
    problems_add(problems, fault->unknown ? PROBLEM_UNKNOWN_MEMBER : PROBLEM_INVALID,
                 pointer, "%s", fault->reason);
}

/* VALUE: true asks for what is drawn in every process, false for nothing. */
static void take_drawn(const json_t *value, char ret_text[RUN_DRAWN_SIZE])
{
    const char *text = json_string_value(value);

    copy_text(ret_text, RUN_DRAWN_SIZE,
              json_is_true(value) ? "random"
              : text              ? text
                                  : "");
}

static void read_probes(const json_t *probes, struct run_options *options,
                        struct problems *problems)
{
    const json_t *every =
        json_is_object(probes) ? json_object_get(probes, "every") : probes;
    const json_t *steps = json_object_get(probes, "steps");
    const char *names = in_text(probes, "names");

    if (!probes || json_is_false(probes)) {
        return;
    }
    if (json_is_object(probes)) {
        in_read(&probes_shape, probes, NULL, add_probes_problem, problems);
    }
    options->probes = json_is_integer(every) ? json_integer_value(every) : 1;
    copy_text(options->probe_names, sizeof options->probe_names, names ? names : "");
    if (steps) {
        snprintf(options->probe_steps, sizeof options->probe_steps,
                 "%" PRId64 "-%" PRId64,
                 (int64_t)json_integer_value(json_array_get(steps, 0)),
                 (int64_t)json_integer_value(json_array_get(steps, 1)));
    }
}

static void take_seeds(const json_t *json, const json_t *list,
                       struct job_request *request, struct problems *problems)
{
    const json_t *one = json_object_get(json, "seed");
    size_t count = json_array_size(list);

    request->seeds = xcalloc(count + 1, sizeof *request->seeds);
    request->seed_count = (int)count;
    for (size_t i = 0; i < count; i++) {
        read_seed(json_array_get(list, i), &request->seeds[i]);
    }
    if (one && json_object_get(json, "seeds")) {
        problems_add(problems, PROBLEM_INVALID, "/seed",
                     "give either 'seed' or 'seeds', not both");
    } else if (count == 0) {
        request->seeds[request->seed_count++] = 1;
        read_seed(one, &request->seeds[0]);
    }
}

/* After everything else: what does not go together. */
static void check_localise(const json_t *json, struct job_request *w,
                           struct problems *problems)
{
    if (!w->localise) {
        if (json_object_get(json, "runs_max")) {
            problems_add(problems, PROBLEM_INVALID, "/runs_max",
                         "only a job with \"localise\":true goes on beyond its runs");
        }
        return;
    }
    if (!json_object_get(json, "iterations")) {
        w->iterations = 1;
    }
    if (json_is_false(json_object_get(json, "probes"))) {
        problems_add(
            problems, PROBLEM_INVALID, "/probes",
            "a job with \"localise\":true has probes; leave the member out for all");
    }
    if (w->runs_max == 0) {
        w->runs_max =
            w->runs > JOB_LOCALISE_RUNS_DEFAULT ? w->runs : JOB_LOCALISE_RUNS_DEFAULT;
    }
    if (w->runs < 2 || w->runs > w->runs_max) {
        problems_add(problems, PROBLEM_INVALID, "/runs",
                     "must be an integer from 2 to runs_max (%d): runs are compared in "
                     "pairs",
                     w->runs_max);
    }
    if (w->survey || w->stop_when_varies) {
        problems_add(
            problems, PROBLEM_INVALID, w->survey ? "/survey" : "/stop_when_varies",
            "does not go together with \"localise\":true, which looks at one case "
            "and ends when its place is known");
    }
}

void job_request_read(const json_t *json, struct job_request *ret_request,
                      struct problems *problems)
{
    struct reading reading = { .request = { .runs = JOB_RUNS_DEFAULT,
                                            .iterations = JOB_ITERATIONS_DEFAULT },
                               .timeout_seconds = JOB_TIMEOUT_SECONDS_DEFAULT };
    struct job_request *w = &reading.request;
    const json_t *stacks = json_object_get(json, "stacks");

    in_read(&shape, json, &reading, add_problem, problems);
    w->all_stacks = is_all(stacks);
    w->stacks = json_is_array(stacks) ? stacks : NULL;
    take_seeds(json, reading.seeds, w, problems);
    if (is_timeout(reading.timeout_seconds)) {
        w->timeout_ms = (int64_t)(reading.timeout_seconds * 1000 + 0.5);
    }
    w->timeout_given = json_object_get(json, "timeout_seconds") != NULL;
    w->priority = w->survey ? JOB_BACKGROUND : JOB_INTERACTIVE;
    if (reading.priority) {
        job_priority_parse(reading.priority, &w->priority);
    }
    if (!json_object_get(json, "stop_when_varies")) {
        w->stop_when_varies = w->survey;
    }
    take_drawn(json_object_get(json, "memory_poison"),
               w->options.circumstances.memory_poison);
    take_drawn(json_object_get(json, "allocation_jitter"),
               w->options.circumstances.allocation_jitter);
    w->options.circumstances.shared_import = reading.shared_import;
    read_probes(json_object_get(json, "probes"), &w->options, problems);
    check_localise(json, w, problems);
    *ret_request = *w;
}

void job_request_release(struct job_request *request)
{
    free(request->seeds);
    *request = (struct job_request){ 0 };
}
