/* Inside the fleet: its hosts, as fleet.c keeps them and fleet_facts.c reads them. */
#ifndef DAEMON_FLEET_FLEET_HOST_H
#define DAEMON_FLEET_FLEET_HOST_H

#include "daemon/fleet/fleet.h"

struct link;

struct fleet_host {
    struct fleet *fleet;
    char *name;
    char **argv;       /* launch command, NULL-terminated */
    struct link *link; /* NULL while waiting for retry_ms */
    bool online;       /* hello was taken in and the link is open */
    bool recorded;     /* a hello of it is durable: its devices are in the database */
    json_t *hello;     /* the last one that was taken in; NULL: never */
    json_t *refused;   /* the hello of the open link, while its catalogue contradicts that
                          of a host that is online; NULL: it does not */
    char cause[256];   /* why it is not online; "" */
    int64_t backoff_ms;
    int64_t retry_ms; /* monotonic */
};

struct fleet {
    struct fleet_options options;
    struct fleet_host *hosts;
    int host_count;
    struct catalogue *catalogue;
    struct device_stack *devices;
    int device_count;
    char not_ready[320];
    bool closing;
    int open_links;
    void (*closed)(void *arg);
    void *closed_arg;
};

/* The text member KEY of OBJECT, "" without one. */
const char *fleet_text(const json_t *object, const char *key);

/* Makes the fleet's catalogue anew, with HELLO of HOST beside the hosts that are online
 * and what contradicts neither of those that are not.  ERR_CONFLICT, with nothing
 * changed, says whom it contradicts.  What was borrowed from the catalogue is gone. */
enum err_code fleet_take_catalogue(struct fleet_host *host, const json_t *hello,
                                   struct err *err);

/* Builds the list of devices anew from every host's last hello. */
void fleet_list_devices(struct fleet *fleet);

#endif
