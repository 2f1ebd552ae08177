/* The matrix: joined cells, derived codes. */
#include "tests/unit/evidence/matrix_fixture.h"

#include "api/render/matrix.h"
#include "daemon/evidence/matrix_count.h"

/* Of the cases of a variant the one with the fewest runs is shown. */
static void test_the_weakest_case_is_shown(void **state)
{
    (void)state;
    for (int weakest = 0; weakest < 2; weakest++) {
        struct matrix m = begin(false, 0);

        for (int i = 0; i < 2; i++) {
            struct cell cell = cell_of("w", "ordered", VERDICT_REPRODUCIBLE, i + 1);

            cell.key.seed = (uint64_t)i + 1;
            cell.evidence.runs[OUTCOME_COMPLETED] = i == weakest ? 2 : 5;
            matrix_add(&m, &cell);
        }
        matrix_settle(&m);
        assert_int_equal(matrix_find(&m, "w", "ordered", SUBJECT_MODEL)->cell,
                         weakest + 1);
        matrix_release(&m);
    }
}

static void test_codes_come_from_cells(void **state)
{
    struct matrix m = begin(false, 0);

    (void)state;
    add(&m, "bias_add_bwd", "ordered", VERDICT_REPRODUCIBLE, 1);
    add(&m, "bias_add_bwd", "patched", VERDICT_VARIES, 2);
    add(&m, "bias_add_bwd", "unordered", VERDICT_VARIES, 3);
    add(&m, "conv_wgrad", "ordered", VERDICT_REPRODUCIBLE, 4);
    add(&m, "conv_wgrad", "unordered", VERDICT_VARIES, 5);
    matrix_settle(&m);
    assert_string_equal(at(&m, "conv_wgrad", 0)->code, "TCD or TDP");
    assert_string_equal(at(&m, "conv_wgrad", 1)->code, "TDO");
    assert_int_equal(matrix_agrees(&m, row_of(&m, "conv_wgrad"), 0), 1);
    assert_string_equal(at(&m, "bias_add_bwd", 0)->code, "NS");
    assert_int_equal(matrix_agrees(&m, row_of(&m, "bias_add_bwd"), 0), 0);
    assert_int_equal(at(&m, "ctc_loss", 0)->state, SOLUTION_UNMEASURED);
    assert_string_equal(at(&m, "ctc_loss", 0)->code, "");
    assert_int_equal(matrix_agrees(&m, row_of(&m, "ctc_loss"), 0), -1);
    assert_int_equal(at(&m, "conv_wgrad", 4)->state, SOLUTION_ABSENT);
    matrix_release(&m);
}

static void test_stale_is_not_green_and_ends_the_cache(void **state)
{
    struct matrix m = begin(false, 3 * (int64_t)DAY_MS);

    (void)state;
    add(&m, "conv_wgrad", "ordered", VERDICT_REPRODUCIBLE, 1);
    add(&m, "conv_wgrad", "unordered", VERDICT_VARIES, 2);
    matrix_settle(&m);
    assert_int_equal(at(&m, "conv_wgrad", 0)->state, SOLUTION_MEASURED);
    assert_int_equal(m.valid_until_ms, now_ms + 2 * (int64_t)DAY_MS);
    matrix_release(&m);
    m = begin(false, DAY_MS / 2);
    add(&m, "conv_wgrad", "ordered", VERDICT_REPRODUCIBLE, 1);
    add(&m, "conv_wgrad", "unordered", VERDICT_VARIES, 2);
    matrix_settle(&m);
    assert_int_equal(at(&m, "conv_wgrad", 0)->state, SOLUTION_STALE);
    assert_string_equal(at(&m, "conv_wgrad", 0)->code, "");
    matrix_release(&m);
}

/* A control that varied long ago vouches for nothing now, however new the runs are. */
static void test_an_old_control_makes_stale(void **state)
{
    struct matrix m = begin(false, 3 * (int64_t)DAY_MS);
    struct cell cell = cell_of("conv_wgrad", "ordered", VERDICT_REPRODUCIBLE, 1);

    (void)state;
    cell.vouched_ms = now_ms - 2 * (int64_t)DAY_MS;
    matrix_add(&m, &cell);
    add(&m, "conv_wgrad", "unordered", VERDICT_VARIES, 2);
    matrix_settle(&m);
    assert_int_equal(at(&m, "conv_wgrad", 0)->state, SOLUTION_MEASURED);
    assert_int_equal(m.valid_until_ms, now_ms + DAY_MS);
    matrix_release(&m);
    for (int historic = 0; historic < 2; historic++) {
        m = begin(historic, 3 * (int64_t)DAY_MS);
        cell.vouched_ms = now_ms - 4 * (int64_t)DAY_MS;
        matrix_add(&m, &cell);
        add(&m, "conv_wgrad", "unordered", VERDICT_VARIES, 2);
        matrix_settle(&m);
        assert_int_equal(at(&m, "conv_wgrad", 0)->state, SOLUTION_STALE);
        assert_non_null(strstr(at(&m, "conv_wgrad", 0)->reason,
                               "the control last varied more than 72 hours ago; then: "
                               "because it is so"));
        matrix_release(&m);
    }
}

