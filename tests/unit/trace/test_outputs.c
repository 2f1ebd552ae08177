/* What runs with one digest recorded of their outputs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/trace/outputs.h"

struct record {
    int iteration, step;
    const char *place;
    uint64_t high, low;
};

enum { RECORDS_MAX = 8 };

static struct trace make(const struct record records[RECORDS_MAX])
{
    struct trace trace;

    trace_init(&trace);
    for (int i = 0; i < RECORDS_MAX && records[i].place; i++) {
        trace_add(&trace, records[i].iteration, records[i].step, records[i].place,
                  (struct digest){ 1, 2 },
                  (struct digest){ records[i].high, records[i].low });
    }
    return trace;
}

static void test_within_a_run(void **state)
{
    static const struct {
        struct record records[RECORDS_MAX];
        const char *differs;
    } cases[] = {
        { { { 0, 0, NULL, 0, 0 } }, NULL },
        { { { 0, 0, "loss", 1, 1 }, { 1, 0, "loss", 1, 2 } }, NULL },
        { { { 0, 0, "output/y", 1, 1 } }, NULL },
        { { { 0, 0, "output/y", 1, 1 }, { 1, 0, "output/y", 1, 1 } }, NULL },
        { { { 0, 0, "output/y", 1, 1 }, { 1, 0, "output/y", 1, 2 } }, "output/y" },
        { { { 0, 0, "output/y", 1, 1 }, { 1, 0, "output/y", 2, 1 } }, "output/y" },
        { { { 0, 0, "output/y", 1, 1 }, { 1, 1, "output/y", 1, 2 } }, NULL },
        { { { 0, 0, "output/y", 1, 1 }, { 1, 0, "output/z", 1, 2 } }, NULL },
        { { { 0, 0, "output/y", 1, 1 },
            { 0, 0, "output/z", 1, 1 },
            { 1, 0, "output/y", 1, 1 },
            { 1, 0, "loss", 1, 1 },
            { 1, 0, "output/z", 1, 2 } },
          "output/z" },
        { { { 0, 0, "output/y", 1, 1 },
            { 1, 0, "output/y", 1, 1 },
            { 1, 0, "output/y", 1, 3 },
            { 2, 0, "output/y", 1, 2 } },
          "output/y" },
        { { { 0, 0, "output/y", 1, 1 }, { 0, 1, "output/y", 1, 2 } }, NULL },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct trace trace = make(cases[i].records);
        const char *differs = trace_outputs_vary(&trace);

        if (!cases[i].differs) {
            assert_null(differs);
        } else {
            assert_non_null(differs);
            assert_string_equal(differs, cases[i].differs);
        }
        trace_release(&trace);
    }
}

static void test_between_runs(void **state)
{
    static const struct record one[RECORDS_MAX] = { { 0, 0, "output/y", 1, 1 } },
                               late[RECORDS_MAX] = { { 4, 0, "output/y", 1, 1 } },
                               other[RECORDS_MAX] = { { 0, 0, "loss", 1, 1 },
                                                      { 0, 0, "output/y", 1, 2 } },
                               more[RECORDS_MAX] = { { 0, 0, "output/y", 1, 1 },
                                                     { 0, 0, "output/z", 1, 3 } },
                               none[RECORDS_MAX] = { { 0, 0, "loss", 1, 1 } };
    struct trace a = make(one), b = make(late), c = make(other), d = make(none);
    struct trace e = make(more);

    (void)state;
    assert_null(trace_outputs_differ(&a, &b));
    assert_string_equal(trace_outputs_differ(&a, &c), "output/y");
    assert_string_equal(trace_outputs_differ(&c, &a), "output/y");
    assert_null(trace_outputs_differ(&a, &d));
    assert_null(trace_outputs_differ(&d, &a));
    assert_null(trace_outputs_differ(&a, &e));
    assert_null(trace_outputs_differ(&e, &a));
    trace_release(&a);
    trace_release(&b);
    trace_release(&c);
    trace_release(&d);
    trace_release(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_within_a_run),
        cmocka_unit_test(test_between_runs),
    };

    return cmocka_run_group_tests_name("outputs", tests, NULL, NULL);
}
