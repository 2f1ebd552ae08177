/* What the three representations of the matrix say. */
#include "tests/unit/evidence/matrix_fixture.h"

#include <jansson.h>

#include "api/render/matrix.h"
#include "daemon/base/text.h"

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

        matrix_init(&m, table, NULL, now_ms, false, 0);
        for (int r = 0; r < table->row_count; r++) {
            const char *workload = table->rows[r].workload;

            if (!workload) {
                continue;
            }
            add(&m, workload, "autotune", VERDICT_VARIES, 1);
            add(&m, workload, "fixed", VERDICT_REPRODUCIBLE, 2);
            add(&m, workload, "ordered", VERDICT_REPRODUCIBLE, 3);
            add(&m, workload, "patched", VERDICT_REPRODUCIBLE, 4);
            add(&m, workload, "single", VERDICT_REPRODUCIBLE, 5);
            add(&m, workload, "unordered", VERDICT_VARIES, 6);
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

/* The line of our models below the source whose line begins with START; static. */
static const char *line_of(const char *text, const char *start)
{
    static char line[512];
    const char *at = strstr(text, start);

    assert_non_null(at);
    at = strstr(at, "  our models");
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
    assert_non_null(strstr(line_of(text.data, "tf.nn.bias_add"), "NS⁵ ≠"));
    line = line_of(text.data, "cuDNN CTC loss");
    assert_non_null(strstr(line, "?"));
    assert_null(strstr(line, "NS"));
    line = line_of(text.data, "cuDNN max-pooling");
    assert_non_null(strstr(line, "!"));
    assert_null(strstr(line, "TDO"));
    assert_non_null(strstr(line_of(text.data, "XLA reductions"), "·"));
    assert_non_null(strstr(text.data, "the model showed NS, documented TDP"));
    assert_non_null(strstr(text.data, "none: nothing has been run here yet"));
    assert_non_null(strstr(text.data, "because it is so"));
    assert_non_null(strstr(line_of(text.data, "tf.image.resize_bilinear"), "·⁸"));
    assert_non_null(
        strstr(text.data, "\n  ⁸     the documents' column TF <2.2; in TF 2,"));
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
    assert_non_null(strstr(text.data, "our models: none of 35 codes measured"));
    assert_non_null(strstr(text.data, "cuDNN: none of 20 codes measured"));
    assert_non_null(strstr(text.data, "\nEvidence     none\n"));
    assert_null(strstr(text.data, "TDO"));
    buf_release(&text);
    matrix_release(&m);
}

/* A tally of no cells says so, and so does a subject that no row has. */
static void test_nothing_to_measure(void **state)
{
    static const char row[] =
        "{\"table\":\"t\",\"title\":\"T\",\"source\":\"S\",\"recipes\":[{\"name\":\"R\","
        "\"title\":\"r\"}],\"columns\":[{\"id\":\"c\",\"title\":\"C\",\"recipes\":[\"R\"]"
        "}],"
        "\"rows\":[{\"id\":\"h\",\"title\":\"H\",\"subject\":\"framework\",\"framework\":"
        "\"F\","
        "\"cells\":{\"c\":{\"documented\":\"NS!\"}}}]}";
    struct profile_table *table = NULL;
    struct err err;

    (void)state;
    assert_int_equal(profile_parse("t", row, sizeof row - 1, &table, &err), ERR_OK);
    for (int only = SUBJECT_MODEL; only <= SUBJECT_COUNT; only++) {
        struct buf text = BUF_INIT;
        struct matrix m;

        matrix_init(&m, table, NULL, now_ms, false, 0);
        m.only = (enum subject)only;
        matrix_settle(&m);
        matrix_text(&m, &text);
        assert_null(strstr(text.data, "of 0 codes"));
        assert_null(strstr(text.data, "0 runs"));
        if (only == SUBJECT_COUNT || only == SUBJECT_FRAMEWORK) {
            assert_non_null(strstr(text.data, "F: no code that could be measured\n"));
        } else {
            assert_non_null(strstr(text.data, "this table has no row of a "));
        }
        buf_release(&text);
        matrix_release(&m);
    }
    profile_free(table);
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
            assert_int_equal(code != NULL, strcmp(state_name, "measured") == 0 ||
                                               strcmp(state_name, "declared") == 0);
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
        cmocka_unit_test(test_text_fits_a_terminal),
        cmocka_unit_test(test_every_table_fits_a_terminal),
        cmocka_unit_test(test_text_is_honest),
        cmocka_unit_test(test_nothing_measured),
        cmocka_unit_test(test_nothing_to_measure),
        cmocka_unit_test(test_json_says_the_same),
        cmocka_unit_test(test_csv_has_a_line_a_cell),
    };

    return cmocka_run_group_tests(tests, load_profiles, free_profiles);
}
