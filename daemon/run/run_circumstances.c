#include "daemon/run/run_circumstances.h"

#include <string.h>

#include "daemon/base/mem.h"

/* What a process draws for itself where "random" was asked for. */
static enum err_code take_drawn(const json_t *said, const char *name, const char *asked,
                                char ret_taken[RUN_DRAWN_SIZE], struct err *err)
{
    const json_t *value = json_object_get(said, name);
    const char *text = json_string_value(value);

    if (value && !text) {
        return err_set(err, ERR_PROTOCOL, "circumstances.%s is not text", name);
    }
    if (!text != !asked[0] ||
        (text && strcmp(asked, "random") != 0 && strcmp(asked, text) != 0)) {
        return err_set(err, ERR_PROTOCOL, "%s is %.32s, %.32s was asked for", name,
                       text ? text : "none", asked[0] ? asked : "none");
    }
    if (text && strlen(text) >= RUN_DRAWN_SIZE) {
        return err_set(err, ERR_PROTOCOL, "circumstances.%s is longer than %d bytes",
                       name, RUN_DRAWN_SIZE - 1);
    }
    copy_text(ret_taken, RUN_DRAWN_SIZE, text ? text : "");
    return ERR_OK;
}

static enum err_code take_contention(const json_t *said, int64_t asked,
                                     int64_t *ret_taken, struct err *err)
{
    const json_t *value = json_object_get(said, "contention");
    json_int_t count = json_integer_value(value);

    if (value && (!json_is_integer(value) || count < 1)) {
        return err_set(err, ERR_PROTOCOL,
                       "circumstances.contention is no number of load processes");
    }
    if (count != asked) {
        return err_set(err, ERR_PROTOCOL, "contention is %lld, %lld was asked for",
                       (long long)count, (long long)asked);
    }
    *ret_taken = asked;
    return ERR_OK;
}

enum err_code run_circumstances_take(const json_t *said,
                                     const struct run_circumstances *asked,
                                     char ret_text[RUN_CIRCUMSTANCES_SIZE],
                                     struct err *err)
{
    struct run_circumstances taken;

    ret_text[0] = '\0';
    if (said && !json_is_null(said) && !json_is_object(said)) {
        return err_set(err, ERR_PROTOCOL, "circumstances is not an object");
    }
    if (take_contention(said, asked->contention, &taken.contention, err) != ERR_OK ||
        take_drawn(said, "memory_poison", asked->memory_poison, taken.memory_poison,
                   err) != ERR_OK ||
        take_drawn(said, "allocation_jitter", asked->allocation_jitter,
                   taken.allocation_jitter, err) != ERR_OK) {
        return err->code;
    }
    if (!run_circumstances_write(&taken, ret_text)) {
        return err_set(err, ERR_PROTOCOL, "circumstances are longer than %d bytes",
                       RUN_CIRCUMSTANCES_SIZE - 1);
    }
    return ERR_OK;
}
