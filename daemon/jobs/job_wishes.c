#include "daemon/jobs/job_wishes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/array.h"
#include "daemon/base/mem.h"
#include "daemon/base/nearest.h"
#include "daemon/evidence/catalogue.h"
#include "daemon/jobs/job_circumstances.h"
#include "daemon/jobs/job_probes.h"
#include "daemon/jobs/job_request.h"

enum { LIST_MAX = 1000 };

static const char *const members[] = {
    "workloads",        "variants",      "sizes",
    "dtypes",           "seeds",         "seed",
    "devices",          "stacks",        "runs",
    "iterations",       "priority",      "timeout_seconds",
    "stop_when_varies", "survey",        "note",
    "contention",       "memory_poison", "allocation_jitter",
    "localise",         "runs_max",      "probes",
};
enum { MEMBER_COUNT = COUNT_OF(members) };

/* "/" and KEY with its special characters escaped (RFC 6901).  Caller frees. */
static char *pointer_to(const char *key)
{
    struct buf buf = BUF_INIT;

    buf_putc(&buf, '/');
    for (; *key; key++) {
        if (*key == '~' || *key == '/') {
            buf_puts(&buf, *key == '~' ? "~0" : "~1");
        } else {
            buf_putc(&buf, *key);
        }
    }
    return buf_detach(&buf, NULL);
}

static void check_members(const json_t *request, struct problems *problems)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)request, key, value)
    {
        const char *near = nearest_name(key, members, MEMBER_COUNT);
        char *pointer;

        if (near && strcmp(near, key) == 0) {
            continue;
        }
        pointer = pointer_to(key);
        problems_add(problems, PROBLEM_UNKNOWN_MEMBER, pointer,
                     "a job has no member '%.100s'%s%s%s", key,
                     near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
        free(pointer);
    }
}

