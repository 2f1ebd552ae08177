#include "daemon/fleet/link_hello.h"

#include <string.h>

#include "daemon/jobs/case.h"
#include "daemon/process/members.h"
#include "daemon/process/stack_limits.h"
#include "daemon/process/wire.h"

static enum err_code check_stacks(const json_t *stacks, struct err *err)
{
    size_t devices = 0;
    json_t *stack;
    size_t i;

    if (!json_is_array(stacks)) {
        return err_set(err, ERR_PROTOCOL, "stacks is not an array");
    }
    if (json_array_size(stacks) > STACKS_MAX) {
        return err_set(err, ERR_TOO_LARGE, "stacks: there are more than %d", STACKS_MAX);
    }
    json_array_foreach(stacks, i, stack)
    {
        const json_t *probe = json_object_get(stack, "probe");

        if (!json_is_object(stack)) {
            return err_set(err, ERR_PROTOCOL, "stacks[%zu] is not an object", i);
        }
        if (stack_limits_check(stack, err) != ERR_OK) {
            return err_wrap(err, "stacks[%zu]", i);
        }
        devices += json_array_size(json_object_get(probe, "devices"));
    }
    if (devices > STACKS_DEVICES_MAX) {
        return err_set(err, ERR_TOO_LARGE, "stacks have more than %d devices",
                       STACKS_DEVICES_MAX);
    }
    return ERR_OK;
}

enum err_code link_hello_check(const json_t *hello, struct err *err)
{
    const json_t *v = json_object_get(hello, "v");
    const char *host, *boot_id;
    json_t *stacks;
    json_int_t pid;

    /* The version first: what another version says need not have these fields. */
    if (!json_is_integer(v) || json_integer_value(v) != WIRE_VERSION) {
        return err_set(err, ERR_PROTOCOL,
                       "it speaks protocol version %lld, this daemon %d",
                       (long long)json_integer_value(v), WIRE_VERSION);
    }
    if (members_unpack(hello, err, "{s:s,s:I,s:s,s:o}", "host", &host, "pid", &pid,
                       "boot_id", &boot_id, "stacks", &stacks) != ERR_OK) {
        return err->code;
    }
    if (strlen(host) >= CASE_TITLE_SIZE || strlen(boot_id) >= CASE_NAME_SIZE) {
        return err_set(err, ERR_TOO_LARGE, "host or boot_id has more than %d or %d bytes",
                       CASE_TITLE_SIZE - 1, CASE_NAME_SIZE - 1);
    }
    return check_stacks(stacks, err);
}
