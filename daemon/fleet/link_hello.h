/* The first thing an agent says. */
#ifndef DAEMON_FLEET_LINK_HELLO_H
#define DAEMON_FLEET_LINK_HELLO_H

#include <jansson.h>

#include "daemon/base/err.h"

/* ERR_PROTOCOL: another version, or a field that is missing or malformed; ERR_TOO_LARGE:
 * more than daemon/process/stack_limits.h lets through. */
enum err_code link_hello_check(const json_t *hello, struct err *err);

#endif
