/* Which of the waiting reads comes next.
 *
 * There are cheap reads and heavy ones, each in a lane of its own.  Heavy ones never have
 * all readers, so that a cheap one waits for cheap ones alone; and cheap ones go first,
 * but not for ever: after LANES_PASSED of them a heavy one has its turn.  The order
 * within a lane is that of arrival.  Pure; under the store's lock. */
#ifndef DB_QUEUE_LANES_H
#define DB_QUEUE_LANES_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/base/err.h"

enum { LANES_CHEAP_MAX = 256, LANES_HEAVY_MAX = 64, LANES_PASSED = 16 };

/* The first member of what waits in a queue. */
struct queued {
    struct queued *next;
    bool heavy;      /* a read */
    bool waited_for; /* somebody does nothing else meanwhile */
};

struct queue {
    struct queued *first, *last;
};

static inline void queue_push(struct queue *queue, struct queued *item)
{
    item->next = NULL;
    if (queue->last) {
        queue->last->next = item;
    } else {
        queue->first = item;
    }
    queue->last = item;
}

/* NULL: it is empty. */
static inline struct queued *queue_pop(struct queue *queue)
{
    struct queued *item = queue->first;

    if (item) {
        queue->first = item->next;
        queue->last = item->next ? queue->last : NULL;
        item->next = NULL;
    }
    return item;
}

struct lanes {
    int readers; /* the rest is zero at first */
    struct queue cheap, heavy;
    int cheap_waiting, heavy_waiting, heavy_running;
    int passed; /* cheap ones in a row while a heavy one waited and none ran */
};

/* ERR_BUSY: so many of its kind are waiting; not for one that is waited for. */
enum err_code lanes_add(struct lanes *lanes, struct queued *item, struct err *err);

/* The next one, which may be run now; NULL: none may.  DRAIN: whatever waits. */
struct queued *lanes_take(struct lanes *lanes, bool drain);

/* A heavy one that was taken was run.  Another reader may now have something to take. */
void lanes_done(struct lanes *lanes);

#endif
