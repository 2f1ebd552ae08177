/* Which larger size a survey on a GPU takes next. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/array.h"
#include "daemon/base/mem.h"
#include "daemon/jobs/larger.h"

enum { LAUNCH_NS = 5000, LONG_NS = 2000000, SMALL = 0, MEDIUM = 1, LARGE = 2 };
static const int64_t GIB = INT64_C(1) << 30;

static const struct catalogue_variant variants[] = {
    { .name = "unordered", .control = true }, { .name = "ordered" }
};
static const struct catalogue_size sizes[] = {
    { "small", "" }, { "deconv", "" }, { "medium", "" }, { "large", "" }
};
static const char *const dtypes[] = { "float32", "float64" };

static struct catalogue_workload workload(void)
{
    return (struct catalogue_workload){ .name = "w",
                                        .version = 2,
                                        .backend = "cuda",
                                        .variants = variants,
                                        .variant_count = 2,
                                        .sizes = sizes,
                                        .size_count = 4,
                                        .dtypes = dtypes,
                                        .dtype_count = 2,
                                        .surveyed = true };
}

/* As of a survey in SMALL on a device with 80 GiB. */
static struct larger_surveyed surveyed(void)
{
    return (
        struct larger_surveyed){ .rank = SMALL, .run_ms = 500, .memory_bytes = 80 * GIB };
}

static struct larger_cell cell(const char *variant, const char *size, int64_t median_ns)
{
    struct larger_cell c = { .is_control = strcmp(variant, "unordered") == 0,
                             .times = { 5, median_ns, median_ns, median_ns } };

    copy_text(c.key.workload, sizeof c.key.workload, "w");
    copy_text(c.key.variant, sizeof c.key.variant, variant);
    copy_text(c.key.size, sizeof c.key.size, size);
    copy_text(c.key.dtype, sizeof c.key.dtype, "float32");
    c.key.version = 2;
    c.key.seed = 1;
    return c;
}

static int next_of(const struct larger_cell *cells, int count)
{
    const struct catalogue_workload w = workload();
    const struct larger_surveyed s = surveyed();

    return larger_next(&w, &s, cells, count);
}

static void test_ranks(void **state)
{
    (void)state;
    for (int i = 0; i < LARGER_SIZES; i++) {
        assert_int_equal(larger_rank(larger_size(i)), i);
        assert_true(i == 0 || larger_bytes(i) > larger_bytes(i - 1));
    }
    assert_int_equal(larger_rank("deconv"), -1);
}

static void test_sizes_follow_until_one_is_long_enough(void **state)
{
    struct larger_cell cells[] = {
        cell("ordered", "small", LAUNCH_NS),     cell("unordered", "small", LONG_NS),
        cell("ordered", "medium", LAUNCH_NS),    cell("unordered", "medium", LAUNCH_NS),
        cell("ordered", "large", 2 * LAUNCH_NS), cell("unordered", "large", LAUNCH_NS)
    };

    (void)state;
    assert_int_equal(next_of(cells, 0), -1);
    assert_int_equal(next_of(cells, 2), MEDIUM);
    assert_int_equal(next_of(cells, 3), MEDIUM); /* not measured enough for a cost */
    assert_int_equal(next_of(cells, 4), LARGE);
    assert_int_equal(next_of(cells, 6), -1); /* there is none */
    cells[2].times.median_ns = cells[3].times.median_ns = LONG_NS;
    assert_int_equal(next_of(cells, 4), -1); /* it has a cost */
    cells[0].times.median_ns = LONG_NS;
    assert_int_equal(next_of(cells, 2), -1);
}

/* All that a size says follows from its own cells. */
static void test_what_has_no_cost_has_no_larger_size(void **state)
{
    (void)state;
    for (int change = 0; change < 9; change++) {
        struct larger_cell cells[] = { cell("ordered", "small", LAUNCH_NS),
                                       cell("unordered", "small", LAUNCH_NS) };
        struct case_key *key = &cells[change % 2].key;

        switch (change) {
        case 0:
        case 1:
            cells[change].is_control = !cells[change].is_control;
            break;
        case 2:
            copy_text(key->workload, sizeof key->workload, "other");
            break;
        case 3:
            key->version = 1;
            break;
        case 4:
            copy_text(key->size, sizeof key->size, "deconv");
            break;
        case 5:
            copy_text(key->dtype, sizeof key->dtype, "float64");
            break;
        case 6:
            key->seed = 2;
            break;
        case 7:
            cells[0].times.runs = TIMES_COST_RUNS - 1;
            break;
        default:
            break;
        }
        assert_int_equal(next_of(cells, 2), change == 8 ? MEDIUM : -1);
    }
}

