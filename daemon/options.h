/* The options that the commands share. */
#ifndef DAEMON_OPTIONS_H
#define DAEMON_OPTIONS_H

#include "daemon/base/err.h"
#include "daemon/config/config.h"

/* Reads --config FILE into CONFIG (initialised), then the other options over it, wherever
 * they stand: --listen ADDRESS:PORT, --data FOLDER, --no-survey.  ret_argument gets the
 * one argument that is not an option, or NULL; more than one is an error.  Borrowed from
 * ARGV. */
enum err_code options_read(int argc, char **argv, struct config *config,
                           const char **ret_argument, struct err *err);

#endif
