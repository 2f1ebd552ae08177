/* Runs that other services measured (daemon/jobs/peer_run.h) in the database: taken page
 * by page, each in the transaction that moves the cursor, so every run is taken once,
 * whenever the service ends.
 *
 * A run of a peer is stored as one of our own: its job and item are copied (they are over
 * here: nothing of them runs), and runs_finish judges it: inputs, digests, sums, cell,
 * verdict.  What makes it a peer's is its job, which is in peer_job. */
#ifndef DB_PEERS_PEER_ROWS_H
#define DB_PEERS_PEER_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/jobs/peer_run.h"

struct tx;

/* What a page came to. */
struct peer_taken {
    int64_t taken, known, refused; /* runs */
    bool reset; /* it is of another service than the pages before: nothing was taken, and
                   the cursor is at the beginning again */
};

/* Takes PAGE of the peer called NAME.  What is wrong with a single run refuses it, and is
 * counted; runs of PAGE that are refused already likewise.
 *
 * ERR_CONFLICT: PAGE does not begin at the cursor.  ERR_UNSUPPORTED: it is of this
 * service, or of a copy of its database. */
enum err_code peers_take(struct tx *tx, const char *name, const struct peer_page *page,
                         int64_t now_ms, struct peer_taken *ret_taken, struct err *err);

/* Where the next page of NAME begins. */
enum err_code peers_cursor(struct tx *tx, const char *name, char ret_cursor[ID_SIZE],
                           struct err *err);

/* How this service calls itself to others. */
enum err_code peers_service(struct tx *tx, char ret_service[PEER_SERVICE_SIZE],
                            struct err *err);

/* How far a peer was read. */
struct peer_progress {
    char name[PEER_NAME_SIZE], service[PEER_SERVICE_SIZE], reprod[PEER_VERSION_SIZE];
    char cursor[ID_SIZE], waits_for[ID_SIZE];
    int64_t taken, known, folded, of_peers, pulled_ms, caught_up_ms;
};
enum err_code peers_each(struct tx *tx,
                         void (*visit)(void *arg, const struct peer_progress *progress),
                         void *arg, struct err *err);

struct peer_refused {
    const char *reason, *run, *words; /* borrowed for the call */
    int64_t runs, at_ms;
};
enum err_code peers_each_refusal(struct tx *tx, const char *name,
                                 void (*visit)(void *arg,
                                               const struct peer_refused *refused),
                                 void *arg, struct err *err);

/* Where run ID comes from; peer "": it was measured here, or there is no such run. */
struct peer_origin {
    char peer[PEER_NAME_SIZE], service[PEER_SERVICE_SIZE], reprod[PEER_VERSION_SIZE];
};
enum err_code peers_origin(struct tx *tx, const char *id, struct peer_origin *ret_origin,
                           struct err *err);

#endif
