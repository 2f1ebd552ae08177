/* The command lines of the commands that ask a service: "--name VALUE" or "--name=VALUE",
 * flags, which have no value, wherever they stand, and arguments. */
#ifndef DAEMON_CLIENT_OPTIONS_H
#define DAEMON_CLIENT_OPTIONS_H

#include <stdbool.h>

#include "daemon/base/err.h"

struct client_option {
    const char *name;   /* "--table" */
    const char **value; /* the last one given, "" of a flag; untouched where none is.
                           Borrowed */
    bool is_flag;
};
#define CLIENT_OPTION(name, value)                                                       \
    {                                                                                    \
        name, value, false                                                               \
    }
#define CLIENT_FLAG(name, value)                                                         \
    {                                                                                    \
        name, value, true                                                                \
    }
#define CLIENT_OPTIONS_END                                                               \
    {                                                                                    \
        NULL, NULL, false                                                                \
    }

/* Reads ARGV behind its first word into OPTIONS (up to CLIENT_OPTIONS_END) and the
 * arguments, at most MOST, in their order, into RET_ARGUMENTS.  ERR_INVALID: an unknown
 * option, one without a value, a flag with one, or fewer than LEAST or more than MOST
 * arguments. */
enum err_code client_options_read(int argc, char **argv,
                                  const struct client_option *options, int least,
                                  int most, const char **ret_arguments, struct err *err);

#endif
