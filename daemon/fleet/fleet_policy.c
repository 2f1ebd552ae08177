#include "daemon/fleet/fleet_policy.h"

#include <stdlib.h>

#include "daemon/base/mem.h"

/* The hosts of one entry. */
struct room {
    struct fleet_standing **hosts;
    int count;
    int64_t now_ms;
};

static bool is_wanted(const struct fleet_standing *h)
{
    return !h->held && (!h->needed || !h->known || h->failed || h->work);
}

/* Those of one entry together, in the order of their coming. */
static int by_entry(const void *a, const void *b)
{
    const struct fleet_standing *x = *(struct fleet_standing *const *)a;
    const struct fleet_standing *y = *(struct fleet_standing *const *)b;

    return x->entry != y->entry ? (x->entry > y->entry) - (x->entry < y->entry)
           : x->wanted_ms != y->wanted_ms
               ? (x->wanted_ms > y->wanted_ms) - (x->wanted_ms < y->wanted_ms)
               : (x > y) - (x < y);
}

/* Starts who may be started, those that wait longest first.  Returns how many wait for
 * room. */
static int start(const struct room *room)
{
    int used = 0, waiting = 0;

    for (int i = 0; i < room->count; i++) {
        used += room->hosts[i]->stage != FLEET_CLOSED;
    }
    for (int i = 0; i < room->count; i++) {
        struct fleet_standing *h = room->hosts[i];

        if (h->stage != FLEET_CLOSED || !h->wanted || room->now_ms < h->retry_ms) {
            continue;
        }
        h->has_to_wait = h->at_once > 0 && used >= h->at_once;
        h->step = h->has_to_wait ? FLEET_STAY : FLEET_START;
        used += !h->has_to_wait;
        waiting += h->has_to_wait;
    }
    return waiting;
}

/* Nothing is done on H, or on its way there. */
static bool is_idle(const struct fleet_standing *h)
{
    return h->stage == FLEET_ONLINE && h->needed && h->recorded && !h->busy && !h->work;
}

static int64_t idle_ms(const struct fleet_standing *h, int64_t now_ms)
{
    return now_ms - (h->used_ms > h->online_ms ? h->used_ms : h->online_ms);
}

/* What becomes of H by itself, whoever waits. */
static enum fleet_step own_step(const struct fleet_standing *h, int64_t now_ms)
{
    if (h->stage == FLEET_STARTING && !h->wanted) {
        return FLEET_RELEASE;
    }
    if (h->stage == FLEET_ONLINE && h->held && h->held_when_idle) {
        return h->busy ? FLEET_DRAIN : FLEET_RELEASE;
    }
    return is_idle(h) && idle_ms(h, now_ms) >= h->idle_release_ms ? FLEET_RELEASE
                                                                  : FLEET_STAY;
}

static bool had_its_turn(const struct fleet_standing *h, int64_t now_ms)
{
    return (h->stage == FLEET_STARTING && now_ms - h->started_ms >= FLEET_TURN_MS) ||
           (h->stage == FLEET_ONLINE && now_ms - h->online_ms >= FLEET_TURN_MS);
}

/* How much H can be spared: 0, not; else the one with most makes room first. */
static int64_t spared(const struct fleet_standing *h, int64_t now_ms)
{
    if (h->step != FLEET_STAY || !h->needed) {
        return 0;
    }
    if (is_idle(h)) {
        int64_t idle = idle_ms(h, now_ms);

        return idle >= FLEET_PAUSE_MS ? INT64_MAX / 2 + idle : 0;
    }
    return had_its_turn(h, now_ms)
               ? now_ms - (h->stage == FLEET_ONLINE ? h->online_ms : h->started_ms)
               : 0;
}

/* Lets hosts go for WAITING others. */
static void make_room(const struct room *room, int waiting)
{
    for (int i = 0; i < room->count; i++) {
        const struct fleet_standing *h = room->hosts[i];

        waiting -= h->stage == FLEET_LEAVING || h->step == FLEET_RELEASE ||
                   h->step == FLEET_DRAIN;
    }
    for (; waiting > 0; waiting--) {
        struct fleet_standing *best = NULL;

        for (int i = 0; i < room->count; i++) {
            struct fleet_standing *h = room->hosts[i];

            if (spared(h, room->now_ms) > (best ? spared(best, room->now_ms) : 0)) {
                best = h;
            }
        }
        if (!best) {
            return;
        }
        best->step = best->busy ? FLEET_DRAIN : FLEET_RELEASE;
    }
}

void fleet_policy(struct fleet_standing *hosts, int count, int64_t now_ms)
{
    struct fleet_standing **order = xcalloc((size_t)count + 1, sizeof(void *));
    struct room room = { .now_ms = now_ms };

    for (int i = 0; i < count; i++) {
        order[i] = &hosts[i];
        hosts[i].wanted = is_wanted(&hosts[i]);
        hosts[i].has_to_wait = false;
        hosts[i].step = own_step(&hosts[i], now_ms);
    }
    qsort(order, (size_t)count, sizeof(void *), by_entry);
    for (int i = 0; i < count; i += room.count) {
        room.hosts = order + i;
        room.count = 1;
        while (i + room.count < count &&
               order[i + room.count]->entry == order[i]->entry) {
            room.count++;
        }
        make_room(&room, start(&room));
    }
    free(order);
}
