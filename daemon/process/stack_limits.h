/* How much one stack of an agent's hello may hold.  The agent does not use a stack whose
 * worker says more; the daemon refuses a hello that has more.  So what the daemon keeps
 * of a host is bounded, names are never cut, and no list takes minutes to walk. */
#ifndef DAEMON_PROCESS_STACK_LIMITS_H
#define DAEMON_PROCESS_STACK_LIMITS_H

#include <jansson.h>

#include "daemon/base/err.h"

enum {
    STACKS_MAX = 256, /* of a host */
    STACK_DEVICES_MAX = 256,
    STACK_WORKLOADS_MAX = 1000,
    STACK_UNMEASURED_MAX = 1000,         /* names of what no workload of it measures */
    STACK_PARTS_MAX = 256,               /* variants, sizes or dtypes of a workload */
    STACK_TEXT_MAX = 32 * 1024,          /* bytes of any text; twice what the whole of a
                                            configured workload may have */
    STACK_ATTRIBUTES_MAX = 64 * 1024,    /* bytes of a device's, as JSON */
    STACKS_DEVICES_MAX = 16 * STACKS_MAX /* of a host, once for each of their stacks */
};

/* STACK as a hello has it; probe and catalogue may be missing or null.  ERR_TOO_LARGE for
 * what is too long or too many, ERR_PROTOCOL for a name that is none; the text begins
 * with the member, "probe: devices[3]: id …".  What else a workload says is not
 * checked (catalogue_add does). */
enum err_code stack_limits_check(const json_t *stack, struct err *err);

#endif
