/* Commands on the database: `reprod backup` and `reprod fsck`. */
#ifndef DAEMON_MAINTENANCE_H
#define DAEMON_MAINTENANCE_H

#include "daemon/base/err.h"

/* Both return an enum exit_code. */
int backup_main(int argc, char **argv);
int fsck_main(int argc, char **argv);

/* The exit code for an error of store_open and its relatives. */
int exit_code_of_store(enum err_code code);

/* The database's path inside the data folder: caller frees. */
char *database_path(const char *data);

#endif
