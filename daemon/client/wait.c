#include "daemon/client/wait.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"
#include "daemon/base/text.h"
#include "daemon/client/answers.h"

enum { FIRST_MS = 50, SLOWEST_MS = 1000, AWAY_MS = 60000 };

static void sleep_ms(int ms)
{
    struct timespec wanted = { ms / 1000, ms % 1000 * 1000000L };

    nanosleep(&wanted, NULL);
}

/* One line that is written over; at the end it is cleared. */
static void show_progress(const json_t *job)
{
    const json_t *progress = json_object_get(job, "progress");

    if (isatty(STDERR_FILENO)) {
        fprintf(stderr, "\r\033[K%s: %" PRId64 " of %" PRId64 " runs, %" PRId64 " failed",
                in_text_or_empty(job, "state"), in_int(progress, "runs_done"),
                in_int(progress, "runs_total"), in_int(progress, "runs_failed"));
    }
}

static void clear_progress(void)
{
    if (isatty(STDERR_FILENO)) {
        fputs("\r\033[K", stderr);
    }
}

static bool is_one_of(const json_t *job, const char *const *states)
{
    const char *state = in_text_or_empty(job, "state");

    while (*states && strcmp(state, *states) != 0) {
        states++;
    }
    return *states != NULL;
}

/* A state that is not known would be waited in for ever. */
static bool goes_on(const struct server *server, json_t **job, int *ret_exit)
{
    static const char *const over[] = { "finished", "cancelled", NULL };
    static const char *const not_yet[] = { "queued", "running", NULL };
    struct err err;

    if (!*job || is_one_of(*job, over)) {
        return false;
    }
    if (is_one_of(*job, not_yet)) {
        return true;
    }
    err_set(&err, ERR_PROTOCOL,
            "the job at http://%s is in a state that is not known: '%.60s'",
            server->authority, in_text_or_empty(*job, "state"));
    *ret_exit = client_error(&err);
    json_decref(*job);
    *job = NULL;
    return false;
}

/* Asks for PATH once.  True: the service is away, which it may be for a while; ERR says
 * how.  Else *ret_job is the answer, or NULL, as client_json has it. */
static bool is_away(const struct server *server, const char *path, json_t **ret_job,
                    int *ret_exit, struct err *err)
{
    struct answer answer;
    bool away = server_ask(server, "GET", path, NULL, NULL, &answer, err) != ERR_OK;

    *ret_job = away ? NULL : client_json(server, &answer, ret_exit);
    answer_release(&answer);
    return away;
}

/* Whether a service of this command's own is not ready for as long: its database is
 * damaged, or its hosts are gone, and its jobs would stay as they are. */
static bool is_lost(const struct server *server, int64_t *since_ms, int *ret_exit)
{
    struct answer answer;
    struct err err;
    bool lost = false;

    if (!server->is_own) {
        return false;
    }
    if (server_ask(server, "GET", "/readyz", NULL, NULL, &answer, &err) != ERR_OK ||
        answer.status != 503) {
        *since_ms = 0;
    } else {
        *since_ms = *since_ms ? *since_ms : clock_monotonic_ms();
        lost = clock_monotonic_ms() - *since_ms >= AWAY_MS;
    }
    if (lost) {
        *ret_exit = client_refused(&answer);
    }
    answer_release(&answer);
    return lost;
}

json_t *client_wait(const struct server *server, const char *id, int *ret_exit)
{
    char *path = xasprintf("/v1/jobs/%s", id);
    int pause = FIRST_MS;
    int64_t away_ms = 0, lost_ms = 0; /* since when it is seen to be; 0: it is not */
    json_t *job = NULL;

    for (;;) {
        struct err err = { .code = ERR_OK };

        if (is_away(server, path, &job, ret_exit, &err)) {
            away_ms = away_ms ? away_ms : clock_monotonic_ms();
            if (clock_monotonic_ms() - away_ms >= AWAY_MS) {
                *ret_exit = client_error(&err);
                break;
            }
            sleep_ms(SLOWEST_MS);
            continue;
        }
        away_ms = 0;
        if (!goes_on(server, &job, ret_exit)) {
            break;
        }
        show_progress(job);
        json_decref(job);
        job = NULL;
        if (pause == SLOWEST_MS && is_lost(server, &lost_ms, ret_exit)) {
            break;
        }
        sleep_ms(pause);
        pause = 2 * pause < SLOWEST_MS ? 2 * pause : SLOWEST_MS;
    }
    clear_progress();
    free(path);
    return job;
}
