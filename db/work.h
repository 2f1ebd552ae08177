/* Work for the store's threads, and queues of it.  Private to db/store.c and what it is
 * made of. */
#ifndef DB_WORK_H
#define DB_WORK_H

#include <stdbool.h>
#include <stddef.h>

#include "db/store.h"

/* One queued read or write. */
struct work {
    struct work *next;
    store_fn fn;
    void *arg;
    store_done done;
    struct err result;
    bool heavy;    /* a read, see db/lanes.h */
    bool sync;     /* somebody waits in store_*_sync; owned by that stack frame */
    bool finished; /* if sync; under the lock */
};

struct work_queue {
    struct work *first;
    struct work *last;
};

static inline void work_queue_push(struct work_queue *queue, struct work *work)
{
    work->next = NULL;
    if (queue->last) {
        queue->last->next = work;
    } else {
        queue->first = work;
    }
    queue->last = work;
}

/* NULL: it is empty. */
static inline struct work *work_queue_pop(struct work_queue *queue)
{
    struct work *work = queue->first;

    if (work) {
        queue->first = work->next;
        queue->last = work->next ? queue->last : NULL;
        work->next = NULL;
    }
    return work;
}

#endif
