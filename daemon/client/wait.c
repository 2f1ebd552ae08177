#include "daemon/client/wait.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

static bool is_over(const json_t *job)
{
    const char *state = in_text_or_empty(job, "state");

    return strcmp(state, "finished") == 0 || strcmp(state, "cancelled") == 0;
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

json_t *client_wait(const struct server *server, const char *id, int *ret_exit)
{
    char *path = xasprintf("/v1/jobs/%s", id);
    int pause = FIRST_MS, away = 0;
    json_t *job = NULL;

    for (;;) {
        struct err err = { .code = ERR_OK };

        if (is_away(server, path, &job, ret_exit, &err)) {
            if (away >= AWAY_MS) {
                *ret_exit = client_error(&err);
                break;
            }
            away += SLOWEST_MS;
            sleep_ms(SLOWEST_MS);
            continue;
        }
        away = 0;
        if (!job || is_over(job)) {
            break;
        }
        show_progress(job);
        json_decref(job);
        sleep_ms(pause);
        pause = 2 * pause < SLOWEST_MS ? 2 * pause : SLOWEST_MS;
    }
    clear_progress();
    free(path);
    return job;
}
