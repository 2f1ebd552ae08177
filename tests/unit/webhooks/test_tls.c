/* What is offered to a receiver: no TLS that was broken long ago. */
#include "daemon/delivery/tls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

/* Any authority: the system may have none. */
static const char authority[] =
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBdDCCARugAwIBAgIUaLcwjwBnN8sqdDgHQUvTUx/8UBYwCgYIKoZIzj0EAwIw\n"
    "DzENMAsGA1UEAwwEc2l0ZTAgFw0yNjExMjYxODQyMTlaGA8yMTI2MTEwMjE4NDIx\n"
    "OVowDzENMAsGA1UEAwwEc2l0ZTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABGBF\n"
    "jfwSRph+0W3zihdbfzrU2Ud12BD1J38LPvcDDD4ULgx4rfVhN66m/v6tDOMkBVkI\n"
    "TSmcLI2OTGgIvnMaL5KjUzBRMB0GA1UdDgQWBBSHZL7jWtU/Zpjnsio2jhuPGjNr\n"
    "0jAfBgNVHSMEGDAWgBSHZL7jWtU/Zpjnsio2jhuPGjNr0jAPBgNVHRMBAf8EBTAD\n"
    "AQH/MAoGCCqGSM49BAMCA0cAMEQCIEgag+LvVuSaQYUagRktN+99tj9nNMs2N++C\n"
    "yzQQrVIrAiB6bxtCnsY+33SUzFAIjqcAjsGkCemPCSEo7qyvNbRnhQ==\n"
    "-----END CERTIFICATE-----\n";

static struct tls_trust *trust(void)
{
    char path[] = "/tmp/reprod-tls-XXXXXX";
    int fd = mkstemp(path);
    struct tls_trust *loaded = NULL;
    struct err err;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, authority, sizeof authority - 1), sizeof authority - 1);
    close(fd);
    assert_int_equal(tls_trust_load(path, &loaded, &err), ERR_OK);
    unlink(path);
    return loaded;
}

/* A number of COUNT bytes at *AT, which moves on. */
static size_t number(const struct buf *hello, size_t *at, int count)
{
    size_t n = 0;

    for (int i = 0; i < count; i++) {
        assert_true(*at < hello->length);
        n = n << 8 | (unsigned char)hello->data[(*at)++];
    }
    return n;
}

static void skip_vector(const struct buf *hello, size_t *at, int count)
{
    size_t length = number(hello, at, count);

    *at += length;
}

/* RFC 8446, 4.1.2: records, version and random; session, ciphers, compression. */
static size_t extensions_at(const struct buf *hello)
{
    size_t at = 5 + 4 + 2 + 32;

    skip_vector(hello, &at, 1);
    skip_vector(hello, &at, 2);
    skip_vector(hello, &at, 1);
    return at + 2;
}

static void test_versions_that_are_offered(void **state)
{
    enum { SUPPORTED_VERSIONS = 43, TLS_1_2 = 0x0303 };
    struct tls_trust *t = trust();
    struct tls *tls = tls_new(t, "localhost");
    char cause[TLS_CAUSE_SIZE];
    struct buf hello;
    size_t at, kind, end;
    int offered = 0;

    (void)state;
    assert_int_equal(tls_shake(tls, cause), TLS_MORE);
    tls_output(tls, &hello);
    at = extensions_at(&hello);
    do {
        kind = number(&hello, &at, 2);
        end = number(&hello, &at, 2);
        end += at;
        at = kind == SUPPORTED_VERSIONS ? at + 1 : end;
    } while (kind != SUPPORTED_VERSIONS);
    while (at < end) {
        assert_true(number(&hello, &at, 2) >= TLS_1_2);
        offered++;
    }
    assert_true(offered > 0);
    buf_release(&hello);
    tls_free(tls);
    tls_trust_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions_that_are_offered),
    };

    return cmocka_run_group_tests_name("tls", tests, NULL, NULL);
}
