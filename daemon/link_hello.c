#include "daemon/link_hello.h"

#include "daemon/members.h"
#include "daemon/wire.h"

enum err_code link_hello_check(const json_t *hello, struct err *err)
{
    const json_t *v = json_object_get(hello, "v");
    const char *host, *boot_id;
    json_t *stacks, *stack;
    json_int_t pid;
    size_t i;

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
    if (!json_is_array(stacks)) {
        return err_set(err, ERR_PROTOCOL, "stacks is not an array");
    }
    json_array_foreach(stacks, i, stack)
    {
        if (!json_is_object(stack)) {
            return err_set(err, ERR_PROTOCOL, "stacks[%zu] is not an object", i);
        }
    }
    return ERR_OK;
}
