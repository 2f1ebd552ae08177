/* Signatures as Standard Webhooks has them (standardwebhooks.com, symmetric, v1):
 * HMAC-SHA256 over "ID.TIMESTAMP.BODY".  Pure, but for new secrets. */
#ifndef DAEMON_WEBHOOKS_SIGN_H
#define DAEMON_WEBHOOKS_SIGN_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/base/buf.h"

/* "whsec_" and the base64 of 24 to 64 bytes. */
enum { SECRET_SIZE = 6 + 88 + 1, SIGNATURE_SIZE = 3 + 44 + 1 };

/* NULL, or what is wrong with TEXT as a secret: "must …". */
const char *secret_check(const char *text);

/* A new one of 32 random bytes. */
void secret_new(char ret_secret[SECRET_SIZE]);

/* "v1,BASE64".  SECRET was checked. */
void webhook_sign(const char *secret, const char *id, int64_t timestamp_s,
                  const char *body, size_t length, char ret_signature[SIGNATURE_SIZE]);

/* Adds the headers of a delivery of BODY to HEADERS, each with its line end: content
 * type, and those of Standard Webhooks, signed with SECRET. */
void webhook_headers(struct buf *headers, const char *secret, const char *id,
                     int64_t timestamp_s, const char *body);

#endif