/* The history has no time of the last run: the last change counts. */
static void test_history_is_never_too_fresh(void **state)
{
    struct matrix m = begin(true, 3 * (int64_t)DAY_MS / 2);

    (void)state;
    add(&m, "conv_wgrad", "ordered", VERDICT_REPRODUCIBLE, 1);
    add(&m, "conv_wgrad", "unordered", VERDICT_VARIES, 2);
    matrix_settle(&m);
    assert_int_equal(at(&m, "conv_wgrad", 0)->state, SOLUTION_STALE);
    matrix_release(&m);
}

static void test_only_the_newest_version_counts(void **state)
{
    struct matrix m = begin(false, 0);
    struct cell old = cell_of("conv_wgrad", "ordered", VERDICT_VARIES, 1);
    struct cell new = cell_of("conv_wgrad", "ordered", VERDICT_REPRODUCIBLE, 2);

    (void)state;
    new.key.version = 2;
    matrix_add(&m, &old);
    matrix_add(&m, &new);
    add(&m, "conv_wgrad", "unordered", VERDICT_VARIES, 3);
    add(&m, "ctc_loss", "unordered", VERDICT_VARIES, 4);
    matrix_settle(&m);
    assert_int_equal(m.variant_count, 2);
    assert_int_equal(matrix_find(&m, "conv_wgrad", "ordered", SUBJECT_MODEL)->cell, 2);
    assert_null(matrix_find(&m, "conv_wgrad", "unordered", SUBJECT_MODEL));
    assert_int_equal(at(&m, "conv_wgrad", 0)->state, SOLUTION_UNMEASURED);
    assert_int_equal(at(&m, "ctc_loss", 0)->state, SOLUTION_MEASURED);
    matrix_release(&m);
}

static void test_a_variant_carries_its_worst_cell(void **state)
{
    struct cell large = cell_of("conv_wgrad", "ordered", VERDICT_VARIES, 8);

    (void)state;
    copy_text(large.key.size, sizeof large.key.size, "large");
    for (int worst_first = 0; worst_first < 2; worst_first++) {
        struct matrix m = begin(false, 0);

        if (worst_first) {
            matrix_add(&m, &large);
        }
        add(&m, "conv_wgrad", "ordered", VERDICT_REPRODUCIBLE, 7);
        if (!worst_first) {
            matrix_add(&m, &large);
        }
        matrix_settle(&m);
        assert_int_equal(m.variant_count, 1);
        assert_int_equal(m.variants[0].known.verdict, VERDICT_VARIES);
        assert_int_equal(m.variants[0].cell, 8);
        assert_string_equal(m.variants[0].key.size, "large");
        matrix_release(&m);
    }
}

/* Only what is green can turn stale: nothing else ends the time of an answer. */
static void test_what_is_not_green_keeps_the_cache(void **state)
{
    struct matrix green = begin(false, DAY_MS * (int64_t)3);
    struct matrix varies = begin(false, DAY_MS * (int64_t)3);
    struct matrix forever = begin(false, 0);
    int64_t never = forever.valid_until_ms;

    (void)state;
    add(&green, "conv_wgrad", "ordered", VERDICT_REPRODUCIBLE, 1);
    add(&varies, "conv_wgrad", "ordered", VERDICT_VARIES, 1);
    add(&forever, "conv_wgrad", "ordered", VERDICT_REPRODUCIBLE, 1);
    assert_true(green.valid_until_ms < never);
    assert_true(varies.valid_until_ms == never);
    assert_true(forever.valid_until_ms == never);
    matrix_release(&green);
    matrix_release(&varies);
    matrix_release(&forever);
}

