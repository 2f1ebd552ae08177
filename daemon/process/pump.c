#include "daemon/process/pump.h"

#include "daemon/process/loop.h"

static void run_now(struct pump *pump);

static void on_timer(uv_timer_t *timer)
{
    run_now(timer->data);
}

static void on_soon(uv_idle_t *soon)
{
    uv_idle_stop(soon);
    run_now(soon->data);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    run_now(poll->data);
}

static void run_now(struct pump *pump)
{
    int64_t delay;

    if (uv_is_closing((uv_handle_t *)&pump->timer)) {
        return;
    }
    pump->running = true;
    pump->kicked = false;
    delay = pump->run(pump->arg);
    pump->running = false;
    if (pump->kicked) {
        delay = 0;
    }
    if (uv_is_closing((uv_handle_t *)&pump->timer) || delay < 0) {
        uv_timer_stop(&pump->timer);
        return;
    }
    if (delay == 0) {
        uv_timer_stop(&pump->timer);
        uv_idle_start(&pump->soon, on_soon);
        return;
    }
    uv_update_time(pump->timer.loop);
    uv_timer_start(&pump->timer, on_timer, (uint64_t)delay, 0);
}

void pump_open(struct pump *pump, uv_loop_t *loop, int fd, int64_t (*run)(void *arg),
               void *arg)
{
    *pump = (struct pump){ .run = run, .arg = arg };
    loop_must(uv_poll_init(loop, &pump->poll, fd), "the event loop");
    uv_timer_init(loop, &pump->timer);
    uv_idle_init(loop, &pump->soon);
    pump->poll.data = pump;
    pump->timer.data = pump;
    pump->soon.data = pump;
    loop_must(uv_poll_start(&pump->poll, UV_READABLE, on_readable), "the event loop");
    pump_kick(pump);
}

void pump_kick(struct pump *pump)
{
    pump->kicked = true;
    if (!pump->running && !uv_is_closing((uv_handle_t *)&pump->timer)) {
        uv_idle_start(&pump->soon, on_soon);
    }
}

void pump_run(struct pump *pump)
{
    if (!pump->running) {
        run_now(pump);
    }
}

void pump_close(struct pump *pump)
{
    if (!uv_is_closing((uv_handle_t *)&pump->poll)) {
        uv_close((uv_handle_t *)&pump->poll, NULL);
        uv_close((uv_handle_t *)&pump->timer, NULL);
        uv_close((uv_handle_t *)&pump->soon, NULL);
    }
}
