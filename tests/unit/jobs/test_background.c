/* Background evidence: what is measured next, within which budget; and a night of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/evidence/verdict.h"
#include "daemon/jobs/background.h"

static const int64_t HOUR = 3600 * 1000;
static const int64_t DAY = 24 * 3600 * 1000;
static const int64_t NOW = 1800000000000;

static struct background_options usual(void)
{
    return (struct background_options){ .budget_ppm = 50000,
                                        .target_ppm = 10000,
                                        .age_ms = 30 * DAY };
}

static struct background_cell cell(const char *workload, const char *variant,
                                   int64_t completed, int64_t age_ms)
{
    struct background_cell c = { .completed = completed,
                                 .last_completed_ms = NOW - age_ms,
                                 .vouched_ms = NOW - age_ms,
                                 .run_ms = 100 };

    copy_text(c.key.workload, sizeof c.key.workload, workload);
    copy_text(c.key.variant, sizeof c.key.variant, variant);
    c.key.version = 1;
    c.is_control = strcmp(variant, "unordered") == 0;
    return c;
}

static void test_a_budget_is_a_share_of_the_time(void **state)
{
    const struct background_options options = usual();
    struct background_budget b = { .saved_ms = 0 };

    (void)state;
    background_save(&b, &options, 5000);
    assert_int_equal(b.saved_ms, 0);
    for (int i = 1; i <= 1000; i++) { /* what is less than a millisecond adds up */
        background_save(&b, &options, 5000 + i);
    }
    assert_int_equal(b.saved_ms, 50);
    background_spend(&b, 450);
    assert_int_equal(b.saved_ms, -400);
    assert_int_equal(b.spent_ms, 450);
    background_save(&b, &options, 6000 + 8000);
    assert_int_equal(b.saved_ms, 0);
    background_save(&b, &options, 6000 + 100 * HOUR); /* savings end somewhere */
    assert_int_equal(b.saved_ms, BACKGROUND_SAVED_MS);
}

static void test_needs(void **state)
{
    struct background_options options = usual();
    struct background_cell few = cell("a", "ordered", 5, HOUR);
    struct background_cell more = cell("a", "ordered", 100, HOUR);
    struct background_cell enough = cell("a", "ordered", 300, HOUR);
    struct background_cell old = cell("a", "ordered", 300, 25 * DAY);
    struct background_cell older = cell("a", "ordered", 300, 40 * DAY);
    struct background_cell control = cell("a", "unordered", 2, 40 * DAY);

    (void)state;
    assert_true(background_need(&few, &options, NOW) >
                background_need(&more, &options, NOW));
    assert_true(background_need(&more, &options, NOW) > 0);
    assert_true(background_need(&enough, &options, NOW) == 0);
    assert_true(background_need(&old, &options, NOW) > 1);
    assert_true(background_need(&older, &options, NOW) >
                background_need(&old, &options, NOW));
    assert_true(background_need(&control, &options, NOW) == 0);
    old.last_completed_ms = NOW; /* its control last varied long ago */
    assert_true(background_need(&old, &options, NOW) > 1);
    options.age_ms = 0;
    assert_true(background_need(&old, &options, NOW) == 0);
}

static void test_where_the_cells_stand(void **state)
{
    const struct background_options options = usual();
    const struct background_cell cells[] = { cell("a", "ordered", 300, 2 * HOUR),
                                             cell("a", "unordered", 2, 9 * HOUR),
                                             cell("b", "ordered", 5, HOUR),
                                             cell("b", "patched", 400, 3 * HOUR) };
    struct background_standing standing = { .cells = 0 };

    (void)state;
    background_stand(NULL, 0, &options, &standing);
    assert_int_equal(standing.cells, 0);
    background_stand(cells, 4, &options, &standing);
    assert_int_equal(standing.cells, 3);
    assert_int_equal(standing.below_target, 2);
    assert_true(standing.weakest_bound == verdict_difference_bound(5));
    assert_int_equal(standing.oldest_run_ms, NOW - 3 * HOUR);
}

static void test_a_cell_comes_with_its_siblings_and_controls(void **state)
{
    const struct background_options options = usual();
    const struct background_cell cells[] = {
        cell("a", "ordered", 50, HOUR),  cell("a", "unordered", 50, HOUR),
        cell("b", "unordered", 9, HOUR), cell("b", "patched", 10, HOUR),
        cell("b", "ordered", 9, HOUR),   cell("b", "cached", 400, HOUR),
    };
    struct background_pick pick;

    (void)state;
    assert_true(background_choose(cells, 6, &options, 3000, NOW, &pick));
    assert_string_equal(pick.key.workload, "b");
    assert_int_equal(pick.variant_count, 3);
    assert_string_equal(pick.variants[0], "unordered");
    assert_string_equal(pick.variants[1], "patched");
    assert_string_equal(pick.variants[2], "ordered");
    assert_int_equal(pick.runs, 10);
    assert_int_equal(pick.cost_ms, 3000);
    assert_false(background_choose(cells, 6, &options, 599, NOW, &pick));
    assert_true(background_choose(cells, 6, &options, 600, NOW, &pick));
    assert_int_equal(pick.runs, 2);
    assert_false(background_choose(cells, 6, &options, 0, NOW, &pick));
    assert_false(background_choose(&cells[5], 1, &options, 3000, NOW, &pick));
}

