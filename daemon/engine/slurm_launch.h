/* The command that starts the agent of a host of Slurm: a job of one step on its node.
 * Pure. */
#ifndef DAEMON_ENGINE_SLURM_LAUNCH_H
#define DAEMON_ENGINE_SLURM_LAUNCH_H

#include <jansson.h>
#include <stdbool.h>

/* srun exits with these where it could not start a step, or not at once: its agent's own
 * exit statuses are others. */
enum { SLURM_EXIT_ERROR = 200, SLURM_EXIT_IMMEDIATE = 201 };

/* HOST is one of a configuration, with "engine":"slurm" (daemon/config/hosts.h). */
bool slurm_host_is(const json_t *host);
const char *slurm_host_node(const json_t *host); /* its name, unless it says another */
bool slurm_host_has_reservation(const json_t *host);

/* Array of words; the job has NAME, and its comment names HOST.  New reference. */
json_t *slurm_launch(const json_t *host, const char *name);

/* What slurm_launch writes as comment: a text before the name of the host. */
extern const char slurm_comment[];

#endif
