/* The peers of the configuration (daemon/config/peers.h): other services, whose runs are
 * pulled from time to time by a command, such as ssh, and counted with our own.
 *
 * The happy path: the command prints pages (daemon/peers/peer_page.h), each of them is
 * taken in one transaction with the cursor behind it (db/peers/peer_rows.h), and it
 * exits. A page is asked for no sooner than the last one was taken and as long a rest is
 * over: others have the writer at least half of the time.
 *
 * What can go wrong is a named state of that peer, with its cause, and is tried again
 * later, each time after twice as long: the command fails (`unreachable`) or prints what
 * is no page (`garbage`); it speaks another format (`incompatible`), is of a time that is
 * still to come here (`ahead`), or is of this very service (`same_service`); the database
 * takes nothing (`store`).  What was taken before stays.  Nothing else waits for it.
 *
 * Loop thread only. */
#ifndef DAEMON_PEERS_PEERS_H
#define DAEMON_PEERS_PEERS_H

#include <jansson.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/base/err.h"
#include "db/store.h"

struct peers;

/* CONFIG is the array of the configuration, borrowed.  Reads where each was left: for the
 * start only. */
enum err_code peers_new(uv_loop_t *loop, struct store *store, const json_t *config,
                        struct peers **ret_peers, struct err *err);

/* Starts what is due; called about once a second. */
void peers_tick(struct peers *peers, int64_t now_monotonic_ms);

/* As of struct api_hooks (new reference). */
json_t *peers_json(const struct peers *peers);

/* Starts nothing more, and ends what runs; CLOSED(arg) once that is so. */
void peers_close(struct peers *peers, void (*closed)(void *arg), void *arg);

/* After the store was closed.  NULL is fine. */
void peers_free(struct peers *peers);

/* How long to wait after a failure: twice as long as BEFORE_MS (0: it is the first), up
 * to ten minutes.  Pure. */
int64_t peers_backoff(int64_t before_ms);

#endif
