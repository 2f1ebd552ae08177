/* What an entry of `hosts` says where an engine starts its agents:
 *
 *   {"name":"gpu-[001-064]", "engine":"slurm",
 *    "slurm":{"partition":"gpu", "gres":"gpu:8"}, "agent":["/opt/reprod/reprod","agent"]}
 */
#ifndef DAEMON_CONFIG_ENGINE_H
#define DAEMON_CONFIG_ENGINE_H

#include <jansson.h>
#include <stdbool.h>

#include "daemon/base/err.h"
#include "daemon/base/json_in.h"

/* The names of engines; ends with NULL. */
extern const char *const engine_names[];

/* The member `slurm` of an entry: node (default: the host's name), partition, qos,
 * account, constraint, gres, reservation, time, exclusive (default: true), arguments. */
extern const struct in_shape engine_slurm_shape;

/* ENTRY has either a launch command, or an engine and what that needs.  ERR_INVALID: it
 * has not; WHERE ("c.json: /hosts/3") begins the message. */
enum err_code engine_check(const json_t *entry, const char *where, struct err *err);

#endif
