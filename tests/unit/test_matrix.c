/* The matrix: joined cells, derived codes, and what the three representations say. */
#include "api/matrix.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/text.h"
#include "daemon/base/mem.h"

enum { DAY_MS = 86400000 };
static const int64_t now_ms = INT64_C(1800000000000);

static struct profile_set *set;

static int load_profiles(void **state)
{
    struct err err;

    (void)state;
    return profile_set_load(NULL, &set, &err);
}

static int free_profiles(void **state)
{
    (void)state;
    profile_set_free(set);
    return 0;
}

static struct cell cell_of(const char *workload, const char *variant,
                           enum verdict verdict, int64_t id)
{
    struct cell c = { .id = id, .verdict = verdict, .median_ns_sum = 5000000 * 5 };

    copy_text(c.key.workload, sizeof c.key.workload, workload);
    copy_text(c.key.variant, sizeof c.key.variant, variant);
    copy_text(c.key.size, sizeof c.key.size, "small");
    copy_text(c.key.dtype, sizeof c.key.dtype, "float32");
    copy_text(c.reason, sizeof c.reason, "because it is so");
    copy_text(c.digest, sizeof c.digest, "00112233445566778899aabbccddeeff");
    c.key.version = 1;
    c.key.seed = 1;
    c.evidence.runs[OUTCOME_COMPLETED] = 5;
    c.evidence.iterations = 50;
    c.evidence.devices = 1;
    c.evidence.distinct_digests = verdict == VERDICT_VARIES ? 9 : 1;
    c.evidence.last_completed_ms = now_ms - DAY_MS;
    c.changed_ms = now_ms - 2 * (int64_t)DAY_MS;
    return c;
}

static struct matrix begin(bool historic, int64_t stale_after_ms)
{
    struct matrix m;

    matrix_init(&m, profile_set_find(set, "documents-2020"), now_ms, historic,
                stale_after_ms);
    return m;
}

static void add(struct matrix *m, const char *workload, const char *variant,
                enum verdict verdict, int64_t id)
{
    struct cell c = cell_of(workload, variant, verdict, id);

    matrix_add(m, &c);
}

static int row_of(const struct matrix *m, const char *workload)
{
    for (int r = 0; r < m->table->row_count; r++) {
        if (strcmp(m->table->rows[r].workload, workload) == 0) {
            return r;
        }
    }
    fail_msg("no row %s", workload);
    return -1;
}

static const struct solution *at(const struct matrix *m, const char *workload, int column)
{
    return matrix_solution(m, row_of(m, workload), column);
}

#define VARIANT(name, more)                                                              \
    "{\"name\":\"" name                                                                  \
    "\",\"summary\":\"\",\"models\":\"\",\"algorithm\":\"\","                            \
    "\"control\":false" more "}"

/* A workload whose `resumed` must be `ordered`, and whose `less` must not. */
static struct relations expected_of_a_checkpoint(void)
{
    static const char text[] =
        "[{\"workload\":\"w\",\"version\":1,\"backend\":\"cpu\",\"title\":\"\",\"summary\":"
        "\"\",\"variants\":[" VARIANT("ordered", "") "," VARIANT(
            "resumed", ",\"equals\":\"ordered\"") "," VARIANT("less",
                                                              ",\"differs\":"
                                                              "\"ordered\"") "],"
        "\"sizes\":[{\"name\":\"small\",\"description\":\"\"}],\"dtypes\":[\"float32\"],"
        "\"weight_sum\":\"\",\"no_control\":\"x\"}]";
    struct catalogue *catalogue = catalogue_new();
    json_t *json = json_loads(text, 0, NULL);
    struct relations relations;
    struct err err;

    assert_int_equal(catalogue_add(catalogue, json, &err), ERR_OK);
    relations_init(&relations, catalogue);
    json_decref(json);
    catalogue_free(catalogue);
    return relations;
}

/* What is seen of VARIANT, whose cell is CELL, beside an ordered one of size SMALL. */
static void expect_relation(const char *variant, const struct cell *cell, bool measured,
                            const char *text)
{
    struct relations relations = expected_of_a_checkpoint();
    struct matrix m = begin(false, 0);
    const struct matrix_variant *v;
    struct buf buf = BUF_INIT;

    m.relations = &relations;
    if (strcmp(variant, "ordered") > 0 && measured) {
        add(&m, "w", "ordered", VERDICT_REPRODUCIBLE, 1);
    }
    matrix_add(&m, cell);
    if (strcmp(variant, "ordered") < 0 && measured) {
        add(&m, "w", "ordered", VERDICT_REPRODUCIBLE, 1);
    }
    matrix_settle(&m);
    v = matrix_find(&m, "w", variant);
    assert_string_equal(v->relation->other, "ordered");
    matrix_facts_text(&m, &buf);
    assert_non_null(strstr(buf.data, text));
    buf_release(&buf);
    matrix_release(&m);
    relations_release(&relations);
}