static void add_timed(struct matrix *m, const char *variant, bool control,
                      const char *size, int64_t runs, int64_t median_ns)
{
    struct cell c = cell_of("conv_wgrad", variant,
                            control ? VERDICT_VARIES : VERDICT_REPRODUCIBLE, 1);

    c.is_control = control;
    copy_text(c.key.size, sizeof c.key.size, size);
    c.times = (struct quartiles){ runs, median_ns / 2, median_ns, median_ns * 2 };
    matrix_add(m, &c);
}

/* On a GPU, where it is of less than a millisecond, it is not told, and it is said why.
 */
static void test_a_cost_of_launches(void **state)
{
    static const char *const backends[] = { "cpu", "cuda" };

    (void)state;
    for (int i = 0; i < 2; i++) {
        bool on_gpu = i == 1;
        struct matrix m = begin(false, 0);
        struct json_out out = JSON_OUT_INIT;
        struct buf text = BUF_INIT;
        const struct matrix_variant *v;

        m.environment_json = xasprintf("{\"backend\":\"%s\"}", backends[i]);
        add_timed(&m, "ordered", false, "small", 5, 3000000);
        add_timed(&m, "unordered", true, "small", 5, 900000);
        matrix_settle(&m);
        v = matrix_find(&m, "conv_wgrad", "ordered", SUBJECT_MODEL);
        assert_true(v->cost.known == !on_gpu && v->cost.too_short == on_gpu);
        matrix_json(&m, &out);
        assert_true(!strstr(out.buf.data, "\"cost_note\":\"" TIMES_TOO_SHORT) == !on_gpu);
        assert_true(!strstr(out.buf.data, "\"cost\":{") == on_gpu);
        matrix_facts_text(&m, &text);
        assert_true(!strstr(text.data, "< 1 ms") == !on_gpu);
        buf_release(&out.buf);
        buf_release(&text);
        matrix_release(&m);
    }
}

/* Only the control of the same case will do, and only with enough runs. */
static void test_costs_are_told_against_the_control(void **state)
{
    struct matrix m = begin(false, 0);
    struct json_out out = JSON_OUT_INIT;
    struct buf text = BUF_INIT;
    const struct matrix_variant *v;

    (void)state;
    add_timed(&m, "ordered", false, "small", 5, 1500);
    add_timed(&m, "patched", false, "large", 5, 1500);
    add_timed(&m, "racing", true, "small", 2, 10);
    add_timed(&m, "unordered", true, "small", 3, 1000);
    matrix_settle(&m);
    v = matrix_find(&m, "conv_wgrad", "ordered", SUBJECT_MODEL);
    assert_true(v->cost.known);
    assert_true(v->cost.median == 1.5 && v->cost.low == 0.375 && v->cost.high == 6);
    assert_string_equal(v->cost_against, "unordered");
    assert_false(matrix_find(&m, "conv_wgrad", "patched", SUBJECT_MODEL)->cost.known);
    assert_false(matrix_find(&m, "conv_wgrad", "unordered", SUBJECT_MODEL)->cost.known);
    matrix_json(&m, &out);
    assert_non_null(strstr(out.buf.data,
                           "\"cost\":{\"against\":\"unordered\",\"median\":"
                           "1.5,\"low\":0.375,\"high\":6"));
    matrix_facts_text(&m, &text);
    assert_non_null(strstr(text.data, "1.50 (0.38-6.00)"));
    buf_release(&out.buf);
    buf_release(&text);
    matrix_release(&m);
}

static int library_row(const struct matrix *m, const char *workload)
{
    for (int r = 0; r < m->table->row_count; r++) {
        if (m->table->rows[r].subject == SUBJECT_LIBRARY &&
            strcmp(m->table->rows[r].workload, workload) == 0) {
            return r;
        }
    }
    fail_msg("no row of a library for %s", workload);
    return -1;
}

static void add_of_cudnn(struct matrix *m, const char *variant, enum verdict verdict,
                         int64_t id)
{
    struct cell c = cell_of("conv_wgrad", variant, verdict, id);

    c.subject = SUBJECT_LIBRARY;
    copy_text(c.subject_name, sizeof c.subject_name, "cuDNN");
    c.times = (struct quartiles){ 5, 1000, 1000, 1000 };
    matrix_add(m, &c);
}

/* A control of ours, and cuDNN's algorithms; in a stack with cuDNN if VERSION. */
static struct matrix with_cudnn(const char *version, enum subject only)
{
    struct matrix m = begin(false, 0);
    struct cell control = cell_of("conv_wgrad", "unordered", VERDICT_VARIES, 4);

