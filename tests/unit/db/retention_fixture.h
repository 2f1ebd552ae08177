/* What tests of retention share: time, and a look at all that is stored. */
#ifndef TESTS_UNIT_DB_RETENTION_FIXTURE_H
#define TESTS_UNIT_DB_RETENTION_FIXTURE_H

#include "tests/unit/db/store_fixture.h"

#include "db/fsck.h"
#include "db/tx.h"

enum {
    DAY_MS = 24 * 3600 * 1000,
    DAY = DAY_MS / 1000 /* in numbers of runs, which are seconds */
};

#define FAR_MS ((int64_t)400 * DAY_MS)

static inline void print_fault(void *arg, const char *line)
{
    ++*(int *)arg;
    print_message("fsck: %s\n", line);
}

static inline void assert_clean(struct fixture *f, uint32_t seed)
{
    struct fsck_counts counts;
    struct err err = { .message = "" };
    int faults = 0;

    if (fsck_database(f->path, print_fault, &faults, &counts, &err) != ERR_OK || faults) {
        fail_msg("history %u: %d faults %s", seed, faults, err.message);
    }
}

static inline enum err_code rebuild_all(struct tx *tx, void *arg, struct err *err)
{
    struct query q;
    int64_t ids[1000];
    int count = 0;

    (void)arg;
    query_begin(&q, tx, "SELECT id FROM cell ORDER BY id");
    while (query_step(&q) && count < 1000) {
        ids[count++] = query_take_int(&q);
    }
    if (query_end(&q, err) != ERR_OK) {
        return err->code;
    }
    for (int i = 0; i < count; i++) {
        if (cells_rebuild(tx, ids[i], FAR_MS, err) != ERR_OK) {
            return err->code;
        }
    }
    return ERR_OK;
}

#endif
