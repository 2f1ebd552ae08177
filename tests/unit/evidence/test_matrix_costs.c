/* Costs on a GPU in another size, where the one that a variant shows is too short: of one
 * size for a variant and its control, never across two. */
#include "tests/unit/evidence/matrix_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/render/matrix.h"
#include "daemon/base/buf.h"

enum { LAUNCH_NS = 5000, LONG_NS = 2000000 };

static struct cell timed(const char *variant, bool control, const char *size,
                         int64_t median_ns)
{
    struct cell c = cell_of("conv_wgrad", variant,
                            control ? VERDICT_VARIES : VERDICT_REPRODUCIBLE, 1);

    c.is_control = control;
    copy_text(c.key.size, sizeof c.key.size, size);
    c.times = (struct quartiles){ 5, median_ns, median_ns, median_ns };
    c.evidence.runs[OUTCOME_COMPLETED] = strcmp(size, "small") == 0 ? 4 : 5;
    return c;
}

static void add_cell(struct matrix *m, const char *variant, bool control,
                     const char *size, int64_t median_ns)
{
    struct cell c = timed(variant, control, size, median_ns);

    matrix_add(m, &c);
}

static struct matrix begin_on_gpu(void)
{
    struct matrix m = begin(false, 0);

    m.environment_json = xstrdup("{\"backend\":\"cuda\"}");
    return m;
}

static const struct matrix_variant *settled(struct matrix *m, const char *variant)
{
    const struct matrix_variant *v;

    matrix_settle(m);
    v = matrix_find(m, "conv_wgrad", variant, SUBJECT_MODEL);
    assert_non_null(v);
    assert_string_equal(v->key.size, "small");
    return v;
}

static void test_the_smallest_size_that_is_long_enough_tells_it(void **state)
{
    struct matrix m = begin_on_gpu();
    const struct matrix_variant *v;
    struct buf text = BUF_INIT;
    struct json_out out = JSON_OUT_INIT;

    (void)state;
    add_cell(&m, "ordered", false, "large", 90 * LONG_NS);
    add_cell(&m, "ordered", false, "medium", 3 * LONG_NS);
    add_cell(&m, "ordered", false, "small", LAUNCH_NS);
    add_cell(&m, "ordered", false, "zoo", 80 * LONG_NS);
    add_cell(&m, "unordered", true, "large", 20 * LONG_NS);
    add_cell(&m, "unordered", true, "medium", 2 * LONG_NS);
    add_cell(&m, "unordered", true, "small", LAUNCH_NS);
    add_cell(&m, "unordered", true, "zoo", 10 * LONG_NS);
    v = settled(&m, "ordered");
    assert_true(v->cost.known && v->cost.median == 1.5 && !v->cost.too_short);
    assert_string_equal(v->cost_size, "medium");
    assert_string_equal(v->cost_against, "unordered");
    assert_false(matrix_find(&m, "conv_wgrad", "unordered", SUBJECT_MODEL)->cost.known);
    matrix_facts_text(&m, &text);
    assert_non_null(strstr(text.data, "1.50 (1.50-1.50) in medium"));
    matrix_json(&m, &out);
    assert_non_null(strstr(out.buf.data, "\"high\":1.5,\"size\":\"medium\"}"));
    buf_release(&text);
    buf_release(&out.buf);
    matrix_release(&m);
}

/* What is no other size of the same case, with a control, tells nothing. */
static void test_no_ratio_across_cases(void **state)
{
    struct matrix m = begin_on_gpu();
    struct cell other = timed("ordered", false, "medium", 3 * LONG_NS);
    const struct matrix_variant *v;

    (void)state;
    add_cell(&m, "ordered", false, "alone", 7 * LONG_NS); /* no control there */
    copy_text(other.key.dtype, sizeof other.key.dtype, "float64");
    matrix_add(&m, &other);
    other = timed("ordered", false, "library", 3 * LONG_NS);
    other.subject = SUBJECT_LIBRARY;
    matrix_add(&m, &other);
    add_cell(&m, "ordered", false, "short", LAUNCH_NS);
    add_cell(&m, "ordered", false, "small", LAUNCH_NS);
    add_cell(&m, "patched", false, "medium", 5 * LONG_NS);
    add_cell(&m, "unordered", true, "library", 2 * LONG_NS);
    add_cell(&m, "unordered", true, "medium", 2 * LONG_NS);
    add_cell(&m, "unordered", true, "short", 2 * LONG_NS);
    add_cell(&m, "unordered", true, "small", LAUNCH_NS);
    v = settled(&m, "ordered");
    assert_true(!v->cost.known && v->cost.too_short);
    assert_string_equal(v->cost_size, "small");
    matrix_release(&m);
}

static void test_a_size_that_is_long_enough_stays(void **state)
{
    struct matrix m = begin_on_gpu();
    const struct matrix_variant *v;

    (void)state;
    add_cell(&m, "ordered", false, "medium", 9 * LONG_NS);
    add_cell(&m, "ordered", false, "small", LONG_NS);
    add_cell(&m, "unordered", true, "medium", LONG_NS);
    add_cell(&m, "unordered", true, "small", LONG_NS);
    v = settled(&m, "ordered");
    assert_true(v->cost.known && v->cost.median == 1);
    assert_string_equal(v->cost_size, "small");
    matrix_release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_smallest_size_that_is_long_enough_tells_it),
        cmocka_unit_test(test_no_ratio_across_cases),
        cmocka_unit_test(test_a_size_that_is_long_enough_stays),
    };

    return cmocka_run_group_tests_name("matrix_costs", tests, load_profiles,
                                       free_profiles);
}
