/* The peers of a configuration: other services whose runs are taken (daemon/peers/).
 *
 *   {"name":"east", "launch":["ssh","east-1","reprod","export","--since","{cursor}"],
 *    "every_seconds":60}
 *
 * In the words of `launch`, {cursor} is the id of the last run that was passed, 26
 * characters of A-Z and 0-9.  What the command prints is that of `reprod export`. */
#ifndef DAEMON_CONFIG_PEERS_H
#define DAEMON_CONFIG_PEERS_H

#include <jansson.h>

#include "daemon/base/err.h"

struct in_member;

enum { PEERS_MAX = 64, PEER_EVERY_SECONDS = 60 };

/* What an element of the setting must be. */
extern const struct in_member peers_element;

/* PEERS are as the setting wants them; whether they fit together, and with HOSTS
 * (expanded) and STACKS: ERR_INVALID says what is wrong, after the pointer of the entry
 * in FILE. */
enum err_code peers_check(const json_t *peers, const json_t *hosts, const json_t *stacks,
                          const char *file, struct err *err);

/* The command of a complete PEER, with CURSOR in its place: a list that ends with NULL,
 * for free_texts. */
char **peers_command(const json_t *peer, const char *cursor);

/* How often it is asked. */
int peers_every_seconds(const json_t *peer);

#endif