    m.environment_json = version ? xasprintf("{\"cudnn\":\"%s\"}", version) : NULL;
    m.only = only;
    add_of_cudnn(&m, "algo_1", VERDICT_REPRODUCIBLE, 2);
    add_of_cudnn(&m, "autotune", VERDICT_VARIES, 1);
    control.is_control = true;
    control.times = (struct quartiles){ 5, 10, 10, 10 };
    matrix_add(&m, &control);
    matrix_settle(&m);
    return m;
}

static void test_a_library_earns_its_own_row_only(void **state)
{
    struct matrix m = with_cudnn("9.12.0", SUBJECT_COUNT);
    int row = library_row(&m, "conv_wgrad");
    struct matrix_tally tallies[MATRIX_TALLIES_MAX];
    char text[MATRIX_HEADLINE_SIZE];

    (void)state;
    assert_string_equal(matrix_solution(&m, row, 0)->code, "TCD or TDP");
    assert_int_equal(matrix_solution(&m, row, 0)->variants, 2);
    assert_int_equal(matrix_agrees(&m, row, 0), 1);
    assert_int_equal(at(&m, "conv_wgrad", 0)->state, SOLUTION_UNMEASURED);
    matrix_row_subject(&m, row, text);
    assert_string_equal(text, "cuDNN 9.12.0");
    assert_int_equal(matrix_count(&m, tallies), 3);
    assert_int_equal(tallies[1].subject, SUBJECT_LIBRARY);
    assert_int_equal(tallies[1].states[SOLUTION_MEASURED], 4);
    assert_int_equal(tallies[1].agree, 4);
    assert_int_equal(tallies[1].facts, 2);
    assert_int_equal(tallies[2].states[SOLUTION_MEASURED], 0);
    matrix_headline(&m, text);
    assert_string_equal(text, "4 codes of cuDNN 9.12.0; TensorFlow took no part");
    assert_false(matrix_find(&m, "conv_wgrad", "algo_1", SUBJECT_LIBRARY)->cost.known);
    assert_null(matrix_find(&m, "conv_wgrad", "algo_1", SUBJECT_MODEL));
    matrix_release(&m);
}

/* Whether a workload has them compute it at all is told apart from what ran. */
static void test_no_workload_computes_it(void **state)
{
    struct matrix m = begin(false, 0);
    int without = 0;
    int with = 0;
    int operations = 0;

    (void)state;
    m.environment_json = xstrdup("{\"cudnn\":\"9.12.0\",\"tensorflow\":\"2.1.0\"}");
    matrix_settle(&m);
    for (int r = 0; r < m.table->row_count; r++) {
        const struct profile_row *row = &m.table->rows[r];

        for (int c = 0; row->subject_name && c < m.table->column_count; c++) {
            char none[VERDICT_REASON_SIZE];
            bool told, elsewhere;

            if (row->cells[c].absent) {
                continue;
            }
            snprintf(none, sizeof none, "no workload has %s compute it",
                     row->subject_name);
            told = strcmp(matrix_solution(&m, r, c)->reason, none) == 0;
            elsewhere = strcmp(matrix_solution(&m, r, c)->reason,
                               "/v1/operations?table=documents-2020 has what installed "
                               "versions compute themselves") == 0;
            assert_int_equal(told, row->cells[c].choice_count == 0 && !row->operations);
            assert_int_equal(elsewhere, row->subject == SUBJECT_FRAMEWORK &&
                                            row->operations != NULL);
            operations += elsewhere;
            without += told;
            with += !told;
        }
    }
    assert_true(without > 0 && with > 0 && operations > 0);
    matrix_release(&m);
}

static void test_without_the_library_its_row_has_no_code(void **state)
{
    struct matrix m = with_cudnn(NULL, SUBJECT_COUNT);
    const struct solution *s = matrix_solution(&m, library_row(&m, "conv_wgrad"), 0);

    (void)state;
    assert_int_equal(s->state, SOLUTION_UNMEASURED);
    assert_string_equal(s->code, "");
    assert_string_equal(s->reason, "its runs did not say which cuDNN computed");
    assert_int_equal(s->runs, 0);
    assert_true(s->difference_bound == 1);
    s = matrix_solution(&m, library_row(&m, "conv_dgrad"), 0);
    assert_true(s->difference_bound == 1);
    assert_int_equal(s->state, SOLUTION_UNMEASURED);
    assert_string_equal(s->reason, "no cuDNN in this stack");
    matrix_release(&m);
}

/* Another library's algorithm earns cuDNN nothing, and what ran is not said to be absent.
 */
