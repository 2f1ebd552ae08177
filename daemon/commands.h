/* The commands of the program reprod on this host: `serve`, `backup`, `restore` and
 * `fsck`, and what they share.  `agent` is in daemon/agent/agent.h. */
#ifndef DAEMON_COMMANDS_H
#define DAEMON_COMMANDS_H

#include "daemon/base/err.h"
#include "daemon/config/config.h"

/* Each returns an enum exit_code; serve_main after SIGINT or SIGTERM. */
int serve_main(int argc, char **argv);
int backup_main(int argc, char **argv);
int restore_main(int argc, char **argv);
int fsck_main(int argc, char **argv);

/* Reads --config FILE into CONFIG (initialised), then the other options over it, wherever
 * they stand: --listen ADDRESS:PORT, --data FOLDER, --no-survey, --no-webhooks,
 * --read-only FILE, --accept-loss.  ret_argument gets the
 * one argument that is not an option, or NULL; more than one is an error.  Borrowed from
 * ARGV. */
enum err_code options_read(int argc, char **argv, struct config *config,
                           const char **ret_argument, struct err *err);

/* The exit code for an error of store_open and its relatives. */
int exit_code_of_store(enum err_code code);

/* The database's path inside the data folder: caller frees. */
char *database_path(const char *data);

#endif