static void test_what_must_equal_or_differ(void **state)
{
    struct cell less = cell_of("w", "less", VERDICT_REPRODUCIBLE, 2);
    struct cell resumed = cell_of("w", "resumed", VERDICT_REPRODUCIBLE, 3);
    struct cell other = less;

    (void)state;
    expect_relation("less", &less, true, "EQUALS ordered, but must differ from it");
    expect_relation("resumed", &resumed, true, "equals ordered, as it must");
    less.digest[0] = resumed.digest[0] = 'f';
    expect_relation("less", &less, true, "differs from ordered, as it must");
    expect_relation("resumed", &resumed, true, "DIFFERS from ordered, but must equal it");
    expect_relation("less", &less, false, "must differ from ordered: not known yet");
    expect_relation("resumed", &resumed, false, "must equal ordered: not known yet");
    less.evidence.distinct_digests = 2;
    expect_relation("less", &less, true, "must differ from ordered: not known yet");
    copy_text(other.key.size, sizeof other.key.size, "medium");
    expect_relation("less", &other, true, "must differ from ordered: not known yet");
    other.digest[0] = '\0';
    copy_text(other.key.size, sizeof other.key.size, "small");
    expect_relation("less", &other, true, "must differ from ordered: not known yet");
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
    assert_int_equal(matrix_find(&m, "conv_wgrad", "ordered")->cell, 2);
    assert_null(matrix_find(&m, "conv_wgrad", "unordered"));
    assert_int_equal(at(&m, "conv_wgrad", 0)->state, SOLUTION_UNMEASURED);
    assert_int_equal(at(&m, "ctc_loss", 0)->state, SOLUTION_MEASURED);
    matrix_release(&m);
}

static void test_a_variant_carries_its_worst_cell(void **state)
{
    struct matrix m = begin(false, 0);
    struct cell large = cell_of("conv_wgrad", "ordered", VERDICT_VARIES, 8);

    (void)state;
    add(&m, "conv_wgrad", "ordered", VERDICT_REPRODUCIBLE, 7);
    copy_text(large.key.size, sizeof large.key.size, "large");
    matrix_add(&m, &large);
    matrix_settle(&m);
    assert_int_equal(m.variant_count, 1);
    assert_int_equal(m.variants[0].known.verdict, VERDICT_VARIES);
    assert_int_equal(m.variants[0].cell, 8);
    assert_string_equal(m.variants[0].size, "large");
    matrix_release(&m);
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
    v = matrix_find(&m, "conv_wgrad", "ordered");
    assert_true(v->cost.known);
    assert_true(v->cost.median == 1.5 && v->cost.low == 0.375 && v->cost.high == 6);
    assert_string_equal(v->cost_against, "unordered");
    assert_false(matrix_find(&m, "conv_wgrad", "patched")->cost.known);
    assert_false(matrix_find(&m, "conv_wgrad", "unordered")->cost.known);
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

static void fill_mixed(struct matrix *m)
{
    add(m, "bias_add_bwd", "ordered", VERDICT_REPRODUCIBLE, 1);
    add(m, "bias_add_bwd", "patched", VERDICT_VARIES, 2);
    add(m, "bias_add_bwd", "unordered", VERDICT_VARIES, 3);
    add(m, "conv_wgrad", "ordered", VERDICT_REPRODUCIBLE, 4);
    add(m, "conv_wgrad", "unordered", VERDICT_VARIES, 5);
    add(m, "ctc_loss", "ordered", VERDICT_INCONCLUSIVE, 6);
    add(m, "ctc_loss", "unordered", VERDICT_INCONCLUSIVE, 7);
    add(m, "maxpool_bwd", "ordered", VERDICT_FAILING, 8);
    add(m, "maxpool_bwd", "unordered", VERDICT_VARIES, 9);
    matrix_settle(m);
}

static void check_width(const struct matrix *m)
{
    struct buf text = BUF_INIT;
    char *rest;

    matrix_text(m, &text);
    rest = text.data;
    for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
        size_t length = strlen(line);

        if (text_width(line) > 120 || (length > 0 && line[length - 1] == ' ')) {
            fail_msg("%d columns: '%s'", text_width(line), line);
        }
    }
    buf_release(&text);
}

static void test_text_fits_a_terminal(void **state)
{
    struct matrix m = begin(false, 0);

    (void)state;
    fill_mixed(&m);
    check_width(&m);
    matrix_release(&m);
}

/* Every cell of every built-in table with its code, as if all were measured. */
static void test_every_table_fits_a_terminal(void **state)
{
    (void)state;
    for (int t = 0; t < profile_set_count(set); t++) {
        const struct profile_table *table = profile_set_at(set, t);
        struct matrix m;

        matrix_init(&m, table, now_ms, false, 0);
        for (int r = 0; r < table->row_count; r++) {
            const char *workload = table->rows[r].workload;

            add(&m, workload, "autotune", VERDICT_VARIES, 1);
            add(&m, workload, "fixed", VERDICT_REPRODUCIBLE, 2);
            add(&m, workload, "ordered", VERDICT_REPRODUCIBLE, 3);
            add(&m, workload, "patched", VERDICT_REPRODUCIBLE, 4);
            add(&m, workload, "unordered", VERDICT_VARIES, 5);
        }
        matrix_settle(&m);
        for (int r = 0; r < table->row_count; r++) {
            for (int c = 0; c < table->column_count; c++) {
                assert_int_not_equal(matrix_agrees(&m, r, c), 0);
            }
        }
        check_width(&m);
        matrix_release(&m);
    }
}

