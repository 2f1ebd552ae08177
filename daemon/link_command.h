/* What an agent is told: the commands, as objects for its standard input.  Pure. */
#ifndef DAEMON_LINK_COMMAND_H
#define DAEMON_LINK_COMMAND_H

#include <jansson.h>

#include "daemon/link.h"

/* New references, for stream_writer_send. */
json_t *link_command_run(const struct link_run *run);
json_t *link_command_cancel(const char *run);

#endif
