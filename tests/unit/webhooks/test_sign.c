/* Signatures of webhooks, by what the libraries of Standard Webhooks are tested with. */
#include "daemon/webhooks/sign.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/array.h"

static const char secret[] = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

static void test_a_known_signature(void **state)
{
    static const char body[] = "{\"test\": 2432232314}";
    char signature[SIGNATURE_SIZE];

    (void)state;
    webhook_sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body, strlen(body),
                 signature);
    assert_string_equal(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    webhook_sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265331, body, strlen(body),
                 signature);
    assert_string_not_equal(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

static void test_which_secrets_there_are(void **state)
{
    static const char *const wrong[] = {
        "",
        "whsec_",
        "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa=w", /* no base64 */
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2La",     /* 21 bytes */
        "whsec_MfKQ9r8GKYqr TwjUPD8ILPZIo2LaLaSw",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n",
        /* 65 bytes, and more than fit */
        ("whsec_"
         "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
         "AAAAAAAAAAA="),
        ("whsec_"
         "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
         "AAAAAAAAAAAAAAAAAAAA"),
    };
    char fresh[SECRET_SIZE], other[SECRET_SIZE];

    (void)state;
    assert_null(secret_check(secret));
    for (int i = 0; i < COUNT_OF(wrong); i++) {
        if (!secret_check(wrong[i])) {
            fail_msg("'%s' is no secret", wrong[i]);
        }
    }
    secret_new(fresh);
    secret_new(other);
    assert_null(secret_check(fresh));
    assert_int_equal(strlen(fresh), 6 + 44);
    assert_string_not_equal(fresh, other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_known_signature),
        cmocka_unit_test(test_which_secrets_there_are),
    };

    return cmocka_run_group_tests_name("webhook signatures", tests, NULL, NULL);
}
