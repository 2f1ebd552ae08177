/* The runner: one slot a device, one run at a time.
 *
 * The happy path of a slot: idle → the scheduler has something → beginning (the intent is
 * being stored) → running (the agent was told; events are folded) → finishing (the result
 * is being stored) → the scheduler learns the outcome → idle.
 *
 * What can go wrong: the intent cannot be stored (the item is put back, tried again a
 * second later); the job was cancelled before the intent was stored (put back, forgotten)
 * or after it (the run ends as cancelled, started or not); the agent refuses
 * or goes away (the run ends as infra or lost, with the cause; as cancelled if the agent
 * had said that it was told to end: its item is run again); the result cannot be stored
 * (the slot keeps it and tries again every second: a result is never dropped).
 *
 * Loop thread only. */
#ifndef DAEMON_RUN_RUNNER_H
#define DAEMON_RUN_RUNNER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/jobs/scheduler.h"
#include "daemon/process/run_exit.h"
#include "db/runs.h"
#include "db/store.h"

struct link;
struct runner;

struct runner_hooks {
    void *arg;
    /* A result was stored; EFFECT is borrowed for the call. */
    void (*stored)(void *arg, const struct run_effect *effect);
    /* Whether nothing is to be started on DEVICE now.  NULL: never. */
    bool (*waits)(void *arg, const char *device);
};

/* All borrowed for the runner's life. */
struct runner *runner_new(struct store *store, struct scheduler *scheduler,
                          const struct runner_hooks *hooks);

/* The store must be drained (store_pending 0).  NULL is fine. */
void runner_free(struct runner *runner);

/* DEVICE can be used through LINK from now on; BOOT_ID of its host.  A run that it has on
 * another link is lost. */
void runner_device_online(struct runner *runner, const char *device, struct link *link,
                          const char *boot_id);

/* LINK is gone with CAUSE: its runs end as lost, or as cancelled where its agent was told
 * to end. */
void runner_link_closed(struct runner *runner, struct link *link, const char *cause);

/* How many of the devices that are used through LINK have a run. */
int runner_link_busy(const struct runner *runner, const struct link *link);

/* Starts what can be started: after a job was accepted, and once a second. */
void runner_kick(struct runner *runner);

/* The job's cancellation is stored: stops its runs. */
void runner_cancel_job(struct runner *runner, const char *job);

/* Starts nothing more. */
void runner_stop(struct runner *runner);

/* Ends what is running as cancelled with CAUSE. */
void runner_cancel_all(struct runner *runner, const char *cause);

/* Whether DEVICE has a run. */
bool runner_uses(const struct runner *runner, const char *device);

/* Slots that are not idle. */
int runner_busy(const struct runner *runner);

/* What the agents say of a run.  An id that is not running on LINK is ignored: its slot
 * was given up before. */
void runner_started(struct runner *runner, struct link *link, const char *run,
                    int64_t pid, int64_t process_start);
void runner_event(struct runner *runner, struct link *link, const char *run,
                  const json_t *event);
void runner_iterations(struct runner *runner, struct link *link, const char *run,
                       const json_t *event);
void runner_garbage(struct runner *runner, struct link *link, const char *run,
                    const char *cause);
void runner_exited(struct runner *runner, struct link *link, const char *run,
                   const struct run_exit *exit);
void runner_refused(struct runner *runner, struct link *link, const char *run,
                    const char *cause);

#endif