static bool holds(const struct name_list *list, const char *name)
{
    for (int i = 0; i < list->count; i++) {
        if (strcmp(list->names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

bool name_list_allows(const struct name_list *list, const char *name)
{
    return !list->given || holds(list, name);
}

/* The array at KEY, or NULL when it is not given or not a list of 1 … LIST_MAX. */
static const json_t *read_array(const json_t *request, const char *key, bool *ret_given,
                                struct problems *problems)
{
    const json_t *array = json_object_get(request, key);
    char pointer[64];

    *ret_given = array != NULL;
    if (!array) {
        return NULL;
    }
    snprintf(pointer, sizeof pointer, "/%s", key);
    if (!json_is_array(array)) {
        problems_add(problems, PROBLEM_INVALID, pointer, "must be an array");
        return NULL;
    }
    if (json_array_size(array) == 0 || json_array_size(array) > LIST_MAX) {
        problems_add(problems, PROBLEM_INVALID, pointer,
                     "must have 1 to %d elements; leave the member out for the default",
                     LIST_MAX);
        return NULL;
    }
    return array;
}

static void read_names(const json_t *request, const char *key, struct name_list *list,
                       struct problems *problems)
{
    const json_t *array = read_array(request, key, &list->given, problems);

    list->names = xcalloc(json_array_size(array) + 1, sizeof *list->names);
    for (size_t i = 0; i < json_array_size(array); i++) {
        const char *name = json_string_value(json_array_get(array, i));
        char pointer[64];

        snprintf(pointer, sizeof pointer, "/%s/%zu", key, i);
        if (!name || !*name) {
            problems_add(problems, PROBLEM_INVALID, pointer, "must be a name");
        } else if (holds(list, name)) {
            problems_add(problems, PROBLEM_INVALID, pointer, "'%.100s' is listed twice",
                         name);
        } else {
            list->names[list->count++] = name;
        }
    }
}

static void read_stacks(const json_t *request, struct job_wishes *wishes,
                        struct problems *problems)
{
    const char *text = json_string_value(json_object_get(request, "stacks"));

    wishes->all_stacks = text && strcmp(text, "all") == 0;
    if (!text) {
        read_names(request, "stacks", &wishes->stacks, problems);
    } else if (!wishes->all_stacks) {
        problems_add(problems, PROBLEM_INVALID, "/stacks",
                     "must be an array of names, or \"all\"");
    }
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

static void add_seed(const json_t *value, const char *pointer, struct job_wishes *wishes,
                     struct problems *problems)
{
    uint64_t seed;

    if (!read_seed(value, &seed)) {
        problems_add(problems, PROBLEM_INVALID, pointer,
                     "must be an integer from 0 to 18446744073709551615, as a number or "
                     "as decimal text");
        return;
    }
    for (int i = 0; i < wishes->seed_count; i++) {
        if (wishes->seeds[i] == seed) {
            problems_add(problems, PROBLEM_INVALID, pointer, "this seed is listed twice");
            return;
        }
    }
    wishes->seeds[wishes->seed_count++] = seed;
}

static void read_seeds(const json_t *request, struct job_wishes *wishes,
                       struct problems *problems)
{
    const json_t *one = json_object_get(request, "seed");
    bool many;
    const json_t *array = read_array(request, "seeds", &many, problems);

    wishes->seeds = xcalloc(json_array_size(array) + 1, sizeof *wishes->seeds);
    if (one && many) {
        problems_add(problems, PROBLEM_INVALID, "/seed",
                     "give either 'seed' or 'seeds', not both");
    }
    for (size_t i = 0; i < json_array_size(array); i++) {
        char pointer[64];

        snprintf(pointer, sizeof pointer, "/seeds/%zu", i);
        add_seed(json_array_get(array, i), pointer, wishes, problems);
    }
    if (one && !many) {
        add_seed(one, "/seed", wishes, problems);
    } else if (!many) {
        wishes->seeds[wishes->seed_count++] = 1;
    }
}

static int read_count(const json_t *request, const char *key, int fallback, int max,
                      struct problems *problems)
{
    const json_t *value = json_object_get(request, key);
    char pointer[64];

    if (!value) {
        return fallback;
    }
    if (json_is_integer(value) && json_integer_value(value) >= 1 &&
        json_integer_value(value) <= max) {
        return (int)json_integer_value(value);
    }
    snprintf(pointer, sizeof pointer, "/%s", key);
    problems_add(problems, PROBLEM_INVALID, pointer, "must be an integer from 1 to %d",
                 max);
    return fallback;
}

static bool read_bool(const json_t *request, const char *key, bool fallback,
                      struct problems *problems)
{
    const json_t *value = json_object_get(request, key);
    char pointer[64];

    if (!value || json_is_boolean(value)) {
        return value ? json_is_true(value) : fallback;
    }
    snprintf(pointer, sizeof pointer, "/%s", key);
    problems_add(problems, PROBLEM_INVALID, pointer, "must be true or false");
    return fallback;
}

static int64_t read_timeout_ms(const json_t *request, struct problems *problems)
{
    const json_t *value = json_object_get(request, "timeout_seconds");
    double seconds = value ? json_number_value(value) : JOB_TIMEOUT_SECONDS_DEFAULT;

    if (!(seconds >= 0.001 && seconds <= JOB_TIMEOUT_SECONDS_MAX)) {
        problems_add(problems, PROBLEM_INVALID, "/timeout_seconds",
                     "must be a number from 0.001 to %d", JOB_TIMEOUT_SECONDS_MAX);
        return 1;
    }
    return (int64_t)(seconds * 1000 + 0.5);
}

static void read_priority(const json_t *request, struct job_wishes *wishes,
                          struct problems *problems)
{
    static const char *const names[] = { "interactive", "confirmation", "scheduled",
                                         "background" };
    const json_t *value = json_object_get(request, "priority");
    const char *name = json_string_value(value);
    const char *near = name ? nearest_name(name, names, 4) : NULL;

    wishes->priority = wishes->survey ? JOB_BACKGROUND : JOB_INTERACTIVE;
    if (value && (!name || job_priority_parse(name, &wishes->priority) != 0)) {
        problems_add(problems, PROBLEM_INVALID, "/priority",
                     "must be interactive, confirmation, scheduled or background%s%s%s",
                     near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    }
}

/* After everything else: what does not go together. */
static void read_localise(const json_t *request, struct job_wishes *w,
                          struct problems *problems)
{
    w->localise = read_bool(request, "localise", false, problems);
    if (!w->localise) {
        if (json_object_get(request, "runs_max")) {
            problems_add(problems, PROBLEM_INVALID, "/runs_max",
                         "only a job with \"localise\":true goes on beyond its runs");
        }
        return;
    }
    if (!json_object_get(request, "iterations")) {
        w->iterations = 1;
    }
    if (json_is_false(json_object_get(request, "probes"))) {
        problems_add(
            problems, PROBLEM_INVALID, "/probes",
            "a job with \"localise\":true has probes; leave the member out for all");
    }
    w->runs_max = read_count(
        request, "runs_max",
        w->runs > JOB_LOCALISE_RUNS_DEFAULT ? w->runs : JOB_LOCALISE_RUNS_DEFAULT,
        JOB_LOCALISE_RUNS_MAX, problems);
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

void job_wishes_read(const json_t *request, struct job_wishes *ret_wishes,
                     struct problems *problems)
{
    struct job_wishes *w = ret_wishes;
    const json_t *note = json_object_get(request, "note");

    *w = (struct job_wishes){ 0 };
    check_members(request, problems);
    read_names(request, "workloads", &w->workloads, problems);
    read_names(request, "variants", &w->variants, problems);
    read_names(request, "sizes", &w->sizes, problems);
    read_names(request, "dtypes", &w->dtypes, problems);
    read_names(request, "devices", &w->devices, problems);
    read_stacks(request, w, problems);
    read_seeds(request, w, problems);
    w->runs = read_count(request, "runs", JOB_RUNS_DEFAULT, JOB_RUNS_MAX, problems);
    w->iterations = read_count(request, "iterations", JOB_ITERATIONS_DEFAULT,
                               JOB_ITERATIONS_MAX, problems);
    w->timeout_ms = read_timeout_ms(request, problems);
    w->timeout_given = json_object_get(request, "timeout_seconds") != NULL;
    w->survey = read_bool(request, "survey", false, problems);
    w->stop_when_varies = read_bool(request, "stop_when_varies", w->survey, problems);
    read_priority(request, w, problems);
    w->options = json_object();
    job_circumstances_read(request, w->options, problems);
    job_probes_read(request, w->options, problems);
    read_localise(request, w, problems);
    if (note && (!json_is_string(note) || json_string_length(note) > JOB_NOTE_MAX)) {
        problems_add(problems, PROBLEM_INVALID, "/note",
                     "must be text of at most %d bytes", JOB_NOTE_MAX);
    }
}

void job_wishes_release(struct job_wishes *wishes)
{
    free(wishes->workloads.names);
    free(wishes->variants.names);
    free(wishes->sizes.names);
    free(wishes->dtypes.names);
    free(wishes->devices.names);
    free(wishes->stacks.names);
    free(wishes->seeds);
    json_decref(wishes->options);
    *wishes = (struct job_wishes){ 0 };
}
