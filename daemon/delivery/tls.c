#include "daemon/delivery/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "daemon/base/mem.h"

struct tls_trust {
    gnutls_certificate_credentials_t credentials;
};

struct tls {
    gnutls_session_t session;
    struct buf in, out;
    size_t taken; /* of IN */
};

enum err_code tls_trust_load(const char *ca_file, struct tls_trust **ret_trust,
                             struct err *err)
{
    struct tls_trust *trust = xcalloc(1, sizeof *trust);
    int system, own = 0;

    if (gnutls_certificate_allocate_credentials(&trust->credentials) < 0) {
        abort(); /* out of memory */
    }
    system = gnutls_certificate_set_x509_system_trust(trust->credentials);
    if (ca_file) {
        own = gnutls_certificate_set_x509_trust_file(trust->credentials, ca_file,
                                                     GNUTLS_X509_FMT_PEM);
    }
    if (own < 0 || (system <= 0 && !ca_file)) {
        tls_trust_free(trust);
        return err_set(err, ERR_IO, "%s: %s",
                       ca_file ? ca_file : "the certificate authorities of this system",
                       own < 0      ? gnutls_strerror(own)
                       : system < 0 ? gnutls_strerror(system)
                                    : "there are none");
    }
    *ret_trust = trust;
    return ERR_OK;
}

void tls_trust_free(struct tls_trust *trust)
{
    if (trust) {
        gnutls_certificate_free_credentials(trust->credentials);
        free(trust);
    }
}

static ssize_t push(gnutls_transport_ptr_t arg, const void *bytes, size_t length)
{
    struct tls *tls = arg;

    buf_add(&tls->out, bytes, length);
    return (ssize_t)length;
}

static ssize_t pull(gnutls_transport_ptr_t arg, void *bytes, size_t length)
{
    struct tls *tls = arg;
    size_t left = tls->in.length - tls->taken;
    size_t n = left < length ? left : length;

    if (n == 0) {
        gnutls_transport_set_errno(tls->session, EAGAIN);
        return -1;
    }
    memcpy(bytes, tls->in.data + tls->taken, n);
    tls->taken += n;
    if (tls->taken == tls->in.length) {
        buf_release(&tls->in);
        tls->taken = 0;
    }
    return (ssize_t)n;
}

static bool is_numeric(const char *host)
{
    unsigned char ignored[sizeof(struct in6_addr)];

    return inet_pton(AF_INET, host, ignored) == 1 ||
           inet_pton(AF_INET6, host, ignored) == 1;
}

/* Beyond what the system asks for: nothing that was broken long ago (RFC 8996), and keys
 * of 112 bits, which is RSA of 2048. */
static const char at_least[] = "-VERS-TLS1.0:-VERS-TLS1.1:%PROFILE_MEDIUM";

struct tls *tls_new(const struct tls_trust *trust, const char *host)
{
    struct tls *tls = xcalloc(1, sizeof *tls);

    if (gnutls_init(&tls->session, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL) <
            0 ||
        gnutls_set_default_priority_append(tls->session, at_least, NULL, 0) < 0 ||
        gnutls_credentials_set(tls->session, GNUTLS_CRD_CERTIFICATE, trust->credentials) <
            0) {
        abort(); /* out of memory */
    }
    if (!is_numeric(host)) {
        gnutls_server_name_set(tls->session, GNUTLS_NAME_DNS, host, strlen(host));
    }
    gnutls_session_set_verify_cert(tls->session, host, 0);
    gnutls_transport_set_ptr(tls->session, tls);
    gnutls_transport_set_push_function(tls->session, push);
    gnutls_transport_set_pull_function(tls->session, pull);
    return tls;
}

void tls_free(struct tls *tls)
{
    if (tls) {
        gnutls_deinit(tls->session);
        buf_release(&tls->in);
        buf_release(&tls->out);
        free(tls);
    }
}

void tls_received(struct tls *tls, const void *bytes, size_t length)
{
    buf_add(&tls->in, bytes, length);
}

void tls_output(struct tls *tls, struct buf *ret_bytes)
{
    *ret_bytes = tls->out;
    tls->out = (struct buf)BUF_INIT;
}

static bool goes_on(int rc)
{
    return rc == GNUTLS_E_AGAIN || rc == GNUTLS_E_INTERRUPTED ||
           (rc < 0 && !gnutls_error_is_fatal(rc));
}

enum tls_state tls_shake(struct tls *tls, char ret_cause[TLS_CAUSE_SIZE])
{
    gnutls_datum_t words = { .data = NULL };
    int rc = gnutls_handshake(tls->session);

    while (rc < 0 && rc != GNUTLS_E_AGAIN && goes_on(rc)) {
        rc = gnutls_handshake(tls->session);
    }
    if (rc == GNUTLS_E_SUCCESS) {
        return TLS_READY;
    }
    if (rc == GNUTLS_E_AGAIN) {
        return TLS_MORE;
    }
    if (rc == GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR &&
        gnutls_certificate_verification_status_print(
            gnutls_session_get_verify_cert_status(tls->session), GNUTLS_CRT_X509, &words,
            0) == GNUTLS_E_SUCCESS) {
        snprintf(ret_cause, TLS_CAUSE_SIZE, "TLS: %.180s", (const char *)words.data);
        gnutls_free(words.data);
    } else {
        snprintf(ret_cause, TLS_CAUSE_SIZE, "TLS: %.180s", gnutls_strerror(rc));
    }
    return TLS_FAILED;
}

bool tls_write(struct tls *tls, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t n = gnutls_record_send(tls->session, text, length);

        if (n < 0 && n != GNUTLS_E_INTERRUPTED) {
            return false; /* what it pushes always finds room */
        }
        text += n > 0 ? n : 0;
        length -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* What is no text, such as a ticket for later, makes it say "again" with more behind it.
 */
bool tls_read(struct tls *tls, struct buf *to)
{
    char part[4096];

    for (;;) {
        size_t left = tls->in.length - tls->taken;
        ssize_t n = gnutls_record_recv(tls->session, part, sizeof part);
        bool moved = tls->in.length - tls->taken < left;

        if (n > 0) {
            buf_add(to, part, (size_t)n);
        } else if (n == 0 || !goes_on((int)n)) {
            return false;
        } else if (!moved) {
            return true;
        }
    }
}