static void test_a_name_is_part_of_the_subject(void **state)
{
    struct matrix m = begin(false, 0);
    struct cell c = cell_of("conv_wgrad", "algo_1", VERDICT_REPRODUCIBLE, 2);
    char text[MATRIX_HEADLINE_SIZE];

    (void)state;
    m.environment_json = xstrdup("{\"cudnn\":\"9.12.0\"}");
    c.subject = SUBJECT_LIBRARY;
    copy_text(c.subject_name, sizeof c.subject_name, "miDNN");
    matrix_add(&m, &c);
    add_of_cudnn(&m, "autotune", VERDICT_VARIES, 1);
    matrix_settle(&m);
    assert_int_equal(matrix_solution(&m, library_row(&m, "conv_wgrad"), 0)->state,
                     SOLUTION_UNMEASURED);
    matrix_headline(&m, text);
    assert_string_equal(text,
                        "no code has been measured here; no code of cuDNN yet; "
                        "TensorFlow took no part");
    matrix_release(&m);
}

/* Nothing of ours stands for torch.histc: the documents' word is all there is. */
static void test_a_source_without_a_workload(void **state)
{
    const struct profile_table *table = profile_set_find(set, "pytorch");
    struct matrix_tally tallies[MATRIX_TALLIES_MAX];
    struct matrix m;
    int count, row = 0, cells = 0, bare = 0;

    (void)state;
    matrix_init(&m, table, NULL, now_ms, false, 0);
    matrix_settle(&m);
    while (strcmp(table->rows[row].id, "histc") != 0) {
        row++;
    }
    assert_int_equal(matrix_solution(&m, row, 0)->state, SOLUTION_ABSENT);
    assert_int_equal(matrix_solution(&m, row, 1)->state, SOLUTION_NO_MODEL);
    assert_string_equal(matrix_solution(&m, row, 1)->code, "");
    assert_int_equal(matrix_agrees(&m, row, 1), -1);
    assert_string_equal(matrix_solution(&m, row, 1)->reason,
                        "no model stands for it; /v1/operations?table=pytorch has what "
                        "installed versions compute themselves");
    while (strcmp(table->rows[row].id, "mps") != 0) {
        row++;
    }
    assert_string_equal(matrix_solution(&m, row, table->column_count - 1)->reason,
                        "no workload stands for it");
    count = matrix_count(&m, tallies);
    for (int i = 0; i < count; i++) {
        cells += tallies[i].cells;
        bare += tallies[i].states[SOLUTION_NO_MODEL];
    }
    assert_true(bare > 0);
    for (int i = 0; i < table->row_count * table->column_count; i++) {
        cells -= m.solutions[i].state != SOLUTION_ABSENT;
    }
    assert_int_equal(cells, -bare);
    matrix_release(&m);
}

static void test_one_subject_alone(void **state)
{
    struct matrix m = with_cudnn("9.12.0", SUBJECT_LIBRARY);
    struct matrix_tally tallies[MATRIX_TALLIES_MAX];

    (void)state;
    assert_int_equal(m.variant_count, 2);
    assert_int_equal(matrix_count(&m, tallies), 1);
    assert_true(matrix_shows_row(&m, library_row(&m, "conv_wgrad")));
    assert_false(matrix_shows_row(&m, row_of(&m, "conv_wgrad")));
    matrix_release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_weakest_case_is_shown),
        cmocka_unit_test(test_codes_come_from_cells),
        cmocka_unit_test(test_stale_is_not_green_and_ends_the_cache),
        cmocka_unit_test(test_an_old_control_makes_stale),
        cmocka_unit_test(test_history_is_never_too_fresh),
        cmocka_unit_test(test_only_the_newest_version_counts),
        cmocka_unit_test(test_a_variant_carries_its_worst_cell),
        cmocka_unit_test(test_what_is_not_green_keeps_the_cache),
        cmocka_unit_test(test_a_cost_of_launches),
        cmocka_unit_test(test_costs_are_told_against_the_control),
        cmocka_unit_test(test_a_library_earns_its_own_row_only),
        cmocka_unit_test(test_no_workload_computes_it),
        cmocka_unit_test(test_without_the_library_its_row_has_no_code),
        cmocka_unit_test(test_a_name_is_part_of_the_subject),
        cmocka_unit_test(test_a_source_without_a_workload),
        cmocka_unit_test(test_one_subject_alone),
    };

    return cmocka_run_group_tests(tests, load_profiles, free_profiles);
}
