#include "daemon/config/hosts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/buf.h"
#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"
#include "daemon/config/engine.h"
#include "daemon/jobs/case.h"

static const char PLACE[] = "{host}", ENTRY[] = "entry", NEEDED[] = "needed";

enum { IDLE_RELEASE_S = 60, DAY_S = 24 * 3600, HELLO_MAX_S = 30 * DAY_S };

/* As it is read. */
struct entry {
    const char *name, *keep, *engine;
    const json_t *launch;
    int idle_release_s, hello_s, at_once;
};

static const struct in_member a_word = { .kind = IN_TEXT };
static const char *const keeps[] = { "always", NEEDED, NULL };

static const struct in_member entry_members[] = {
    { "name", IN_TEXT, IN_AT(struct entry, name), .least = 1,
      .most = CASE_TITLE_SIZE - 1 },
    { "launch", IN_ARRAY, IN_AT(struct entry, launch), IN_OPTIONAL, .least = 1,
      .item = &a_word, .wanted = "must be [program, argument, ...]" },
    { "engine", IN_TEXT, IN_AT(struct entry, engine), IN_OPTIONAL,
      .names = engine_names },
    { "slurm", IN_OBJECT, .flags = IN_OPTIONAL, .shape = &engine_slurm_shape },
    { "agent", IN_ARRAY, .flags = IN_OPTIONAL, .least = 1, .item = &a_word,
      .wanted = "must be [program, argument, ...]" },
    { "keep", IN_TEXT, IN_AT(struct entry, keep), IN_OPTIONAL, .names = keeps },
    { "idle_release_s", IN_INT, IN_AT(struct entry, idle_release_s), IN_OPTIONAL,
      .least = 1, .most = DAY_S },
    { "hello_s", IN_INT, IN_AT(struct entry, hello_s), IN_OPTIONAL, .least = 0,
      .most = HELLO_MAX_S },
    { "at_once", IN_INT, IN_AT(struct entry, at_once), IN_OPTIONAL, .least = 1,
      .most = HOSTS_MAX },
};
const struct in_shape hosts_entry_shape = IN_SHAPE(entry_members, "a host has no member");

struct expansion {
    json_t *hosts; /* what it comes to */
    json_t *names; /* the keys are those that are there */
    const json_t *entry;
    int number;  /* of the entry */
    char *where; /* "c.json: /hosts/3" */
    struct err *err;
};

/* WORD with the name in each of its places; caller frees. */
static char *with_name(const char *word, const char *name)
{
    struct buf text = BUF_INIT;

    for (const char *at; (at = strstr(word, PLACE)) != NULL;
         word = at + sizeof PLACE - 1) {
        buf_printf(&text, "%.*s%s", (int)(at - word), word, name);
    }
    buf_puts(&text, word);
    return buf_detach(&text, NULL);
}

/* A copy of JSON in which each text has the name in its places.  New reference. */
static json_t *with_names(const json_t *json, const char *name)
{
    json_t *copy = json_copy((json_t *)json), *each;
    const char *key;
    size_t i;

    json_object_foreach((json_t *)json, key, each)
    {
        json_object_set_new(copy, key, with_names(each, name));
    }
    json_array_foreach((json_t *)json, i, each)
    {
        json_array_set_new(copy, i, with_names(each, name));
    }
    if (json_is_string(json)) {
        char *text = with_name(json_string_value(json), name);

        json_decref(copy);
        copy = json_string(text);
        free(text);
    }
    return copy;
}

static void add_host(struct expansion *x, const char *name)
{

    if (json_object_get(x->names, name)) {
        err_set(x->err, ERR_INVALID, "%s/name: '%.200s' is listed twice", x->where, name);
    } else if (strlen(name) >= CASE_TITLE_SIZE) {
        err_set(x->err, ERR_INVALID, "%s/name: '%.40s…' has more than %d bytes", x->where,
                name, CASE_TITLE_SIZE - 1);
    } else if (json_array_size(x->hosts) == HOSTS_MAX) {
        err_set(x->err, ERR_INVALID, "%s/name: there are more than %d hosts", x->where,
                HOSTS_MAX);
    }
    if (x->err->code == ERR_OK) {
        json_t *host = with_names(x->entry, name);

        json_object_set_new(x->names, name, json_true());
        json_object_set_new(host, "name", json_string(name));
        json_object_set_new(host, ENTRY, json_integer(x->number));
        json_array_append_new(x->hosts, host);
    }
}

/* A number of at most nine digits at *TEXT, which moves behind it; -1: there is none. */
static int read_number(const char **text)
{
    size_t digits = strspn(*text, "0123456789");
    int number = digits > 0 && digits <= 9 ? (int)strtol(*text, NULL, 10) : -1;

    *text += digits;
    return number;
}

