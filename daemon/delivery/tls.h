/* TLS of one connection, over bytes that somebody else moves: GnuTLS, which libmicrohttpd
 * brings along.  TLS 1.2 or later, whose host is verified by the certificate authorities
 * of the system. */
#ifndef DAEMON_DELIVERY_TLS_H
#define DAEMON_DELIVERY_TLS_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/base/buf.h"
#include "daemon/base/err.h"

struct tls_trust;
struct tls;

enum { TLS_CAUSE_SIZE = 200 };

/* The authorities of the system, and those of CA_FILE (NULL: no others).  Reads files:
 * not on the loop. */
enum err_code tls_trust_load(const char *ca_file, struct tls_trust **ret_trust,
                             struct err *err);
void tls_trust_free(struct tls_trust *trust); /* NULL is fine */

/* With HOST, a name or a numeric address; TRUST outlives it. */
struct tls *tls_new(const struct tls_trust *trust, const char *host);
void tls_free(struct tls *tls); /* NULL is fine */

/* Bytes from the peer. */
void tls_received(struct tls *tls, const void *bytes, size_t length);

/* Bytes for the peer, as far as there are any: moved into RET_BYTES. */
void tls_output(struct tls *tls, struct buf *ret_bytes);

/* Goes on with the handshake as far as it can. */
enum tls_state { TLS_MORE, TLS_READY, TLS_FAILED };
enum tls_state tls_shake(struct tls *tls, char ret_cause[TLS_CAUSE_SIZE]);

/* Once it is ready: encrypts TEXT for tls_output; appends to TO what can be decrypted.
 * False: it is broken. */
bool tls_write(struct tls *tls, const char *text, size_t length);
bool tls_read(struct tls *tls, struct buf *to);

#endif
