/* Which build of an external command this is: one digest over the part of its
 * configuration that decides what is computed, and over the files that compute it. */
#ifndef DAEMON_AGENT_EXTERNAL_BUILD_H
#define DAEMON_AGENT_EXTERNAL_BUILD_H

#include <jansson.h>

#include "daemon/base/err.h"
#include "daemon/jobs/case.h"

struct external_build {
    char *program; /* absolute path of command[0] */
    char *text;    /* what was digested: the configuration, then a line a file */
    char digest[DIGEST_TEXT_SIZE];
};

/* Finds the program of a complete WORKLOAD as a shell would, and digests: command,
 * variables, sizes and variants as configured; the program, every argument that is the
 * path of a file, and `files`.  Paths are relative to `directory`, which is not digested
 * itself.
 *
 * The line of a file has its name as configured (where it lies may differ from host to
 * host), its size, and the digest of its contents.  A large file (of more than 16 MiB, or
 * beyond 32 MiB together) has its time of modification instead of its contents: the agent
 * reads them before and after every run, and its other devices wait meanwhile.  A folder
 * of `files` means every file in it and below, in the order of their names, except names
 * that begin with a dot, __pycache__, and links to folders.
 *
 * ERR_NOT_FOUND or ERR_IO says what is missing here, cannot be read, or is a pipe or a
 * device; ERR_TOO_LARGE: more than 4096 files. */
enum err_code external_build_init(struct external_build *ret_build,
                                  const json_t *workload, struct err *err);
void external_build_release(struct external_build *build);

/* The name of the first file in which the texts of two builds differ, NULL if they are
 * equal.  Caller frees. */
char *external_build_difference(const char *a, const char *b);

#endif
