#include "daemon/run/run_started.h"

#include <stdlib.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "db/runs.h"

struct started {
    char run[ID_SIZE], boot_id[CASE_NAME_SIZE];
    int64_t pid, process_start, now_ms;
};

static enum err_code store_started(struct tx *tx, void *arg, struct err *err)
{
    const struct started *s = arg;

    return runs_started(tx, s->run, s->pid, s->process_start, s->boot_id, s->now_ms, err);
}

static void started_stored(void *arg, const struct err *err)
{
    struct started *s = arg;

    if (err->code != ERR_OK) {
        log_warning("store: process of run %s: %s", s->run, err->message);
    }
    free(s);
}

void run_started_store(struct store *store, const char *run, const char *boot_id,
                       int64_t pid, int64_t process_start)
{
    struct started *s = xcalloc(1, sizeof *s);

    copy_text(s->run, sizeof s->run, run);
    copy_text(s->boot_id, sizeof s->boot_id, boot_id);
    s->pid = pid;
    s->process_start = process_start;
    s->now_ms = clock_wall_ms();
    store_write(store, store_started, s, started_stored);
}
