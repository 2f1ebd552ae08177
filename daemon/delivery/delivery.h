/* Webhooks get what they want of what happens: makes deliveries of new events
 * (db/webhooks/outbox.h), sends what is due, stores how each try ended.
 *
 * One try at a time for each webhook, so one that hangs delays no other.  A try whose end
 * could not be stored, or that the end of the service cut off, is made once more: a
 * receiver gets everything at least once, and knows repetitions by their id.
 *
 * What can go wrong with a receiver: it fails, and is left alone for a while, longer each
 * time; it says for how long (Retry-After); it is gone (410), and gets nothing until a
 * person resumes it; it fails for a day, and what waits becomes dead letters, which are
 * kept, counted, and can be replayed.
 *
 * Loop thread only. */
#ifndef DAEMON_DELIVERY_DELIVERY_H
#define DAEMON_DELIVERY_DELIVERY_H

#include <uv.h>

#include "daemon/webhooks/address.h"
#include "daemon/webhooks/webhook.h"
#include "db/store.h"

struct delivery;

struct delivery_options {
    uv_loop_t *loop;
    struct store *store;
    const char *ca_file; /* further certificate authorities; NULL: none.  Borrowed */
};

/* Nothing is sent before the first delivery_configure. */
struct delivery *delivery_new(const struct delivery_options *options);

/* After delivery_stop and the end of the store; NULL is fine. */
void delivery_free(struct delivery *delivery);

/* COUNT LIST are the webhooks of the configuration from now on; copied. */
void delivery_configure(struct delivery *delivery, const struct webhook *list, int count,
                        const struct networks *allowed);

/* Something was committed; LIST: perhaps also which webhooks there are, or what waits. */
void delivery_changed(struct delivery *delivery, bool list);

/* Ends what is on its way, and its handles. */
void delivery_stop(struct delivery *delivery);

#endif
