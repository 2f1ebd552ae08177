/* What single members of a page of runs must be (daemon/base/json_in.h), each refused by
 * name.  Private to daemon/peers. */
#ifndef DAEMON_PEERS_PEER_CHECKS_H
#define DAEMON_PEERS_PEER_CHECKS_H

#include <jansson.h>

#include "daemon/base/json_in.h"

void peer_check_id(struct in_reader *r, const json_t *value);
void peer_check_since(struct in_reader *r, const json_t *value);
void peer_check_state(struct in_reader *r, const json_t *value);
void peer_check_stack(struct in_reader *r, const json_t *value);
void peer_check_fact(struct in_reader *r, const json_t *value);
void peer_check_environment(struct in_reader *r, const json_t *value);
void peer_check_outcome(struct in_reader *r, const json_t *value);
void peer_check_subject(struct in_reader *r, const json_t *value);
void peer_check_check(struct in_reader *r, const json_t *value);
void peer_check_digest(struct in_reader *r, const json_t *value);
void peer_check_bits(struct in_reader *r, const json_t *value);
void peer_check_options(struct in_reader *r, const json_t *value);
void peer_check_circumstances(struct in_reader *r, const json_t *value);
void peer_check_seed(struct in_reader *r, const json_t *value);

#endif
