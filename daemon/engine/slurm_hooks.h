/* What Slurm's part of the service is told, and tells, of hosts. */
#ifndef DAEMON_ENGINE_SLURM_HOOKS_H
#define DAEMON_ENGINE_SLURM_HOOKS_H

#include <stdbool.h>

struct slurm_hooks {
    void *arg;
    /* Nothing is to be started on HOST; NULL: it may be.  LEAVE: what runs there is to
     * end as soon as it can. */
    void (*hold)(void *arg, const char *host, const char *cause, bool leave);
    /* Its agent waits for this; NULL: for nothing that is known. */
    void (*waits)(void *arg, const char *host, const char *words);
    /* Answers slurm_ask; NULL: Slurm says no cause. */
    void (*ended)(void *arg, const char *host, const char *cause);
    /* Whether an agent of it is there, or one that starts or ends. */
    bool (*has_agent)(void *arg, const char *host);
    /* What slurm_json says may be other than before. */
    void (*heard)(void *arg);
};

#endif
