/* Which hosts and devices there are now, as readers get it: whole, and never changed once
 * it was made.  Who makes it keeps it for as long as nothing is other, so that most
 * requests only count a reference.
 *
 * Any thread may read it.  References are counted on the loop thread only, which frees
 * it: what it holds may be borrowed from there. */
#ifndef DAEMON_JOBS_PRESENCE_H
#define DAEMON_JOBS_PRESENCE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/lookup.h"

/* A host of the configuration. */
struct presence_host {
    const char *name;
    const char *state; /* as the API names it */
    int64_t since_ms;  /* wall clock */
    bool online;
    char *cause;   /* why it is not online, or what is wrong with it; NULL: nothing is */
    json_t *node;  /* what the engine says that starts its agent; NULL: there is none */
    json_t *hello; /* of which its devices are; NULL: it never said one */
    int there;     /* devices that are */
};

/* A device with one of the stacks that serve it, as in struct device_stack. */
struct presence_device {
    const char *id, *stack;
    const struct presence_host *host;
    bool is_default, online, there;
    const char *cause;                  /* why it is not online; NULL: it is */
    const struct presence_device *next; /* the same device with its next stack */
};

/* Who else uses a device. */
struct presence_foreign {
    char *device;
    json_t *processes; /* array of texts; NULL: not known */
    char *cause;       /* why not; NULL: it is */
    int64_t since_ms;  /* wall clock: since when it is used, or is not */
    bool waits;        /* runs do */
};

struct presence {
    int references;
    struct presence_host *hosts;
    int host_count;
    struct presence_device *devices;
    int device_count;
    struct presence_foreign *foreign;
    int foreign_count;
    struct lookup host_of, first_of, foreign_of; /* by name; the others by device */
};

/* Fills what is looked up, once all else is there, and counts the first reference. */
void presence_begin(struct presence *presence);

/* Returns PRESENCE. */
struct presence *presence_ref(struct presence *presence);
void presence_unref(struct presence *presence); /* NULL is fine */

/* NULL: there is none. */
const struct presence_host *presence_host(const struct presence *presence,
                                          const char *name);
const struct presence_device *presence_first(const struct presence *presence,
                                             const char *device);
const struct presence_device *presence_default(const struct presence *presence,
                                               const char *device);
const struct presence_foreign *presence_foreign(const struct presence *presence,
                                                const char *device);

#endif
