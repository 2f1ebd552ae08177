/* Which of the waiting reads comes next. */
#include "db/queue/lanes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MOST = 400 };
static struct queued items[MOST];

static enum err_code add(struct lanes *lanes, int number, bool heavy)
{
    struct err err = { .code = ERR_OK };

    items[number] = (struct queued){ .heavy = heavy };
    return lanes_add(lanes, &items[number], &err);
}

static void expect(struct lanes *lanes, int number)
{
    assert_ptr_equal(lanes_take(lanes, false), number < 0 ? NULL : &items[number]);
}

static void test_cheap_ones_first(void **state)
{
    struct lanes lanes = { .readers = 2 };

    (void)state;
    for (int i = 0; i < 6; i++) {
        add(&lanes, i, i < 3);
    }
    for (int i = 3; i < 6; i++) {
        expect(&lanes, i);
    }
    expect(&lanes, 0);
}

static void test_heavy_ones_leave_a_reader(void **state)
{
    struct lanes lanes = { .readers = 3 };

    (void)state;
    for (int i = 0; i < 4; i++) {
        add(&lanes, i, true);
    }
    expect(&lanes, 0);
    expect(&lanes, 1);
    expect(&lanes, -1);
    add(&lanes, 4, false);
    expect(&lanes, 4);
    expect(&lanes, -1);
    lanes_done(&lanes);
    expect(&lanes, 2);
    expect(&lanes, -1);
    assert_ptr_equal(lanes_take(&lanes, true), &items[3]);
    assert_null(lanes_take(&lanes, true));
}

/* But the only reader takes them, too. */
static void test_one_reader(void **state)
{
    struct lanes lanes = { .readers = 1 };

    (void)state;
    add(&lanes, 0, true);
    expect(&lanes, 0);
}

static void test_a_heavy_one_has_its_turn(void **state)
{
    struct lanes lanes = { .readers = 2 };

    (void)state;
    add(&lanes, 100, true);
    for (int i = 0; i < 2 * LANES_PASSED; i++) {
        add(&lanes, i, false);
    }
    for (int i = 0; i < LANES_PASSED; i++) {
        expect(&lanes, i);
    }
    expect(&lanes, 100);
    add(&lanes, 101, true);
    for (int i = LANES_PASSED; i < 2 * LANES_PASSED; i++) {
        expect(&lanes, i);
    }
    expect(&lanes, -1);
    lanes_done(&lanes);
    expect(&lanes, 101);
}

static void test_so_many_may_wait(void **state)
{
    struct lanes lanes = { .readers = 2 };
    int number = 0;

    (void)state;
    for (int i = 0; i < LANES_HEAVY_MAX; i++) {
        assert_int_equal(add(&lanes, number++, true), ERR_OK);
    }
    assert_int_equal(add(&lanes, number++, true), ERR_BUSY);
    for (int i = 0; i < LANES_CHEAP_MAX; i++) {
        assert_int_equal(add(&lanes, number++, false), ERR_OK);
    }
    assert_int_equal(add(&lanes, number, false), ERR_BUSY);
    expect(&lanes, LANES_HEAVY_MAX + 1);
    assert_int_equal(add(&lanes, number, false), ERR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cheap_ones_first),
        cmocka_unit_test(test_heavy_ones_leave_a_reader),
        cmocka_unit_test(test_one_reader),
        cmocka_unit_test(test_a_heavy_one_has_its_turn),
        cmocka_unit_test(test_so_many_may_wait),
    };

    return cmocka_run_group_tests_name("lanes", tests, NULL, NULL);
}
