#include "daemon/config/hosts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/buf.h"
#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"
#include "daemon/jobs/case.h"

static const char PLACE[] = "{host}";

struct expansion {
    json_t *hosts; /* what it comes to */
    json_t *names; /* the keys are those that are there */
    const json_t *launch;
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

static void add_host(struct expansion *x, const char *name)
{
    json_t *launch = json_array(), *word;
    size_t i;

    if (json_object_get(x->names, name)) {
        err_set(x->err, ERR_INVALID, "%s/name: '%.200s' is listed twice", x->where, name);
    } else if (strlen(name) >= CASE_TITLE_SIZE) {
        err_set(x->err, ERR_INVALID, "%s/name: '%.40s…' has more than %d bytes", x->where,
                name, CASE_TITLE_SIZE - 1);
    } else if (json_array_size(x->hosts) == HOSTS_MAX) {
        err_set(x->err, ERR_INVALID, "%s/name: there are more than %d hosts", x->where,
                HOSTS_MAX);
    }
    json_array_foreach((json_t *)x->launch, i, word)
    {
        char *text = with_name(json_string_value(word), name);

        json_array_append_new(launch, json_string(text));
        free(text);
    }
    if (x->err->code == ERR_OK) {
        json_object_set_new(x->names, name, json_true());
        json_array_append_new(x->hosts,
                              json_pack("{s:s,s:O}", "name", name, "launch", launch));
    }
    json_decref(launch);
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

static void expand_entry(struct expansion *x, const json_t *host)
{
    const char *name = in_text_or_empty(host, "name");

    x->launch = json_object_get(host, "launch");
    if (strpbrk(name, "[]") && !has_place(x->launch)) {
        err_set(x->err, ERR_INVALID,
                "%s/launch: no word has {host}, so one command would start all of "
                "'%.100s'",
                x->where, name);
        return;
    }
    expand(x, "", name);
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
