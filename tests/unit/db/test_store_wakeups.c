/* A wake-up that is lost delays, and stops nothing.  The C library can lose one where
 * several threads wait for the same (sourceware's bug 25847); here it loses all. */
#include "tests/unit/db/store_fixture.h"

#include <pthread.h>

#include "db/tx.h"

/* In place of the C library's, for all that is linked with them. */
int pthread_cond_signal(pthread_cond_t *condition)
{
    (void)condition;
    return 0;
}

int pthread_cond_broadcast(pthread_cond_t *condition)
{
    (void)condition;
    return 0;
}

static enum err_code count(struct tx *tx, void *arg, struct err *err)
{
    ++*(int *)arg;
    return tx_run(tx, err, "SELECT 1");
}

static void test_lost_wake_ups_stop_nothing(void **state)
{
    struct fixture *f = fixture_new();
    struct err err = { .message = "" };
    int calls = 0;

    (void)state;
    fixture_open(f);
    for (int i = 1; i <= 2; i++) {
        assert_int_equal(store_write_sync(f->store, count, &calls, &err), ERR_OK);
        assert_int_equal(store_read_sync(f->store, count, &calls, &err), ERR_OK);
        assert_int_equal(calls, 2 * i);
    }
    fixture_close(f);
    fixture_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(
        test_lost_wake_ups_stop_nothing) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