/* The line of TEXT that begins with START; static. */
static const char *line_of(const char *text, const char *start)
{
    static char line[512];
    const char *at = strstr(text, start);

    assert_non_null(at);
    snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
    return line;
}

static void test_text_is_honest(void **state)
{
    struct matrix m = begin(false, 0);
    struct buf text = BUF_INIT;
    const char *line;

    (void)state;
    fill_mixed(&m);
    matrix_text(&m, &text);
    line = line_of(text.data, "cuDNN convolution backprop to weight");
    assert_non_null(strstr(line, "TCD or TDP"));
    assert_null(strstr(line, "≠"));
    assert_non_null(strstr(line_of(text.data, "tf.nn.bias_add"), "NS ≠"));
    line = line_of(text.data, "cuDNN CTC loss");
    assert_non_null(strstr(line, "?"));
    assert_null(strstr(line, "NS"));
    line = line_of(text.data, "cuDNN max-pooling");
    assert_non_null(strstr(line, "!"));
    assert_null(strstr(line, "TDO"));
    assert_non_null(strstr(line_of(text.data, "XLA reductions"), "·"));
    assert_non_null(strstr(text.data, "measured NS, documented TDP"));
    assert_non_null(strstr(text.data, "none: nothing has been run here yet"));
    assert_non_null(strstr(text.data, "because it is so"));
    assert_non_null(strstr(line_of(text.data, "tf.image.resize_bilinear"), "·²"));
    assert_non_null(strstr(text.data, "\n  ²     the documents' column TF <2.2\n"));
    buf_release(&text);
    matrix_release(&m);
}

static void test_nothing_measured(void **state)
{
    struct matrix m = begin(false, 0);
    struct buf text = BUF_INIT;

    (void)state;
    matrix_settle(&m);
    matrix_text(&m, &text);
    assert_non_null(strstr(text.data, "Nothing has been measured here yet."));
    assert_non_null(strstr(text.data, "0 of 35 measured"));
    assert_null(strstr(text.data, "TDO"));
    buf_release(&text);
    matrix_release(&m);
}

static void test_json_says_the_same(void **state)
{
    struct matrix m = begin(false, 0);
    struct json_out out = JSON_OUT_INIT;
    json_t *root;
    json_t *row;
    size_t r;

    (void)state;
    fill_mixed(&m);
    matrix_json(&m, &out);
    root = json_loadb(out.buf.data, out.buf.length, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    assert_true(json_is_null(json_object_get(root, "environment")));
    json_array_foreach(json_object_get(root, "rows"), r, row)
    {
        json_t *cell;
        size_t c;

        json_array_foreach(json_object_get(row, "cells"), c, cell)
        {
            const char *code = json_string_value(json_object_get(cell, "code"));
            const char *state_name = json_string_value(json_object_get(cell, "state"));
            const struct solution *s = matrix_solution(&m, (int)r, (int)c);

            assert_string_equal(state_name, solution_state_name(s->state));
            assert_int_equal(code != NULL, strcmp(state_name, "measured") == 0);
            assert_int_equal(json_is_boolean(json_object_get(cell, "agrees")),
                             matrix_agrees(&m, (int)r, (int)c) >= 0);
        }
    }
    json_decref(root);
    buf_release(&out.buf);
    matrix_release(&m);
}

static void test_csv_has_a_line_a_cell(void **state)
{
    struct matrix m = begin(false, 0);
    struct buf text = BUF_INIT;
    int lines = 0;

    (void)state;
    fill_mixed(&m);
    matrix_csv(&m, &text);
    for (const char *c = text.data; *c; c++) {
        lines += *c == '\n';
    }
    assert_int_equal(lines, 1 + m.table->row_count * m.table->column_count);
    assert_non_null(strstr(text.data, "\"TF 1.14, 1.15, 2.0\",measured,TCD or TDP,"));
    buf_release(&text);
    matrix_release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_must_equal_or_differ),
        cmocka_unit_test(test_codes_come_from_cells),
        cmocka_unit_test(test_stale_is_not_green_and_ends_the_cache),
        cmocka_unit_test(test_history_is_never_too_fresh),
        cmocka_unit_test(test_only_the_newest_version_counts),
        cmocka_unit_test(test_a_variant_carries_its_worst_cell),
        cmocka_unit_test(test_costs_are_told_against_the_control),
        cmocka_unit_test(test_text_fits_a_terminal),
        cmocka_unit_test(test_every_table_fits_a_terminal),
        cmocka_unit_test(test_text_is_honest),
        cmocka_unit_test(test_nothing_measured),
        cmocka_unit_test(test_json_says_the_same),
        cmocka_unit_test(test_csv_has_a_line_a_cell),
    };

    return cmocka_run_group_tests(tests, load_profiles, free_profiles);
}
