#include "db/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include "daemon/base/mem.h"
#include "db/connection.h"
#include "db/filesystem.h"
#include "db/store_threads.h"
#include "db/tx.h"

enum { READS_WAITING_MAX = 256 };

static enum err_code take_lock(struct store *store, const char *path, struct err *err)
{
    char *name = xasprintf("%s.lock", path);
    enum err_code code = ERR_OK;

    store->lock_fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (store->lock_fd < 0) {
        code = err_set_errno(err, errno, "%s", name);
    } else if (flock(store->lock_fd, LOCK_EX | LOCK_NB) != 0) {
        code = errno == EWOULDBLOCK
                   ? err_set(err, ERR_BUSY, "another reprod serves %s", path)
                   : err_set_errno(err, errno, "%s", name);
    }
    free(name);
    return code;
}

/* A random start makes values of two lives of the daemon differ: they serve as ETags. */
static uint64_t first_generation(void)
{
    uint32_t random = 0;

    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) {
        random = (uint32_t)getpid();
    }
    return (uint64_t)(random >> 1) << 32;
}

static enum err_code open_connections(struct store *store, const char *path,
                                      const struct store_options *options,
                                      struct err *err)
{
    enum err_code code =
        connection_open_writer(path, options->busy_timeout_ms, &store->writer_tx, err);

    for (int i = 0; i < options->readers && code == ERR_OK; i++) {
        store->readers[i].store = store;
        code = connection_open_reader(path, options->busy_timeout_ms,
                                      &store->readers[i].tx, err);
    }
    return code;
}

static void release(struct store *store)
{
    store_threads_stop(store);
    for (int i = 0; i < store->readers_open; i++) {
        tx_free(store->readers[i].tx);
    }
    tx_free(store->writer_tx); /* the last one: writes the log back and removes it */
    free(store->readers);
    if (store->event_fd >= 0) {
        close(store->event_fd);
    }
    if (store->lock_fd >= 0) {
        close(store->lock_fd);
    }
    pthread_cond_destroy(&store->write_queued);
    pthread_cond_destroy(&store->read_queued);
    pthread_cond_destroy(&store->sync_finished);
    pthread_mutex_destroy(&store->lock);
    free(store);
}

enum err_code store_open(const char *path, const struct store_options *options,
                         struct store **ret_store, struct err *err)
{
    struct store *store = xcalloc(1, sizeof *store);

    pthread_mutex_init(&store->lock, NULL);
    pthread_cond_init(&store->write_queued, NULL);
    pthread_cond_init(&store->read_queued, NULL);
    pthread_cond_init(&store->sync_finished, NULL);
    atomic_init(&store->pending, 0);
    atomic_init(&store->generation, first_generation());
    store->readers = xcalloc((size_t)options->readers, sizeof *store->readers);
    store->readers_open = options->readers;
    store->read_deadline_ms = options->read_deadline_ms;
    store->lock_fd = -1;
    store->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (store->event_fd < 0) {
        err_set_errno(err, errno, "eventfd");
    } else if (filesystem_check(path, err) == ERR_OK &&
               take_lock(store, path, err) == ERR_OK &&
               open_connections(store, path, options, err) == ERR_OK &&
               store_threads_start(store, err) == ERR_OK) {
        *ret_store = store;
        return ERR_OK;
    }
    release(store);
    return err->code;
}

void store_close(struct store *store)
{
    if (!store) {
        return;
    }
    store_threads_stop(store);
    store_dispatch(store);
    release(store);
}

static struct work *work_new(store_fn fn, void *arg, store_done done)
{
    struct work *work = xcalloc(1, sizeof *work);

    work->fn = fn;
    work->arg = arg;
    work->done = done;
    return work;
}

/* Once the threads are gone a write can only be refused, through its callback. */
static void queue_write(struct store *store, struct work *work)
{
    pthread_mutex_lock(&store->lock);
    if (store->stopping) {
        err_set(&work->result, ERR_BUSY, "the database is being closed");
        work->finished = true;
        if (!work->sync) {
            work_queue_push(&store->completed, work);
        }
    } else {
        work_queue_push(&store->writes, work);
        pthread_cond_signal(&store->write_queued);
    }
    pthread_mutex_unlock(&store->lock);
}

/* LIMIT 0: any number may wait. */
static enum err_code queue_read(struct store *store, struct work *work, int limit,
                                struct err *err)
{
    enum err_code code = ERR_OK;

    pthread_mutex_lock(&store->lock);
    if (store->stopping) {
        code = err_set(err, ERR_BUSY, "the database is being closed");
    } else if (limit && store->reads_waiting >= limit) {
        code = err_set(err, ERR_BUSY, "too many reads are waiting");
    } else {
        work_queue_push(&store->reads, work);
        store->reads_waiting++;
        pthread_cond_signal(&store->read_queued);
    }
    pthread_mutex_unlock(&store->lock);
    return code;
}

void store_write(struct store *store, store_fn fn, void *arg, store_done done)
{
    atomic_fetch_add(&store->pending, 1);
    queue_write(store, work_new(fn, arg, done));
}

enum err_code store_read(struct store *store, store_fn fn, void *arg, store_done done,
                         struct err *err)
{
    struct work *work = work_new(fn, arg, done);

    atomic_fetch_add(&store->pending, 1);
    if (queue_read(store, work, READS_WAITING_MAX, err) != ERR_OK) {
        atomic_fetch_sub(&store->pending, 1);
        free(work);
        return err->code;
    }
    return ERR_OK;
}

static enum err_code wait_for(struct store *store, struct work *work, struct err *err)
{
    pthread_mutex_lock(&store->lock);
    while (!work->finished) {
        pthread_cond_wait(&store->sync_finished, &store->lock);
    }
    pthread_mutex_unlock(&store->lock);
    if (work->result.code != ERR_OK) {
        *err = work->result;
    }
    return work->result.code;
}

enum err_code store_write_sync(struct store *store, store_fn fn, void *arg,
                               struct err *err)
{
    struct work work = { .fn = fn, .arg = arg, .sync = true };

    queue_write(store, &work);
    return wait_for(store, &work, err);
}

enum err_code store_read_sync(struct store *store, store_fn fn, void *arg,
                              struct err *err)
{
    struct work work = { .fn = fn, .arg = arg, .sync = true };
    enum err_code code = queue_read(store, &work, 0, err);

    return code == ERR_OK ? wait_for(store, &work, err) : code;
}

int store_fd(const struct store *store)
{
    return store->event_fd;
}

/* Takes what is there now: what callbacks add is for the next turn of the loop, except
 * while closing, when there is no next turn. */
void store_dispatch(struct store *store)
{
    struct work *list;
    eventfd_t ignored;
    bool again;

    do {
        struct work *next;

        eventfd_read(store->event_fd, &ignored);
        pthread_mutex_lock(&store->lock);
        list = store->completed.first;
        store->completed = (struct work_queue){ NULL, NULL };
        again = store->stopping && list;
        pthread_mutex_unlock(&store->lock);
        for (struct work *w = list; w; w = next) {
            next = w->next;
            atomic_fetch_sub(&store->pending, 1);
            if (w->done) {
                w->done(w->arg, &w->result);
            }
            free(w);
        }
    } while (again);
}

int store_pending(const struct store *store)
{
    return atomic_load(&store->pending);
}

uint64_t store_generation(const struct store *store)
{
    return atomic_load(&store->generation);
}
