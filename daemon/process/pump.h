/* Drives something that has a descriptor and a run function (the store's completions, the
 * API) on the loop: runs it when the descriptor is readable, when the delay it asked for
 * has passed, and when it was kicked. */
#ifndef DAEMON_PROCESS_PUMP_H
#define DAEMON_PROCESS_PUMP_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct pump {
    uv_poll_t poll;
    uv_timer_t timer;
    uv_idle_t soon; /* a timer of 0 ms that is started in a timer's callback runs again
                       before the loop polls, for ever if it always is */
    /* Returns milliseconds until it wants to run again; -1: no such time. */
    int64_t (*run)(void *arg);
    void *arg;
    bool running, kicked;
};

/* Starts driving FD.  LOOP, FD and ARG outlive the pump; PUMP stays where it is until
 * pump_close has been called and the loop has run. */
void pump_open(struct pump *pump, uv_loop_t *loop, int fd, int64_t (*run)(void *arg),
               void *arg);

/* Runs it soon, once, however often it is kicked.  Loop thread. */
void pump_kick(struct pump *pump);

/* Runs it now, unless it runs. */
void pump_run(struct pump *pump);

/* Stops; its handles are gone after the loop has run once more. */
void pump_close(struct pump *pump);

#endif
