/* The fleet: the hosts of the configuration (this one, if it names none), an agent on
 * each, and what their hellos said: stacks, devices, catalogue.
 *
 * The happy path of a host: its launch command is started, the agent says hello, its
 * catalogue joins the fleet's, its devices go online in the runner.
 *
 * What can go wrong: the command cannot be started, there is no hello in time, or the
 * agent goes away (the runs there end as lost; tried again after 1 s, 2 s, … 60 s); its
 * catalogue contradicts that of a host that is online (it stays out until that one goes
 * away, and says why).
 *
 * Loop thread only. */
#ifndef DAEMON_FLEET_FLEET_H
#define DAEMON_FLEET_FLEET_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/config/config.h"
#include "daemon/evidence/catalogue.h"
#include "daemon/jobs/device.h"
#include "daemon/run/runner.h"
#include "db/store.h"

struct fleet;

struct fleet_options {
    uv_loop_t *loop;
    const struct config *config;
    struct store *store;
    struct runner *runner;
    void (*hello)(void *arg); /* a host's hello was taken in */
    void *arg;
};

/* Starts an agent on every host.  Everything in OPTIONS is borrowed for the fleet's life.
 */
struct fleet *fleet_new(const struct fleet_options *options);

/* Tries the hosts again whose time has come; to be called about once a second. */
void fleet_tick(struct fleet *fleet, int64_t now_monotonic_ms);

/* NULL until the first hello. */
const struct catalogue *fleet_catalogue(const struct fleet *fleet);

/* Every host of the configuration said hello at least once: the catalogue is whole. */
bool fleet_complete(const struct fleet *fleet);

/* Each device once for every stack that serves it.  Borrowed until the loop runs on. */
int fleet_devices(const struct fleet *fleet, const struct device_stack **ret_devices);

/* Array: {"name","host","worker","library_path","backend","worker_build","versions",
 * "problems","problem_texts","devices","device_ids","online","cause"}.  New reference. */
json_t *fleet_stacks(const struct fleet *fleet);

/* Array of the hosts of the configuration: {"name","online","cause"}, the cause being why
 * it is not online, or null.  New reference. */
json_t *fleet_hosts(const struct fleet *fleet);

/* What identifies devices and environments of the hosts that are online: the digest of
 * their stacks' probes and catalogues.  Equal fingerprints need no new survey. */
void fleet_fingerprint(const struct fleet *fleet, char ret_digest[DIGEST_TEXT_SIZE]);

/* NULL when a device is online; else why not.  Borrowed until the loop runs on. */
const char *fleet_not_ready(const struct fleet *fleet);

/* What the hosts that are online said of themselves is in the database, where the API
 * reads it. */
bool fleet_recorded(const struct fleet *fleet);

/* Ends the agents; CLOSED(arg) is called when they are gone, then fleet_free is due. */
void fleet_close(struct fleet *fleet, void (*closed)(void *arg), void *arg);
void fleet_free(struct fleet *fleet); /* NULL is fine */

#endif
