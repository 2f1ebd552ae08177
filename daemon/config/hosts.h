/* The hosts of a configuration.  One entry may stand for many:
 *
 *   {"name":"gpu-[001-064,070]", "launch":["ssh","{host}","reprod","agent"]}
 *
 * Brackets hold numbers and ranges of numbers, as in the host lists of Slurm: a first
 * number that begins with a zero says how many digits all of its range have.  In the
 * words of `launch`, {host} is the name. */
#ifndef DAEMON_CONFIG_HOSTS_H
#define DAEMON_CONFIG_HOSTS_H

#include <jansson.h>

#include "daemon/base/err.h"

enum { HOSTS_MAX = 4096 };

/* HOSTS, an array of {"name","launch"} that are as the settings want them, as a new array
 * with one entry for each host; caller frees with json_decref.  NULL: ERR_INVALID says
 * what is wrong, after the pointer of the entry in FILE: brackets that are none, a range
 * whose hosts all have the same launch, a name that is too long or listed twice, too
 * many. */
json_t *hosts_expand(const json_t *hosts, const char *file, struct err *err);

#endif
