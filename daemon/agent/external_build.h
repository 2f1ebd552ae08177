/* Which build of an external command this is: one digest over what its configuration has
 * it compute and over the contents of the files that do it. */
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
 * variables, sizes and variants as configured; the contents of the program, of every
 * argument that is the path of a file, and of `files` (external_files.h).  Paths are
 * relative to `directory`, which does not count itself.  ERR_NOT_FOUND or ERR_IO says
 * what is missing here. */
enum err_code external_build_init(struct external_build *ret_build,
                                  const json_t *workload, struct err *err);
void external_build_release(struct external_build *build);

#endif
