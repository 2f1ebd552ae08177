#include "daemon/jobs/options.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/array.h"
#include "daemon/base/mem.h"

#define NUMBER(member) offsetof(struct run_options, member), 0
#define TEXT(member)                                                                     \
    offsetof(struct run_options, member), sizeof((struct run_options *)0)->member

/* In the order of their names, so that arguments and words come in that of the text. */
static const struct member {
    const char *name;
    const char *circumstance; /* its name among circumstances; NULL: it is none */
    size_t at, size;          /* of its text in struct run_options; 0: an int64_t */
    const char *words;        /* NULL: its name and value */
} members[] = {
    { "allocation-jitter", "allocation_jitter", TEXT(circumstances.allocation_jitter),
      NULL },
    { "capture", NULL, TEXT(capture), NULL },
    { "contention", "contention", NUMBER(circumstances.contention), NULL },
    { "memory-poison", "memory_poison", TEXT(circumstances.memory_poison), NULL },
    { "probe-names", NULL, TEXT(probe_names), NULL },
    { "probe-steps", NULL, TEXT(probe_steps), NULL },
    { "probes", NULL, NUMBER(probes), NULL },
    { "shared-import", "shared_import", NUMBER(circumstances.shared_import),
      "a shared import" },
};
enum { MEMBER_COUNT = COUNT_OF(members) };

const char *const run_circumstance_names[] = { "allocation_jitter", "contention",
                                               "memory_poison", "shared_import", NULL };

static bool read_member(const struct member *m, const json_t *value,
                        struct run_options *options)
{
    char *to = (char *)options + m->at;
    const char *text = json_string_value(value);

    if (m->size == 0 && json_integer_value(value) > 0) {
        *(int64_t *)(void *)to = json_integer_value(value);
        return true;
    }
    if (m->size == 0 || !text || strlen(text) >= m->size) {
        return false;
    }
    copy_text(to, m->size, text);
    return true;
}

static bool read_members(const char *text, bool circumstances,
                         struct run_options *ret_options)
{
    json_t *json = text[0] ? json_loads(text, 0, NULL) : json_object();
    bool is_good = json_is_object(json);

    *ret_options = (struct run_options){ .probes = 0 };
    for (int i = 0; i < MEMBER_COUNT; i++) {
        const char *name = circumstances ? members[i].circumstance : members[i].name;
        const json_t *value = name ? json_object_get(json, name) : NULL;

        is_good &= !value || read_member(&members[i], value, ret_options);
    }
    json_decref(json);
    return is_good;
}

bool run_options_read(const char *text, struct run_options *ret_options)
{
    return read_members(text, false, ret_options);
}

bool run_circumstances_read(const char *text, struct run_circumstances *ret_circumstances)
{
    struct run_options options;
    bool is_good = read_members(text, true, &options);

    *ret_circumstances = options.circumstances;
    return is_good;
}

static json_t *members_json(const struct run_options *options, bool circumstances)
{
    json_t *json = json_object();

    for (int i = 0; i < MEMBER_COUNT; i++) {
        const char *name = circumstances ? members[i].circumstance : members[i].name;
        const char *from = (const char *)options + members[i].at;

        if (name && members[i].size == 0 && *(const int64_t *)(const void *)from) {
            json_object_set_new(json, name,
                                json_integer(*(const int64_t *)(const void *)from));
        } else if (name && members[i].size > 0 && *from) {
            json_object_set_new(json, name, json_string(from));
        }
    }
    return json;
}

static bool write_members(const struct run_options *options, bool circumstances,
                          char *ret_text, size_t size)
{
    json_t *json = members_json(options, circumstances);
    char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
    bool fits = strlen(text) < size;

    copy_text(ret_text, size, fits && json_object_size(json) > 0 ? text : "");
    free(text);
    json_decref(json);
    return fits;
}

bool run_options_write(const struct run_options *options, char ret_text[RUN_OPTIONS_SIZE])
{
    return write_members(options, false, ret_text, RUN_OPTIONS_SIZE);
}

bool run_circumstances_write(const struct run_circumstances *circumstances,
                             char ret_text[RUN_CIRCUMSTANCES_SIZE])
{
    const struct run_options options = { .circumstances = *circumstances };

    return write_members(&options, true, ret_text, RUN_CIRCUMSTANCES_SIZE);
}

/* Whether ALLOWED, a worker's word, is NAME, which is asked for as CIRCUMSTANCES say: a
 * pattern of poison is "random" or 8 hex digits. */
static bool allows(const char *allowed, const char *name,
                   const struct run_circumstances *circumstances)
{
    const char *poison = circumstances->memory_poison;

    if (strcmp(allowed, RUN_POISON_OF_BYTES) != 0) {
        return strcmp(allowed, name) == 0;
    }
    return strcmp(name, "memory_poison") == 0 &&
           (strcmp(poison, "random") == 0 || strncmp(poison, poison + 2, 6) == 0);
}

const char *run_circumstances_beyond(const struct run_circumstances *circumstances,
                                     const json_t *allowed)
{
    const struct run_options options = { .circumstances = *circumstances };
    json_t *json = members_json(&options, true);
    const char *beyond = NULL;

    for (int i = 0; run_circumstance_names[i] && !beyond; i++) {
        const char *name = run_circumstance_names[i];
        bool is_allowed = json_object_get(json, name) == NULL ||
                          (!allowed && strcmp(name, "shared_import") != 0);

        for (size_t j = 0; j < json_array_size(allowed) && !is_allowed; j++) {
            const char *one = json_string_value(json_array_get(allowed, j));

            is_allowed = one && allows(one, name, circumstances);
        }
        beyond = is_allowed ? NULL : name;
    }
    json_decref(json);
    return beyond;
}

json_t *run_options_arguments(const struct run_options *options)
{
    return members_json(options, false);
}

struct run_options run_options_of_challenge(const struct run_options *options)
{
    return (struct run_options){
        .circumstances.shared_import = options->circumstances.shared_import,
    };
}

void run_options_words(const struct run_options *options, struct buf *buf)
{
    json_t *json = run_options_arguments(options);
    const char *between = "";

    for (int i = 0; i < MEMBER_COUNT; i++) {
        const json_t *value = json_object_get(json, members[i].name);

        if (!value) {
            continue;
        }
        if (members[i].words) {
            buf_printf(buf, "%s%s", between, members[i].words);
        } else if (json_is_string(value)) {
            buf_printf(buf, "%s%s %s", between, members[i].name,
                       json_string_value(value));
        } else {
            buf_printf(buf, "%s%s %" JSON_INTEGER_FORMAT, between, members[i].name,
                       json_integer_value(value));
        }
        between = ", ";
    }
    json_decref(json);
}

void run_capture_write(int32_t iteration, int64_t step, const char *place,
                       char ret_text[RUN_CAPTURE_SIZE])
{
    snprintf(ret_text, RUN_CAPTURE_SIZE, "%" PRId32 ":%" PRId64 ":%s", iteration, step,
             place);
}

const char *run_capture_read(const char *text, int32_t *ret_iteration, int64_t *ret_step)
{
    int used = 0;

    return sscanf(text, "%" SCNd32 ":%" SCNd64 ":%n", ret_iteration, ret_step, &used) ==
                       2 &&
                   used > 0
               ? text + used
               : NULL;
}
