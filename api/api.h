/* The REST interface: libmicrohttpd in external-epoll mode on the daemon's loop.
 *
 * Only this folder includes microhttpd.h.  The daemon polls api_fd and calls api_pump
 * when it is readable, when the returned delay has passed, or when hooks->kick asked for
 * it. Everything here runs on the loop thread except the functions handed to store_read
 * and store_write. */
#ifndef API_API_H
#define API_API_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/base/health.h"
#include "daemon/evidence/catalogue.h"
#include "daemon/evidence/profile.h"
#include "daemon/evidence/verified.h"
#include "daemon/jobs/device.h"
#include "daemon/jobs/job.h"
#include "daemon/jobs/presence.h"
#include "daemon/webhooks/address.h"
#include "db/store.h"

struct api;

/* What the daemon knows without the database, for a scrape. */
struct api_figures {
    int hosts, hosts_online, hosts_waiting; /* of the configuration */
    json_t *stacks; /* the names of each host's, by its name; null where they are not
                       known.  New reference */
    double weakest_bound;        /* of background evidence; 0: there is none */
    int64_t background_spent_ms; /* since the start */
    int64_t backup_ms;           /* wall clock, of the newest backup; 0: there is none */
    int64_t backup_every_ms;     /* 0: none are made */
};

/* What the API asks of the daemon.  All called on the loop thread. */
struct api_hooks {
    void *arg;
    /* NULL until the first agent said hello: POST /v1/jobs then answers 503. */
    const struct catalogue *(*catalogue)(void *arg);
    const struct profile_set *(*profiles)(void *arg);
    const struct verified_set *(*verified)(void *arg);
    /* The devices known now, each once a stack; borrowed until the loop runs on.  Returns
     * how many entries. */
    int (*devices)(void *arg, const struct device_stack **ret_devices);
    /* JOB is durable: schedule it.  Borrowed for the call. */
    void (*job_accepted)(void *arg, const struct job *job);
    /* The cancellation of this job is durable: stop its runs. */
    void (*job_cancelled)(void *arg, const char *id);
    /* Milliseconds until the job will have finished, -1 if unknown. */
    int64_t (*job_eta_ms)(void *arg, const char *id);
    /* How many items the open jobs have together. */
    int64_t (*open_items)(void *arg);
    /* What background evidence may use and used (daemon/background.h; new reference). */
    json_t *(*background)(void *arg);
    /* A change of the schedules is durable. */
    void (*schedules_changed)(void *arg);
    /* A change of the webhooks, or of what waits for them, is durable. */
    void (*webhooks_changed)(void *arg);
    /* Networks that webhooks may go to although they are refused otherwise. */
    const struct networks *(*webhook_networks)(void *arg);
    /* What is wrong with the service now; borrowed until the loop runs on. */
    const struct health *(*health)(void *arg);
    /* The stacks as JSON array (new reference). */
    json_t *(*stacks)(void *arg);
    /* The hosts of the configuration and their devices, for readers (new reference). */
    struct presence *(*presence)(void *arg);
    /* Who else uses devices, as JSON array:
     * {"device","processes","cause","since","waits"} (new reference). */
    json_t *(*foreign)(void *arg);
    /* The peers of the configuration as JSON array: {"name","state","cause","since"},
     * SINCE in milliseconds of wall time (new reference). */
    json_t *(*peers)(void *arg);
    void (*figures)(void *arg, struct api_figures *ret_figures);
    /* Call api_pump soon. */
    void (*kick)(void *arg);
};

struct api_options {
    /* Numeric, "127.0.0.1" or "::1"; TLS and tokens guard any other. */
    const char *address;
    int port; /* 0: any free one */
    int64_t stale_after_ms;
    int connection_limit;
    int open_items_limit; /* of items of open jobs: no job is taken beyond it */
    const char *version;  /* of reprod */
};

/* Starts listening.  ERR_BUSY: the port is in use; ERR_INVALID: not an address;
 * ERR_UNSUPPORTED: an address that is not loopback (needs TLS and tokens). */
enum err_code api_open(const struct api_options *options, const struct api_hooks *hooks,
                       struct store *store, struct api **ret_api, struct err *err);

int api_port(const struct api *api);
int api_fd(const struct api *api); /* an epoll descriptor */

/* Serves what is ready.  Returns milliseconds until it wants to be called again at the
 * latest, or -1 for no such time. */
int64_t api_pump(struct api *api);

/* Something was committed: wake the event streams (coalesced inside). */
void api_events_changed(struct api *api);

/* The configuration was read again: answers from now on are by these, and by what the
 * hooks return now.  Requests that are in the store may still hold what the hooks
 * returned before, others do not. */
void api_reconfigure(struct api *api, int64_t stale_after_ms);
int api_in_store(const struct api *api); /* requests that are */

/* Stop accepting and end the event streams; then call api_pump until api_idle, then
 * api_close.  api_close also works at once (it waits for reads in flight). */
void api_quiesce(struct api *api);
bool api_idle(const struct api *api);
void api_close(struct api *api); /* NULL is fine */

#endif