static void test_what_does_not_fit(void **state)
{
    struct larger_cell cells[] = { cell("ordered", "small", LAUNCH_NS),
                                   cell("unordered", "small", LAUNCH_NS) };
    struct catalogue_workload w = workload();
    struct larger_surveyed s = surveyed();

    (void)state;
    s.memory_bytes = LARGER_SHARE * larger_bytes(MEDIUM);
    assert_int_equal(larger_next(&w, &s, cells, 2), MEDIUM);
    s.memory_bytes--;
    assert_int_equal(larger_next(&w, &s, cells, 2), -1);
    s.memory_bytes = 0; /* unknown */
    assert_int_equal(larger_next(&w, &s, cells, 2), -1);
    s = surveyed();
    s.run_ms = LARGER_RUN_MS; /* before the larger size computes anything */
    assert_int_equal(larger_next(&w, &s, cells, 2), MEDIUM);
    s.run_ms++;
    assert_int_equal(larger_next(&w, &s, cells, 2), -1);
    s = surveyed();
    cells[0].times.median_ns = INT64_C(20000000); /* a slow variant: 26 s in medium */
    assert_int_equal(larger_next(&w, &s, cells, 2), -1);
    cells[0].times.median_ns = INT64_MAX / 2; /* however slow */
    assert_int_equal(larger_next(&w, &s, cells, 2), -1);
    cells[0].times.median_ns = LAUNCH_NS;
    s.run_ms = 10000;
    w.variant_count = 2;
    assert_int_equal(larger_next(&w, &s, cells, 2), MEDIUM);
    s.run_ms = LARGER_RUN_MS - 1;
    w.variant_count = 4;
    w.variants = (const struct catalogue_variant[]){ variants[0], variants[1],
                                                     variants[1], variants[1] };
    assert_int_equal(larger_next(&w, &s, cells, 2), -1); /* all together */
}

static void test_whose_sizes_are_known(void **state)
{
    const struct catalogue_variant framework = { .name = "ordered",
                                                 .subject = SUBJECT_FRAMEWORK };
    const struct larger_cell cells[] = { cell("ordered", "small", LAUNCH_NS),
                                         cell("unordered", "small", LAUNCH_NS) };
    const struct larger_surveyed s = surveyed();
    struct catalogue_workload w = workload();

    (void)state;
    w.size_count = 2; /* small and deconv */
    assert_int_equal(larger_next(&w, &s, cells, 2), -1);
    w = workload();
    w.surveyed = false;
    assert_int_equal(larger_next(&w, &s, cells, 2), -1);
    w = workload();
    w.variants = &framework;
    w.variant_count = 1;
    assert_int_equal(larger_next(&w, &s, cells, 2), -1);
}

/* Where there is no medium, a large one computes so much more. */
static void test_a_size_that_is_left_out(void **state)
{
    static const struct catalogue_size two[] = { { "small", "" }, { "large", "" } };
    struct larger_cell cells[] = { cell("ordered", "small", LAUNCH_NS),
                                   cell("unordered", "small", LAUNCH_NS) };
    struct catalogue_workload w = workload();
    const struct larger_surveyed s = surveyed();

    (void)state;
    w.sizes = two;
    w.size_count = 2;
    assert_int_equal(larger_next(&w, &s, cells, 2), LARGE);
    cells[0].times.median_ns = 200000; /* 33 s */
    assert_int_equal(larger_next(&w, &s, cells, 2), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_sizes_follow_until_one_is_long_enough),
        cmocka_unit_test(test_what_has_no_cost_has_no_larger_size),
        cmocka_unit_test(test_what_does_not_fit),
        cmocka_unit_test(test_whose_sizes_are_known),
        cmocka_unit_test(test_a_size_that_is_left_out),
    };

    return cmocka_run_group_tests_name("larger", tests, NULL, NULL);
}
