#include "db/queue/lanes.h"

enum err_code lanes_add(struct lanes *lanes, struct queued *item, struct err *err)
{
    int *waiting = item->heavy ? &lanes->heavy_waiting : &lanes->cheap_waiting;

    if (!item->waited_for &&
        *waiting >= (item->heavy ? LANES_HEAVY_MAX : LANES_CHEAP_MAX)) {
        return err_set(err, ERR_BUSY, "%d other %s are waiting for the database",
                       *waiting, item->heavy ? "large reads" : "reads");
    }
    ++*waiting;
    queue_push(item->heavy ? &lanes->heavy : &lanes->cheap, item);
    return ERR_OK;
}

static struct queued *take_cheap(struct lanes *lanes)
{
    lanes->cheap_waiting--;
    lanes->passed = lanes->heavy.first && !lanes->heavy_running ? lanes->passed + 1 : 0;
    return queue_pop(&lanes->cheap);
}

static struct queued *take_heavy(struct lanes *lanes)
{
    lanes->heavy_waiting--;
    lanes->heavy_running++;
    lanes->passed = 0;
    return queue_pop(&lanes->heavy);
}

struct queued *lanes_take(struct lanes *lanes, bool drain)
{
    int most = lanes->readers > 1 ? lanes->readers - 1 : 1;
    bool heavy = lanes->heavy.first && (drain || lanes->heavy_running < most);

    if (lanes->cheap.first && !(heavy && lanes->passed >= LANES_PASSED)) {
        return take_cheap(lanes);
    }
    return heavy ? take_heavy(lanes) : NULL;
}

void lanes_done(struct lanes *lanes)
{
    lanes->heavy_running--;
}
