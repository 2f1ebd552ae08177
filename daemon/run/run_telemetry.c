#include "daemon/run/run_telemetry.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/jobs/run.h"

static bool is_plain(const json_t *value)
{
    return json_is_string(value) || json_is_number(value) || json_is_boolean(value);
}

static bool is_list(const json_t *value)
{
    size_t i;
    json_t *text;

    json_array_foreach(value, i, text)
    {
        if (!json_is_string(text)) {
            return false;
        }
    }
    return json_is_array(value);
}

char *run_telemetry_text(const json_t *telemetry)
{
    return json_is_object(telemetry)
               ? json_dumps(telemetry, JSON_COMPACT | JSON_PRESERVE_ORDER)
               : NULL;
}

enum err_code run_telemetry_check(const json_t *telemetry, struct err *err)
{
    const char *key;
    json_t *value;
    size_t length;
    char *text;

    if (!telemetry || json_is_null(telemetry)) {
        return ERR_OK;
    }
    if (!json_is_object(telemetry)) {
        return err_set(err, ERR_PROTOCOL, "telemetry is not an object");
    }
    json_object_foreach((json_t *)telemetry, key, value)
    {
        if (!is_plain(value) && !is_list(value)) {
            return err_set(err, ERR_PROTOCOL,
                           "telemetry.%.64s is no string, number, boolean or list of "
                           "strings",
                           key);
        }
    }
    text = run_telemetry_text(telemetry);
    length = strlen(text);
    free(text);
    return length <= RUN_TELEMETRY_MAX
               ? ERR_OK
               : err_set(err, ERR_PROTOCOL, "telemetry is longer than %d bytes",
                         RUN_TELEMETRY_MAX);
}
