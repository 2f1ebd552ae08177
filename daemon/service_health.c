/* What is wrong with the service, from what its parts say: service_watch and
 * service_health of daemon/service.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/service.h"

enum {
    LATE_MS = 2000,         /* a look that comes so much later: the loop stood still */
    STALL_TOLD_MS = 10000,  /* for so long it is told */
    COMMIT_EVERY_MS = 1500, /* the store is asked to commit, if nobody asks how it is */
    READ_TOLD_MS = 10000,   /* for so long a failed read is told */
    LOOK_AGAIN_MS = 600000, /* between two looks at everything for that */
    ANSWER_MS = 1000,       /* what the store may take for a write, whosever it is */
    ASKED_MS = 500,         /* between two commits for those who ask how the service is */
    APART_MS = 5000         /* wall time and the system's clock, before it is told */
};

static void probed(void *arg, const struct err *result)
{
    struct service *s = arg;
    const char *cause = result->code != ERR_OK ? result->message : NULL;
    int64_t read_failed_ms = store_read_failed_ms(s->store);
    int64_t now = clock_monotonic_ms();

    s->vigil.probing = false;
    if (!cause && read_failed_ms && now - read_failed_ms < READ_TOLD_MS) {
        cause = "the database could not be read a short time ago: the log says more";
        if (now - s->checked_ms > LOOK_AGAIN_MS) {
            s->checked_ms = 0; /* it may be damage */
        }
    }
    if (!cause && store_witness_gone(s->store)) {
        cause =
            "the witness of the last commit, reprod.db-seq, was taken away and cannot "
            "be made anew: a loss would not be seen";
    }
    if (s->stopping.stage == STOPPING_NOT) {
        health_set(&s->health, HEALTH_STORAGE, cause, clock_wall_ms());
        health_log(&s->health);
    }
}

static void note_moved(struct service *s, int64_t now)
{
    s->vigil.moved_ms = now;
    s->vigil.moved_wall_ms = clock_wall_ms();
}

/* Commits now and then, and as long as the store is in trouble. */
static void probe_store(struct service *s, int64_t now)
{
    bool troubled = s->health.conditions[HEALTH_STORAGE].cause[0];
    bool failing = troubled || store_failing(s->store);
    int64_t idle_ms = now - s->vigil.wrote_ms;
    bool commits = idle_ms >= (failing || s->vigil.asked ? ASKED_MS : COMMIT_EVERY_MS);

    if (failing && !commits) {
        return; /* only a commit shows that it is over */
    }
    s->vigil.asked = s->vigil.asked && !commits;
    s->vigil.probing = true;
    note_moved(s, now);
    s->vigil.wrote_ms = commits ? now : s->vigil.wrote_ms;
    store_probe(s->store, commits, s, probed);
}

static void watch_store(struct service *s, int64_t now)
{
    char since[CLOCK_RFC3339_SIZE];
    char cause[128];
    uint64_t generation = store_generation(s->store);
    int64_t waited;

    if (s->reads_only) {
        return;
    }
    if (generation != s->vigil.generation) {
        s->vigil.generation = generation; /* it is behind with others' writes, at most */
        note_moved(s, now);
    }
    waited = now - s->vigil.moved_ms;
    if (!s->vigil.probing) {
        probe_store(s, now);
    } else if (waited > ANSWER_MS) {
        clock_rfc3339(s->vigil.moved_wall_ms, since);
        snprintf(cause, sizeof cause, "the database has not answered a write since %s",
                 since);
        health_set(&s->health, HEALTH_STORAGE, cause, clock_wall_ms());
    }
}

static void watch_loop(struct service *s, int64_t now)
{
    int64_t late = now - s->vigil.looked_ms - SERVICE_WATCH_MS;
    char at[CLOCK_RFC3339_SIZE];
    char cause[128];

    s->vigil.looked_ms = now;
    if (late > LATE_MS) {
        clock_rfc3339(clock_wall_ms(), at);
        snprintf(cause, sizeof cause,
                 "nothing was served for %.1f s before %s: this host was too busy, or "
                 "reprod was stopped",
                 (double)late / 1000, at);
        s->vigil.stalled_ms = now;
        health_set(&s->health, HEALTH_LOOP, cause, clock_wall_ms());
    } else if (now - s->vigil.stalled_ms > STALL_TOLD_MS) {
        health_set(&s->health, HEALTH_LOOP, NULL, 0);
    }
}

/* Says that the system's clock was set, and when wall time has followed it. */
static void watch_clock(struct service *s)
{
    int64_t ahead = clock_wall_ahead_ms();
    bool apart = ahead > APART_MS || ahead < -APART_MS;

    if (apart && !s->vigil.clock_apart) {
        log_warning("the clock of this host was set %s by %" PRId64
                    " s: times follow it at %s speed",
                    ahead > 0 ? "forward" : "back", (ahead > 0 ? ahead : -ahead) / 1000,
                    ahead > 0 ? "twice the" : "half");
    } else if (!apart && s->vigil.clock_apart) {
        log_info("times agree with the clock of this host again");
    }
    s->vigil.clock_apart = apart;
}

const struct health *service_health(struct service *s)
{
    const char *devices = fleet_not_ready(s->fleet);
    char *missing = fleet_missing(s->fleet);
    int64_t now_ms = clock_wall_ms();

    if (!devices && !fleet_recorded(s->fleet)) {
        devices = "they are not on record yet";
    }
    health_set(&s->health, HEALTH_DEVICES, devices, now_ms);
    health_set(&s->health, HEALTH_HOSTS, missing, now_ms);
    health_set(&s->health, HEALTH_STOPPING,
               s->stopping.stage != STOPPING_NOT ? "the service is stopping" : NULL,
               now_ms);
    free(missing);
    health_log(&s->health);
    return &s->health;
}

void service_watch(struct service *s)
{
    int64_t now = clock_monotonic_ms();

    watch_loop(s, now);
    watch_clock(s);
    watch_store(s, now);
    service_health(s);
}
