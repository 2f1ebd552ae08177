/* The state of a host, in a word and in a sentence.  Loop thread only. */
#ifndef DAEMON_FLEET_FLEET_WORDS_H
#define DAEMON_FLEET_FLEET_WORDS_H

#include "daemon/fleet/fleet_state.h"

/* HOST is given more time than agents need: its launch command may stand in a queue. */
bool fleet_host_may_queue(const struct fleet_host *host);

/* As of NOW_MS (monotonic). */
enum fleet_state fleet_host_state(const struct fleet_host *host, int64_t now_ms);

/* Looks for what is not usable among the stacks of HOST's hello: after each that is taken
 * in, since hosts are asked how they are all the time. */
void fleet_host_name_unusable(struct fleet_host *host);

/* "online", "released", …: what the API has. */
const char *fleet_state_name(enum fleet_state state);

/* Why HOST is in its state, or what is wrong with it; "": nothing.  Borrowed from HOST or
 * RET_TEXT. */
const char *fleet_host_cause(const struct fleet_host *host,
                             char ret_text[FLEET_WORDS_SIZE]);

/* The same where somebody should look after it: not of a host that nobody wants now, that
 * waits for its turn, or that an engine holds. */
const char *fleet_host_trouble(const struct fleet_host *host,
                               char ret_text[FLEET_WORDS_SIZE]);

#endif
