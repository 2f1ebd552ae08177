#include "db/upkeep/fsck_cells.h"

#include <pthread.h>
#include <stdlib.h>

#include "daemon/base/mem.h"
#include "db/connection.h"
#include "db/tx.h"

enum { CELLS_AT_ONCE = 256, READERS_MAX = 16, TURNS = 8 };

enum err_code fsck_cells_prepare(struct tx *tx, enum fsck_cache cache, struct err *err)
{
    int rc = sqlite3_exec(tx->db,
                          cache == FSCK_CACHE_LARGE
                              ? "PRAGMA cache_size = -65536; PRAGMA temp.cache_size = "
                                "-65536;"
                              : "PRAGMA cache_size = -8192; PRAGMA temp.cache_size = "
                                "-8192;",
                          NULL, NULL, NULL);

    return rc == SQLITE_OK ? recompute_prepare(tx, err) : tx_error(tx->db, rc, err);
}

/* COUNT cells as they are at one instant. */
static enum err_code compare_some(struct tx *tx, const struct recompute_how *how,
                                  const int64_t *ids, int count,
                                  struct recomputed *counts, struct err *err)
{
    struct err ignored;
    enum err_code code = tx_run(tx, err, "BEGIN");

    if (code == ERR_OK) {
        code = recompute_cells(tx, how, ids, count, counts, err);
        tx_run(tx, &ignored, "ROLLBACK"); /* a COMMIT may fail on damage */
    }
    return code;
}

enum err_code fsck_cells_one_by_one(struct tx *tx, const struct recompute_how *how,
                                    struct recomputed *counts, struct err *err)
{
    int64_t *ids;
    int count;
    enum err_code code = recompute_list(tx, &ids, &count, err);

    for (int i = 0; i < count && code == ERR_OK; i += CELLS_AT_ONCE) {
        int some = count - i < CELLS_AT_ONCE ? count - i : CELLS_AT_ONCE;

        code = compare_some(tx, how, ids + i, some, counts, err);
    }
    free(ids);
    return code;
}

/* What the readers share. */
struct shared {
    struct fsck_cells *cells;
    pthread_mutex_t lock; /* of all below, and of what HOW's functions touch */
    int64_t *ids;
    int count, next; /* cells, and the first that nobody has taken */
    int at_once;     /* that a reader takes */
    struct err err;  /* the first that a reader met */
};

struct reader {
    struct shared *shared;
    struct tx *tx;
    pthread_t thread;
    bool started;
    struct mark right[CELLS_AT_ONCE]; /* of the cells that it took last */
    int right_count;
};

static void differs(void *arg, int64_t cell, const char *what)
{
    struct reader *r = arg;
    const struct recompute_how *how = &r->shared->cells->how;

    pthread_mutex_lock(&r->shared->lock);
    how->differs(how->arg, cell, what);
    pthread_mutex_unlock(&r->shared->lock);
}

static void right(void *arg, const struct mark *mark)
{
    struct reader *r = arg;

    r->right[r->right_count++] = *mark;
}

static enum err_code write_marks(struct tx *tx, const struct reader *r, struct err *err)
{
    struct err ignored;

    if (tx_run(tx, err, "BEGIN IMMEDIATE") != ERR_OK) {
        return err->code;
    }
    if (marks_store(tx, r->right, r->right_count, r->shared->cells->now_ms, err) !=
            ERR_OK ||
        tx_run(tx, err, "COMMIT") != ERR_OK) {
        if (!sqlite3_get_autocommit(tx->db)) {
            tx_run(tx, &ignored, "ROLLBACK");
        }
        return err->code;
    }
    return ERR_OK;
}

/* That they cannot be stored is no fault of the database. */
static void keep_marks(struct reader *r)
{
    struct shared *s = r->shared;
    struct err ignored;

    pthread_mutex_lock(&s->lock);
    if (s->cells->marks && !s->cells->marks_failed && r->right_count) {
        s->cells->marks_failed = write_marks(s->cells->marks, r, &ignored) != ERR_OK;
    }
    pthread_mutex_unlock(&s->lock);
    r->right_count = 0;
}

static int take_cells(struct shared *s, const int64_t **ret_ids)
{
    int count;

    pthread_mutex_lock(&s->lock);
    count = s->err.code != ERR_OK ? 0 : s->count - s->next;
    count = count < s->at_once ? count : s->at_once;
    *ret_ids = count ? s->ids + s->next : NULL; /* there may be no cells at all */
    s->next += count;
    pthread_mutex_unlock(&s->lock);
    return count;
}

/* ERR: what went wrong, or NULL. */
static void add_counts(struct reader *r, const struct recomputed *counts,
                       const struct err *err)
{
    struct shared *s = r->shared;
    struct recomputed *sum = &s->cells->counts;

    pthread_mutex_lock(&s->lock);
    sum->compared += counts->compared;
    sum->trusted += counts->trusted;
    sum->differing += counts->differing;
    if (err && s->err.code == ERR_OK) {
        s->err = *err;
    }
    pthread_mutex_unlock(&s->lock);
}

static void *compare_all(void *arg)
{
    struct reader *r = arg;
    struct recompute_how how = r->shared->cells->how;
    const int64_t *ids;
    int count;

    how.differs = differs;
    how.right = right;
    how.arg = how.right_arg = r;
    while ((count = take_cells(r->shared, &ids)) > 0) {
        struct recomputed counts = { 0 };
        struct err err;
        enum err_code code = compare_some(r->tx, &how, ids, count, &counts, &err);

        add_counts(r, &counts, code == ERR_OK ? NULL : &err);
        keep_marks(r);
    }
    return NULL;
}

/* A further reader that cannot be started is done without. */
static void start_reader(struct reader *r)
{
    const struct fsck_cells *cells = r->shared->cells;
    struct err ignored;

    if (connection_open_beside(cells->path, cells->busy_timeout_ms, &r->tx, &ignored) !=
        ERR_OK) {
        return;
    }
    if (fsck_cells_prepare(r->tx, FSCK_CACHE_LARGE, &ignored) == ERR_OK) {
        r->started = pthread_create(&r->thread, NULL, compare_all, r) == 0;
    }
}

static int within(int value, int most)
{
    return value < 1 ? 1 : value > most ? most : value;
}

/* The first reader is this thread.  Each takes many cells at once, but not so many that
 * the others have none. */
static void run_readers(struct shared *s, struct tx *tx)
{
    int count = within(s->cells->readers, READERS_MAX);
    struct reader *readers = xcalloc((size_t)count, sizeof *readers);

    s->at_once = within(s->count / (count * TURNS), CELLS_AT_ONCE);

    for (int i = 0; i < count; i++) {
        readers[i].shared = s;
        if (i > 0) {
            start_reader(&readers[i]);
        }
    }
    readers[0].tx = tx;
    compare_all(&readers[0]);
    for (int i = 1; i < count; i++) {
        if (readers[i].started) {
            pthread_join(readers[i].thread, NULL);
        }
        tx_free(readers[i].tx);
    }
    free(readers);
}

enum err_code fsck_cells_beside(struct fsck_cells *cells, struct tx *tx, struct err *err)
{
    struct shared shared = { .cells = cells, .err = { .code = ERR_OK } };

    if (recompute_list(tx, &shared.ids, &shared.count, err) != ERR_OK) {
        return err->code;
    }
    pthread_mutex_init(&shared.lock, NULL);
    run_readers(&shared, tx);
    pthread_mutex_destroy(&shared.lock);
    free(shared.ids);
    if (shared.err.code != ERR_OK) {
        *err = shared.err;
    }
    return shared.err.code;
}
