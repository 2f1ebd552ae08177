#include "daemon/run/run_circumstances.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"

/* What a process draws for itself where "random" was asked for. */
static enum err_code take_drawn(const json_t *said, const char *name, const json_t *asked,
                                json_t *taken, struct err *err)
{
    const char *wanted = json_string_value(asked);
    const char *text = json_string_value(said);

    if (said && !text) {
        return err_set(err, ERR_PROTOCOL, "circumstances.%s is not text", name);
    }
    if (!text != !wanted ||
        (text && strcmp(wanted, "random") != 0 && strcmp(wanted, text) != 0)) {
        return err_set(err, ERR_PROTOCOL, "%s is %.32s, %.32s was asked for", name,
                       text ? text : "none", wanted ? wanted : "none");
    }
    if (said) {
        json_object_set(taken, name, (json_t *)said);
    }
    return ERR_OK;
}

static enum err_code take_contention(const json_t *said, const json_t *asked,
                                     json_t *taken, struct err *err)
{
    json_int_t count = json_integer_value(said), wanted = json_integer_value(asked);

    if (said && (!json_is_integer(said) || count < 1)) {
        return err_set(err, ERR_PROTOCOL,
                       "circumstances.contention is no number of load processes");
    }
    if (count != wanted) {
        return err_set(err, ERR_PROTOCOL, "contention is %lld, %lld was asked for",
                       (long long)count, (long long)wanted);
    }
    if (said) {
        json_object_set(taken, "contention", (json_t *)said);
    }
    return ERR_OK;
}

static enum err_code take_all(const json_t *said, const json_t *options, json_t *taken,
                              struct err *err)
{
    enum err_code rc;

    if (said && !json_is_null(said) && !json_is_object(said)) {
        return err_set(err, ERR_PROTOCOL, "circumstances is not an object");
    }
    if ((rc = take_contention(json_object_get(said, "contention"),
                              json_object_get(options, "contention"), taken, err)) ||
        (rc = take_drawn(json_object_get(said, "memory_poison"), "memory_poison",
                         json_object_get(options, "memory-poison"), taken, err)) ||
        (rc = take_drawn(json_object_get(said, "allocation_jitter"), "allocation_jitter",
                         json_object_get(options, "allocation-jitter"), taken, err))) {
        return rc;
    }
    return ERR_OK;
}

enum err_code run_circumstances_take(const json_t *said, const char *options,
                                     char ret_text[RUN_CIRCUMSTANCES_SIZE],
                                     struct err *err)
{
    json_t *asked = options[0] ? json_loads(options, 0, NULL) : NULL;
    json_t *taken = json_object();
    enum err_code rc = take_all(said, asked, taken, err);
    char *text = NULL;

    ret_text[0] = '\0';
    if (rc == ERR_OK && json_object_size(taken) > 0) {
        text = json_dumps(taken, JSON_COMPACT | JSON_SORT_KEYS);
        if (strlen(text) >= RUN_CIRCUMSTANCES_SIZE) {
            rc = err_set(err, ERR_PROTOCOL, "circumstances are longer than %d bytes",
                         RUN_CIRCUMSTANCES_SIZE - 1);
        } else {
            copy_text(ret_text, RUN_CIRCUMSTANCES_SIZE, text);
        }
    }
    free(text);
    json_decref(taken);
    json_decref(asked);
    return rc;
}
