/* The built-in tables against the workloads that are linked in: every variant they name
 * exists, and where controls vary and all else does not, they give the documents' codes.
 */
#include "daemon/evidence/profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/evidence/solution.h"
#include "workloads/worker/registry.h"

static struct profile_set *set;
static struct registry registry;

static int setup(void **state)
{
    struct err err;

    (void)state;
    return profile_set_load(NULL, &set, &err) != ERR_OK ||
           registry_init_linked(&registry, stderr) != 0;
}

static int teardown(void **state)
{
    (void)state;
    profile_set_free(set);
    registry_release(&registry);
    return 0;
}

/* NULL if WORKLOAD has no such variant. */
static const struct workload_variant *find_variant(const struct workload *workload,
                                                   const char *name)
{
    for (int i = 0; i < workload->variant_count; i++) {
        if (strcmp(workload->variants[i].name, name) == 0) {
            return &workload->variants[i];
        }
    }
    return NULL;
}

/* What a variant is seen to do where everything goes well. */
static enum verdict verdict_of(const char *workload, const char *variant)
{
    const struct workload *w = registry_find(&registry, workload, "cpu");
    const struct workload_variant *v;

    if (!w) {
        fail_msg("there is no workload %s", workload);
    }
    v = find_variant(w, variant);
    if (!v) {
        fail_msg("%s has no variant %s", workload, variant);
    }
    return v->control ? VERDICT_VARIES : VERDICT_REPRODUCIBLE;
}

static void check_cell(const struct profile_table *table, const struct profile_row *row,
                       int column)
{
    const struct profile_cell *cell = &row->cells[column];
    struct evidence evidence = { .varied = true, /* matters where it varies */
                                 .checks = { .has_reference = true,
                                             .digests_passed = 2 } };
    struct variant_knowledge known[PROFILE_RECIPES_MAX];
    struct solution solution;

    if (cell->absent || row->subject != SUBJECT_MODEL) {
        return;
    }
    evidence.runs[OUTCOME_COMPLETED] = 5;
    for (int i = 0; i < cell->choice_count; i++) {
        const char *variant = cell->choices[i].variant;

        known[i] = (struct variant_knowledge)VARIANT_KNOWLEDGE_INIT;
        if (variant) {
            variant_knowledge_join(&known[i], verdict_of(row->workload, variant), "so",
                                   &evidence);
        }
    }
    solution = solution_derive(cell->choices, known, cell->choice_count);
    /* A candidate, of which the documents give no code: its note says so. */
    if (!cell->documented && cell->note &&
        strstr(cell->note, "no code in the documents")) {
        assert_true(solution.code[0]);
        return;
    }
    if (!cell->documented || strcmp(solution.code, cell->documented) != 0) {
        fail_msg("%s, %s, %s: documented %s, derived %s", table->id, row->workload,
                 table->columns[column].name, cell->documented ? cell->documented : "-",
                 solution.code);
    }
}

static void test_controls_that_vary_give_the_documents_codes(void **state)
{
    (void)state;
    for (int t = 0; t < profile_set_count(set); t++) {
        const struct profile_table *table = profile_set_at(set, t);

        for (int r = 0; r < table->row_count; r++) {
            for (int c = 0; c < table->column_count; c++) {
                check_cell(table, &table->rows[r], c);
            }
        }
    }
}

static void test_the_expected_tables_and_columns(void **state)
{
    static const struct {
        const char *id;
        int columns, rows;
        const char *first, *last;
    } expected[] = {
        { "documents-2020", 5, 9, "tf-1.14", "ngc-20.03" },
        { "documents-2023", 10, 30, "tf-1.14", "tf-2.10" },
        { "pytorch", 13, 47, "pytorch-1.6", "pytorch-2.15" },
    };

    (void)state;
    assert_int_equal(profile_set_count(set), 3);
    for (int i = 0; i < 3; i++) {
        const struct profile_table *table = profile_set_at(set, i);

        assert_string_equal(table->id, expected[i].id);
        assert_int_equal(table->column_count, expected[i].columns);
        assert_int_equal(table->rows[table->row_count - 1].index + 1, expected[i].rows);
        assert_string_equal(table->columns[0].name, expected[i].first);
        assert_string_equal(table->columns[table->column_count - 1].name,
                            expected[i].last);
    }
}

/* Whose row it is says its title: no title of a library is above a model alone. */
static void test_titles_and_subjects(void **state)
{
    (void)state;
    for (int t = 0; t < profile_set_count(set); t++) {
        const struct profile_table *table = profile_set_at(set, t);

        for (int r = 0; r < table->row_count; r++) {
            const struct profile_row *row = &table->rows[r];
            bool first = r == 0 || table->rows[r - 1].index != row->index;

            assert_int_equal(row->is_source, first);
            assert_true(!first || row->subject != SUBJECT_MODEL);
            if (first && strncmp(row->title, "cuDNN", 5) == 0) {
                assert_int_equal(row->subject, SUBJECT_LIBRARY);
                assert_string_equal(row->subject_name, "cuDNN");
            }
        }
    }
}

/* The cell of the documents-2020 row of WORKLOAD, of its models. */
static const struct profile_cell *cell_of_2020(const char *workload, int column)
{
    const struct profile_table *table = profile_set_at(set, 0);

    for (int r = 0; r < table->row_count; r++) {
        if (table->rows[r].subject == SUBJECT_MODEL &&
            strcmp(table->rows[r].workload, workload) == 0) {
            return &table->rows[r].cells[column];
        }
    }
    return NULL;
}

/* Until NGC 19.12 and TF 2.2 there was one algorithm, and it was not for every layer. */
static void test_the_notes_of_the_documents(void **state)
{
    static const struct {
        const char *workload;
        int column;
        const char *said;
    } expected[] = {
        { "conv_autotune", 0, "No algorithm worked!" },
        { "conv_autotune", 1, "NGC 19.12 and later: several" },
        { "conv_wgrad", 1, "NGC 19.12 and later: several" },
        { "conv_dgrad", 0, "No algorithm worked!" },
        { "conv_autotune", 2, "several deterministic algorithms" },
        { "bias_add_bwd", 0, "XLA" },
        { "bias_add_bwd", 1, "XLA" },
        { "ctc_loss", 3, "confirmed to work in 2.6" },
        { "softmax_xent", 3, "work-around" },
        { "resize_bilinear_bwd", 1, "TF <2.2" },
        { "resize_bilinear_bwd", 3, "\"TF 2.3 ?\"" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        const struct profile_cell *cell =
            cell_of_2020(expected[i].workload, expected[i].column);

        assert_non_null(cell->note);
        assert_non_null(strstr(cell->note, expected[i].said));
    }
    for (int column = 0; column < 4; column++) {
        const struct profile_cell *cell = cell_of_2020("conv_autotune", column);

        assert_string_equal(cell->choices[1].variant, column < 2 ? "single" : "fixed");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_expected_tables_and_columns),
        cmocka_unit_test(test_titles_and_subjects),
        cmocka_unit_test(test_the_notes_of_the_documents),
        cmocka_unit_test(test_controls_that_vary_give_the_documents_codes),
    };

    return cmocka_run_group_tests_name("profile tables", tests, setup, teardown);
}
