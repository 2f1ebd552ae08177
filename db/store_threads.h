/* The threads of a store: what they share, private to db/store*.c.
 *
 * Happy path of a write: store_write appends it to `writes`; the writer thread takes all
 * that is there, runs each inside a savepoint of one transaction, commits, and appends
 * them to `completed`; the loop thread finds store_fd readable and calls the callbacks.
 * Failure modes: a function fails: its savepoint is rolled back, it alone gets the error.
 * A statement makes SQLite give up the whole transaction (disk full, I/O error), or the
 * commit fails: every function of that transaction gets the error. */
#ifndef DB_STORE_THREADS_H
#define DB_STORE_THREADS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "db/store.h"

/* One queued read or write. */
struct work {
    struct work *next;
    store_fn fn;
    void *arg;
    store_done done;
    struct err result;
    bool sync;     /* somebody waits in store_*_sync; owned by that stack frame */
    bool finished; /* if sync; under the lock */
};

struct work_queue {
    struct work *first;
    struct work *last;
};

struct store {
    pthread_mutex_t lock; /* of the queues, the counts beside them, and `stopping` */
    pthread_cond_t write_queued, read_queued, sync_finished;
    struct work_queue writes, reads, completed;
    int reads_waiting;
    bool stopping;

    struct tx *writer_tx; /* only the writer thread uses it */
    pthread_t writer;
    struct reader {
        struct store *store;
        struct tx *tx; /* only this reader uses it */
        pthread_t thread;
    } * readers;
    int readers_open; /* elements of `readers` */
    int reader_count; /* of these, running */
    bool writer_started;
    int64_t read_deadline_ms;

    int event_fd;
    int lock_fd;
    atomic_int pending;
    atomic_uint_least64_t generation;
};

void work_queue_push(struct work_queue *queue, struct work *work);

/* Starts all, on connections that are open already.  Joined by store_threads_stop, which
 * commits the queued writes, answers waiting reads with ERR_BUSY and interrupts running
 * ones. */
enum err_code store_threads_start(struct store *store, struct err *err);
void store_threads_stop(struct store *store);

#endif