/* "001-064" or "7" at *TEXT, which moves behind it; false: it is neither. */
static bool read_range(const char **text, int *ret_first, int *ret_last, int *ret_digits)
{
    const char *from = *text;

    *ret_first = *ret_last = read_number(text);
    *ret_digits = from[0] == '0' ? (int)(*text - from) : 0;
    if (**text == '-') {
        (*text)++;
        *ret_last = read_number(text);
    }
    return *ret_first >= 0 && *ret_last >= *ret_first;
}

static void expand(struct expansion *x, const char *before, const char *name);

/* BEFORE and each number of the brackets at NAME, and what is behind them. */
static void expand_brackets(struct expansion *x, const char *before, const char *name)
{
    const char *end = strchr(name, ']'), *at = name;
    int first, last, digits;

    do {
        at++;
        if (!end || !read_range(&at, &first, &last, &digits) || !strchr(",]", *at)) {
            err_set(x->err, ERR_INVALID,
                    "%s/name: '%.100s' is no list of numbers, such as [001-064,070]",
                    x->where, name);
            return;
        }
        for (int number = first; number <= last && x->err->code == ERR_OK; number++) {
            char *whole = xasprintf("%s%0*d", before, digits, number);

            expand(x, whole, end + 1);
            free(whole);
        }
    } while (at < end && x->err->code == ERR_OK);
}

static void expand(struct expansion *x, const char *before, const char *name)
{
    size_t length = strcspn(name, "[]");
    char *whole = xasprintf("%s%.*s", before, (int)length, name);

    if (name[length] == '[') {
        expand_brackets(x, whole, name + length);
    } else if (name[length]) {
        err_set(x->err, ERR_INVALID, "%s/name: '%.100s' closes what was not opened",
                x->where, name);
    } else {
        add_host(x, whole);
    }
    free(whole);
}

static bool has_place(const json_t *launch)
{
    const json_t *word;
    size_t i;

    json_array_foreach((json_t *)launch, i, word)
    {
        if (strstr(json_string_value(word), PLACE)) {
            return true;
        }
    }
    return false;
}

/* The hosts of X's entry are those from FROM on. */
static void check_limit(struct expansion *x, size_t from)
{
    size_t count = json_array_size(x->hosts) - from;
    struct host_settings settings;

    if (x->err->code == ERR_OK) {
        hosts_settings(json_array_get(x->hosts, from), &settings);
        if (settings.at_once > 0 && (size_t)settings.at_once < count &&
            !settings.needed) {
            err_set(x->err, ERR_INVALID,
                    "%s/at_once: is %d of %zu hosts, so some would wait for ever: say "
                    "\"keep\":\"needed\"",
                    x->where, settings.at_once, count);
        }
    }
}

static void expand_entry(struct expansion *x, const json_t *host)
{
    const char *name = in_text_or_empty(host, "name");
    size_t from = json_array_size(x->hosts);
    const json_t *launch = json_object_get(host, "launch");

    x->entry = host;
    if (engine_check(host, x->where, x->err) != ERR_OK) {
        return;
    }
    if (strpbrk(name, "[]") && launch && !has_place(launch)) {
        err_set(x->err, ERR_INVALID,
                "%s/launch: no word has {host}, so one command would start all of "
                "'%.100s'",
                x->where, name);
        return;
    }
    expand(x, "", name);
    check_limit(x, from);
}

void hosts_settings(const json_t *host, struct host_settings *ret_settings)
{
    const struct in_shape shape = IN_SHAPE(entry_members, NULL);
    struct entry entry = { .keep = keeps[0],
                           .idle_release_s = IDLE_RELEASE_S,
                           .hello_s = HOSTS_HELLO_USUAL };

    in_read(&shape, host, &entry, NULL, NULL); /* it was checked with the settings */
    if (entry.engine && entry.hello_s == HOSTS_HELLO_USUAL) {
        entry.hello_s = 0; /* an engine has a queue */
    }
    *ret_settings = (struct host_settings){
        .name = entry.name,
        .launch = entry.launch,
        .engine = entry.engine,
        .needed = strcmp(entry.keep, NEEDED) == 0,
        .idle_release_s = entry.idle_release_s,
        .hello_s = entry.hello_s,
        .at_once = entry.at_once,
        .entry = (int)in_int(host, ENTRY),
    };
}

json_t *hosts_expand(const json_t *hosts, const char *file, struct err *err)
{
    struct expansion x = { .hosts = json_array(), .names = json_object(), .err = err };
    json_t *host;
    size_t i;

    err->code = ERR_OK;
    json_array_foreach((json_t *)hosts, i, host)
    {
        if (err->code == ERR_OK) {
            x.where = xasprintf("%s: /hosts/%zu", file, i);
            x.number = (int)i;
            expand_entry(&x, host);
            free(x.where);
        }
    }
    json_decref(x.names);
    if (err->code != ERR_OK) {
        json_decref(x.hosts);
        return NULL;
    }
    return x.hosts;
}