static void test_what_can_never_be_saved_is_measured_too(void **state)
{
    const struct background_options options = usual();
    struct background_cell c = cell("a", "ordered", 5, HOUR);
    struct background_pick pick;

    (void)state;
    c.run_ms = 10 * BACKGROUND_SAVED_MS;
    assert_false(background_choose(&c, 1, &options, BACKGROUND_SAVED_MS - 1, NOW, &pick));
    assert_true(background_choose(&c, 1, &options, BACKGROUND_SAVED_MS, NOW, &pick));
    assert_int_equal(pick.runs, 2);
}

/* What became of cells in a simulated time. */
struct world {
    struct background_cell *cells;
    int count;
    struct background_budget budget;
    int64_t used_ms, now_ms;
};

static void measure(struct world *w, const struct background_pick *pick)
{
    for (int i = 0; i < w->count; i++) {
        struct background_cell *c = &w->cells[i];

        for (int v = 0; v < pick->variant_count; v++) {
            if (case_siblings(&c->key, &pick->key) &&
                strcmp(c->key.variant, pick->variants[v]) == 0) {
                c->completed += pick->runs;
                c->last_completed_ms = w->now_ms;
                c->vouched_ms = w->now_ms;
                w->used_ms += pick->runs * c->run_ms;
            }
        }
    }
}

static void pass(struct world *w, const struct background_options *options, int64_t ms)
{
    int64_t end = w->now_ms + ms;

    while (w->now_ms < end) {
        struct background_pick pick;

        w->now_ms += 60 * 1000;
        background_save(&w->budget, options, w->now_ms);
        if (background_choose(w->cells, w->count, options, w->budget.saved_ms, w->now_ms,
                              &pick)) {
            measure(w, &pick);
            background_spend(&w->budget, pick.cost_ms);
        }
    }
}

static double weakest(const struct world *w)
{
    double bound = 0;

    for (int i = 0; i < w->count; i++) {
        double b = verdict_difference_bound(w->cells[i].completed);

        bound = !w->cells[i].is_control && b > bound ? b : bound;
    }
    return bound;
}

static int64_t oldest(const struct world *w)
{
    int64_t age = 0;

    for (int i = 0; i < w->count; i++) {
        int64_t a = w->now_ms - w->cells[i].last_completed_ms;

        age = !w->cells[i].is_control && a > age ? a : age;
    }
    return age;
}

/* Fifty cases after a survey, whose runs take 50 ms to 1 s: a night, and a year. */
static void test_bounds_fall_and_nothing_grows_stale(void **state)
{
    enum { CASES = 50 };
    const struct background_options options = usual();
    struct background_cell *cells = xcalloc((size_t)CASES * 3, sizeof *cells);
    struct world w = { .cells = cells, .now_ms = NOW };
    double before;
    double last = 1;
    int64_t eldest = 0;

    (void)state;
    for (int i = 0; i < CASES; i++) {
        static const char *const variants[] = { "unordered", "ordered", "cached" };

        for (int v = 0; v < 3; v++) {
            char workload[16];

            snprintf(workload, sizeof workload, "w%d", i);
            cells[w.count] = cell(workload, variants[v], 5, 0);
            cells[w.count++].run_ms = 50 + 19 * i;
        }
    }
    before = weakest(&w);
    for (int hour = 0; hour < 12; hour++) {
        pass(&w, &options, HOUR);
        assert_true(weakest(&w) <= last);
        last = weakest(&w);
    }
    assert_true(last < before / 2);
    assert_true(w.used_ms <= 12 * HOUR / 20 + BACKGROUND_SAVED_MS);
    assert_true(w.used_ms > 12 * HOUR / 25);
    for (int day = 0; day < 365; day++) {
        pass(&w, &options, DAY);
        eldest = oldest(&w) > eldest ? oldest(&w) : eldest;
    }
    assert_true(weakest(&w) * 1000000 <= options.target_ppm);
    assert_true(eldest < options.age_ms);
    assert_true(w.used_ms <= (365 * DAY + 12 * HOUR) / 20 + BACKGROUND_SAVED_MS);
    free(cells);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_budget_is_a_share_of_the_time),
        cmocka_unit_test(test_needs),
        cmocka_unit_test(test_where_the_cells_stand),
        cmocka_unit_test(test_a_cell_comes_with_its_siblings_and_controls),
        cmocka_unit_test(test_what_can_never_be_saved_is_measured_too),
        cmocka_unit_test(test_bounds_fall_and_nothing_grows_stale),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
