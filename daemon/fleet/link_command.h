/* What an agent is told: the commands, as objects for its standard input.  Pure. */
#ifndef DAEMON_FLEET_LINK_COMMAND_H
#define DAEMON_FLEET_LINK_COMMAND_H

#include <jansson.h>

#include "daemon/fleet/link.h"

/* New references, for stream_writer_send. */
json_t *link_command_run(const struct link_run *run);
json_t *link_command_cancel(const char *run);

#endif
