#include "daemon/process/loop.h"

#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "daemon/base/mem.h"
#include "daemon/process/exit_code.h"

void loop_must(int rc, const char *what)
{
    if (rc < 0) {
        fprintf(stderr, "reprod: %s: %s\n", what, uv_strerror(rc));
        _Exit(EXIT_CODE_OTHER);
    }
}

/* Only what a signal handler may do.  abort() goes on when this returns. */
static void last_words(int number)
{
    static const char text[] =
        "reprod: aborted: a library cannot go on (out of memory, "
        "descriptors or another resource)\n";

    (void)number;
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0) {
        return;
    }
}

void loop_prepare(void)
{
    signal(SIGABRT, last_words);
    json_set_alloc_funcs(xmalloc, free);
}

static void *end_at_last(void *arg)
{
    static const char text[] =
        "reprod: it did not come to its end in time after it was told to stop: it is "
        "ended; what was acknowledged is stored\n";
    const int64_t *within_ms = arg;
    struct timespec left = { .tv_sec = *within_ms / 1000,
                             .tv_nsec = *within_ms % 1000 * 1000000 };

    while (nanosleep(&left, &left) != 0) {
    }
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0) {
        /* nobody reads it */
    }
    _Exit(EXIT_CODE_OTHER);
}

void loop_must_end(int64_t within_ms)
{
    static int64_t within;
    pthread_t thread;
    sigset_t all, before;

    within = within_ms;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    if (pthread_create(&thread, NULL, end_at_last, &within) == 0) {
        pthread_detach(thread);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}
