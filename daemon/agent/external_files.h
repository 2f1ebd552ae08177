/* Files as a text, a line each: name, size, and the digest of the contents.  Of what is
 * large (a file of more than 16 MiB, all that is beyond 32 MiB together) the time of
 * modification stands for the contents: the agent's loop reads them, before and after
 * every run, and serves its other devices meanwhile no sooner. */
#ifndef DAEMON_AGENT_EXTERNAL_FILES_H
#define DAEMON_AGENT_EXTERNAL_FILES_H

#include <stdint.h>

#include "daemon/base/buf.h"
#include "daemon/base/err.h"

struct external_files {
    struct buf text; /* caller releases */
    int64_t bytes;   /* of contents that were read */
    int count;
    struct err *err;
};

/* Adds the file at PATH, or every file in the folder at PATH and below, in the order of
 * their names; left out there are names that begin with a dot, __pycache__, and links to
 * folders.  NAME stands for PATH: where it lies may differ from host to host.
 * ERR_TOO_LARGE beyond 4096 files, ERR_IO where one cannot be read, or is a pipe or a
 * device. */
enum err_code external_files_add(struct external_files *files, const char *name,
                                 const char *path);

/* The name of the first file in which two such texts differ, NULL if they are equal.
 * Caller frees. */
char *external_files_differ(const char *a, const char *b);

#endif
