#include "daemon/process/loop.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
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
