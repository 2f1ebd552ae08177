/* The command lines of the commands that ask a service: "--name VALUE" or "--name=VALUE",
 * wherever they stand, and arguments. */
#ifndef DAEMON_CLIENT_OPTIONS_H
#define DAEMON_CLIENT_OPTIONS_H

#include "daemon/base/err.h"

struct client_option {
    const char *name;   /* "--table" */
    const char **value; /* the last one given; untouched where none is.  Borrowed */
};

/* Reads ARGV behind its first word into OPTIONS (which end with a NULL name) and the
 * arguments, at most MOST, in their order, into RET_ARGUMENTS.  ERR_INVALID: an unknown
 * option, one without a value, or fewer than LEAST or more than MOST arguments. */
enum err_code client_options_read(int argc, char **argv,
                                  const struct client_option *options, int least,
                                  int most, const char **ret_arguments, struct err *err);

#endif
