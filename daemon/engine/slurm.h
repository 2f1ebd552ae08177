/* Slurm as the engine that starts agents: each host is a node, its agent a job of one
 * step, which srun holds.
 *
 * One `sinfo --json` and one `squeue --json` per period say how all nodes and our jobs
 * are.  A node that is drained, down, reserved by others, or in a state that nobody knows
 * is held; why a job waits is said of its host; why it ended is asked of its record,
 * since srun exits with 0 when its node dies.
 *
 * Jobs of this service carry its name (slurm_name).  Those that a service before left
 * are cancelled before a job of their host is started; so are those that no agent here
 * belongs to.  Nobody else's jobs are touched.
 *
 * What can go wrong: Slurm does not answer, or not in time.  What runs goes on; nothing
 * is started on a host whose node was not heard of lately; it is asked ever less often,
 * up to thirty periods apart.  Loop thread only. */
#ifndef DAEMON_ENGINE_SLURM_H
#define DAEMON_ENGINE_SLURM_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/engine/slurm_hooks.h"

struct slurm;

/* The name that the jobs of a service have whose data is in folder DATA on this machine:
 * "reprod-1f2e3d4c5b6a".  Caller frees. */
char *slurm_name(const char *data);

/* HOSTS of a configuration (daemon/config/hosts.h) are borrowed for the call; what starts
 * their agents is made by slurm_launch (daemon/engine/slurm_launch.h) with NAME.  Every
 * host of Slurm is held until Slurm was heard. NULL: none of HOSTS is one of Slurm. */
struct slurm *slurm_new(uv_loop_t *loop, const json_t *hosts, const char *name,
                        int64_t period_ms, const struct slurm_hooks *hooks);

/* To be called about once a second.  NULL is fine. */
void slurm_tick(struct slurm *slurm, int64_t now_monotonic_ms);

/* An agent of HOST is started. */
void slurm_started(struct slurm *slurm, const char *host);

/* The agent of HOST ended: why?  False: HOST is none of Slurm, and no answer comes. */
bool slurm_ask(struct slurm *slurm, const char *host);

/* The agent of HOST was let go, and nobody asks why. */
void slurm_let_go(struct slurm *slurm, const char *host);

/* What Slurm says of HOST; NULL: it is none of Slurm.  New reference. */
json_t *slurm_json(const struct slurm *slurm, const char *host);

/* Cancels what is left of our jobs; CLOSED(arg) is called when that is over, then
 * slurm_free is due.  The agents are gone before.  NULL is fine. */
void slurm_close(struct slurm *slurm, void (*closed)(void *arg), void *arg);
void slurm_free(struct slurm *slurm);

#endif
