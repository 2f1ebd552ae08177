#include "daemon/webhooks/sign.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

#include "daemon/base/buf.h"
#include "daemon/base/mem.h"

enum { KEY_LEAST = 24, KEY_MOST = 64, KEY_NEW = 32, SHA256_SIZE = 32 };

static const char prefix[] = "whsec_";

struct key {
    unsigned char bytes[KEY_MOST];
    size_t length; /* 0: there is none */
};

static struct key decode(const char *text)
{
    size_t skipped = strlen(prefix);
    gnutls_datum_t encoded, bytes;
    struct key key = { .length = 0 };

    if (strncmp(text, prefix, skipped) != 0 || strlen(text) >= SECRET_SIZE ||
        strlen(text) == skipped || strpbrk(text, " \t\r\n")) {
        return key;
    }
    encoded.data = (unsigned char *)text + skipped;
    encoded.size = (unsigned)strlen(text + skipped);
    if (gnutls_base64_decode2(&encoded, &bytes) != GNUTLS_E_SUCCESS) {
        return key;
    }
    if (bytes.size >= KEY_LEAST && bytes.size <= KEY_MOST) {
        memcpy(key.bytes, bytes.data, bytes.size);
        key.length = bytes.size;
    }
    gnutls_free(bytes.data);
    return key;
}

/* Appends to TEXT of SIZE bytes. */
static void encode(const unsigned char *bytes, unsigned length, char *text, size_t size)
{
    gnutls_datum_t plain = { .data = (unsigned char *)bytes, .size = length };
    gnutls_datum_t encoded;
    size_t used = strlen(text);

    if (gnutls_base64_encode2(&plain, &encoded) != GNUTLS_E_SUCCESS) {
        abort(); /* out of memory */
    }
    snprintf(text + used, size - used, "%.*s", (int)encoded.size, (char *)encoded.data);
    gnutls_free(encoded.data);
}

const char *secret_check(const char *text)
{
    return decode(text).length ? NULL
                               : "must be 'whsec_' and the base64 of 24 to 64 bytes";
}

void secret_new(char ret_secret[SECRET_SIZE])
{
    unsigned char bytes[KEY_NEW];

    if (gnutls_rnd(GNUTLS_RND_KEY, bytes, sizeof bytes) != GNUTLS_E_SUCCESS) {
        abort();
    }
    copy_text(ret_secret, SECRET_SIZE, prefix);
    encode(bytes, sizeof bytes, ret_secret, SECRET_SIZE);
}

void webhook_sign(const char *secret, const char *id, int64_t timestamp_s,
                  const char *body, size_t length, char ret_signature[SIGNATURE_SIZE])
{
    struct key key = decode(secret);
    unsigned char digest[SHA256_SIZE];
    struct buf text = BUF_INIT;

    buf_printf(&text, "%s.%" PRId64 ".", id, timestamp_s);
    buf_add(&text, body, length);
    if (gnutls_hmac_fast(GNUTLS_MAC_SHA256, key.bytes, key.length, text.data, text.length,
                         digest) != GNUTLS_E_SUCCESS) {
        abort();
    }
    buf_release(&text);
    copy_text(ret_signature, SIGNATURE_SIZE, "v1,");
    encode(digest, sizeof digest, ret_signature, SIGNATURE_SIZE);
}

void webhook_headers(struct buf *headers, const char *secret, const char *id,
                     int64_t timestamp_s, const char *body)
{
    char signature[SIGNATURE_SIZE];

    webhook_sign(secret, id, timestamp_s, body, strlen(body), signature);
    buf_printf(headers,
               "Content-Type: application/cloudevents+json; charset=utf-8\r\n"
               "User-Agent: reprod/" REPROD_VERSION
               "\r\n"
               "webhook-id: %s\r\nwebhook-timestamp: %" PRId64
               "\r\nwebhook-signature: %s\r\n",
               id, timestamp_s, signature);
}
