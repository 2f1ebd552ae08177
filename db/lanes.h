/* Which of the waiting reads comes next.
 *
 * There are cheap reads and heavy ones, each in a lane of its own.  Heavy ones never have
 * all readers, so that a cheap one waits for cheap ones alone; and cheap ones go first,
 * but not for ever: after LANES_PASSED of them a heavy one has its turn.  The order
 * within a lane is that of arrival.  Pure; under the store's lock. */
#ifndef DB_LANES_H
#define DB_LANES_H

#include "daemon/base/err.h"
#include "db/work.h"

enum { LANES_CHEAP_MAX = 256, LANES_HEAVY_MAX = 64, LANES_PASSED = 16 };

struct lanes {
    int readers; /* the rest is zero at first */
    struct work_queue cheap, heavy;
    int cheap_waiting, heavy_waiting, heavy_running;
    int passed; /* cheap ones in a row while a heavy one waited and none ran */
};

/* ERR_BUSY: so many of its kind are waiting; not if it is one that somebody waits for
 * (work->sync). */
enum err_code lanes_add(struct lanes *lanes, struct work *work, struct err *err);

/* The next one, which may be run now; NULL: none may.  DRAIN: whatever waits. */
struct work *lanes_take(struct lanes *lanes, bool drain);

/* A heavy one that was taken was run.  Another reader may now have something to take. */
void lanes_done(struct lanes *lanes);

#endif
