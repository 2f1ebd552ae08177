/* The matrix at its edges: which cell a variant shows, until when an answer holds, and
 * what is said of rows whose library nobody saw. */
#include "tests/unit/evidence/matrix_fixture.h"

#include <stdio.h>

#include "daemon/base/array.h"
#include "daemon/evidence/matrix_count.h"

/* A table of ROWS, with ' for ", in one column of the recipes TDO and TCD. */
static struct profile_table *table_of(const char *rows)
{
    struct profile_table *table = NULL;
    struct err err;
    char text[8192];
    int length = snprintf(text, sizeof text,
                          "{'table':'t','title':'T','source':'S','recipes':["
                          "{'name':'TDO','title':'do'},{'name':'TCD','title':'cd'}],"
                          "'columns':[{'id':'c','title':'C','recipes':['TDO','TCD']}],"
                          "'rows':[%s]}",
                          rows);

    for (char *at = text; *at; at++) {
        *at = *at == '\'' ? '"' : *at;
    }
    if (profile_parse("t", text, (size_t)length, &table, &err) != ERR_OK) {
        fail_msg("%s", err.message);
    }
    return table;
}

#define ROW(subject, choices, documented)                                                \
    "{'workload':'w','title':'W'," subject ",'cells':{'c':{" choices documented "}}}"
#define A_LIBRARY                                                                        \
    ROW("'subject':'library','library':'A'",                                             \
        "'library':{'none':'a','TDO':'b','TCD':'b'}", ",'documented':'TDO or TCD'")
#define A_FRAMEWORK                                                                      \
    ROW("'subject':'framework','framework':'F'",                                         \
        "'framework':{'none':'a','TDO':'b','TCD':'b'}", "")

static void add_of(struct matrix *m, enum subject subject, const char *name,
                   const char *variant, enum verdict verdict, int runs)
{
    struct cell c = cell_of("w", variant, verdict, 1);

    c.subject = subject;
    copy_text(c.subject_name, sizeof c.subject_name, name);
    c.evidence.runs[OUTCOME_COMPLETED] = runs;
    matrix_add(m, &c);
}

/* The first cell of a table of ROW whose environment says nothing of its library, where
 * its two variants have these verdicts after so many RUNS each. */
static struct solution unseen(const char *row, enum verdict a, enum verdict b, int runs)
{
    struct profile_table *table = table_of(row);
    const struct profile_row *r = &table->rows[0];
    struct solution s;
    struct matrix m;

    matrix_init(&m, table, NULL, now_ms, false, 0);
    add_of(&m, r->subject, r->subject_name, "a", a, runs);
    add_of(&m, r->subject, r->subject_name, "b", b, runs);
    matrix_settle(&m);
    s = *matrix_solution(&m, 0, 0);
    matrix_release(&m);
    profile_free(table);
    return s;
}

/* A code is a library's only where the environment names its version.  A state that is no
 * code is told as it is; a framework's command is believed. */
static void test_codes_of_what_nobody_saw(void **state)
{
    struct solution s = unseen(A_LIBRARY, VERDICT_VARIES, VERDICT_REPRODUCIBLE, 5);

    (void)state;
    assert_int_equal(s.state, SOLUTION_UNMEASURED);
    assert_string_equal(s.reason, "its runs did not say which A computed");
    s = unseen(A_LIBRARY, VERDICT_VARIES, VERDICT_INCONCLUSIVE, 5);
    assert_int_equal(s.state, SOLUTION_INCONCLUSIVE);
    s = unseen(A_LIBRARY, VERDICT_VARIES, VERDICT_FAILING, 0);
    assert_int_equal(s.state, SOLUTION_FAILING);
    s = unseen(A_LIBRARY, VERDICT_UNSUPPORTED, VERDICT_UNSUPPORTED, 0);
    assert_int_equal(s.state, SOLUTION_UNMEASURED);
    assert_string_equal(s.reason, "no A in this stack");
    s = unseen(A_FRAMEWORK, VERDICT_VARIES, VERDICT_REPRODUCIBLE, 5);
    assert_int_equal(s.state, SOLUTION_MEASURED);
    assert_string_equal(s.code, "TDO or TCD");
    s = unseen(A_FRAMEWORK, VERDICT_UNMEASURED, VERDICT_UNMEASURED, 0);
    assert_string_equal(s.reason, "no F in this stack");
}

/* An answer holds until the first of its green cells becomes stale; one of the past,
 * always. */
static void test_an_answer_holds_until_the_first_is_stale(void **state)
{
    (void)state;
    for (int historic = 0; historic < 2; historic++) {
        for (int order = 0; order < 2; order++) {
            struct matrix m = begin(historic, 7 * (int64_t)DAY_MS);

            for (int i = 0; i < 2; i++) {
                struct cell c = cell_of("w", i ? "b" : "a", VERDICT_REPRODUCIBLE, i + 1);

                c.vouched_ms = now_ms - (1 + (i ^ order)) * (int64_t)DAY_MS;
                matrix_add(&m, &c);
            }
            assert_true(m.valid_until_ms ==
                        (historic ? INT64_MAX : now_ms + 5 * (int64_t)DAY_MS));
            matrix_release(&m);
        }
    }
}

/* A variant of which nothing is measured shows that cell, and a worse one later. */
static void test_an_unmeasured_cell_is_shown(void **state)
{
    struct matrix m = begin(false, 0);
    struct cell c = cell_of("w", "a", VERDICT_UNMEASURED, 7);

    (void)state;
    c.evidence.runs[OUTCOME_COMPLETED] = 0;
    c.median_ns_sum = c.times.runs = 0;
    matrix_add(&m, &c);
    assert_int_equal(m.variants[0].cell, 7);
    assert_int_equal(m.variants[0].mean_ns, 0);
    c = cell_of("w", "a", VERDICT_UNMEASURED, 8);
    matrix_add(&m, &c); /* no weaker than the first */
    assert_int_equal(m.variants[0].cell, 7);
    c = cell_of("w", "a", VERDICT_FAILING, 9);
    matrix_add(&m, &c);
    assert_int_equal(m.variants[0].cell, 9);
    assert_int_equal(m.variants[0].mean_ns, 5000000);
    c.times.runs = 0; /* no run's times are of it alone */
    c.verdict = VERDICT_VARIES;
    matrix_add(&m, &c);
    assert_int_equal(m.variants[0].mean_ns, 0);
    matrix_release(&m);
}

/* Whichever comes first: an old version's cell is no evidence of the new one. */
static void test_an_old_version_says_nothing(void **state)
{
    (void)state;
    for (int first = 1; first <= 2; first++) {
        struct matrix m = begin(false, 0);

        for (int i = 0; i < 2; i++) {
            int version = i ? 3 - first : first;
            struct cell c = cell_of(
                "w", "a", version == 1 ? VERDICT_VARIES : VERDICT_REPRODUCIBLE, version);

            c.key.version = version;
            matrix_add(&m, &c);
        }
        matrix_settle(&m);
        assert_int_equal(m.variant_count, 1);
        assert_int_equal(m.variants[0].cell, 2);
        assert_int_equal(m.variants[0].known.verdict, VERDICT_REPRODUCIBLE);
        assert_int_equal(m.variants[0].known.cases, 1);
        matrix_release(&m);
    }
}

/* What a wrong control costs is no measure of anything. */
static void test_a_wrong_control_is_no_base(void **state)
{
    (void)state;
    for (int failed = 0; failed < 2; failed++) {
        struct matrix m = begin(false, 0);
        struct cell ordered = cell_of("w", "ordered", VERDICT_REPRODUCIBLE, 1);
        struct cell control = cell_of("w", "unordered", VERDICT_VARIES, 2);

        control.is_control = true;
        control.times = ordered.times = (struct quartiles){ 5, 10, 10, 10 };
        control.evidence.checks.failed = failed;
        matrix_add(&m, &ordered);
        matrix_add(&m, &control);
        matrix_settle(&m);
        assert_string_equal(m.variants[0].cost_against, failed ? "" : "unordered");
        matrix_release(&m);
    }
}

static json_t *variant_of(const char *name, const char *differs)
{
    json_t *v =
        json_pack("{s:s,s:s,s:s,s:s,s:s,s:b}", "name", name, "summary", "", "models", "",
                  "algorithm", "", "subject", "model", "control", 0);

    if (differs) {
        json_object_set_new(v, "differs", json_string(differs));
    }
    return v;
}

static json_t *workload_of(const char *name)
{
    return json_pack("{s:s,s:i,s:s,s:s,s:s,s:[o,o],s:[{s:s,s:s}],s:[s],s:s,s:s}",
                     "workload", name, "version", 1, "backend", "cpu", "title", "",
                     "summary", "", "variants", variant_of("ordered", NULL),
                     variant_of("less", "ordered"), "sizes", "name", "small",
                     "description", "", "dtypes", "float32", "weight_sum", "",
                     "no_control", "x");
}

/* Bits are compared within one version of one workload. */
static void test_relations_are_of_one_version_of_one_workload(void **state)
{
    struct catalogue *catalogue = catalogue_new();
    json_t *list = json_pack("[o,o]", workload_of("v"), workload_of("w"));
    struct matrix m;
    struct err err;

    (void)state;
    assert_int_equal(catalogue_add(catalogue, list, &err), ERR_OK);
    matrix_init(&m, profile_set_find(set, "documents-2020"), catalogue, now_ms, false, 0);
    for (int i = 0; i < 6; i++) {
        /* v: equal, which it must not be; w: version 1 likewise, and 2 differs. */
        struct cell c = cell_of(i < 2 ? "v" : "w", i % 2 ? "ordered" : "less",
                                VERDICT_REPRODUCIBLE, i + 1);

        c.key.version = i < 4 ? 1 : 2;
        c.digest[0] = i == 4 ? 'f' : c.digest[0];
        matrix_add(&m, &c);
    }
    matrix_settle(&m);
    assert_int_equal(matrix_find(&m, "v", "less", SUBJECT_MODEL)->seen, RELATION_EQUAL);
    assert_int_equal(matrix_find(&m, "w", "less", SUBJECT_MODEL)->key.version, 2);
    assert_int_equal(matrix_find(&m, "w", "less", SUBJECT_MODEL)->seen,
                     RELATION_DIFFERENT);
    matrix_release(&m);
    json_decref(list);
    catalogue_free(catalogue);
}

/* The code of w rests on two variants where the third choice raises an error. */
static struct matrix with_an_error(struct profile_table *table, const char *facts)
{
    struct matrix m;

    matrix_init(&m, table, NULL, now_ms, false, 0);
    m.environment_json = facts ? xstrdup(facts) : NULL;
    add_of(&m, SUBJECT_MODEL, "", "a", VERDICT_VARIES, 5);
    add_of(&m, SUBJECT_MODEL, "", "b", VERDICT_REPRODUCIBLE, 5);
    matrix_settle(&m);
    return m;
}

static void test_what_is_documented_is_compared(void **state)
{
    static const char choices[] =
        ROW("'subject':'model'", "'model':{'none':'a','TDO':'b','TCD':'raises'}", "%s");
    static const struct {
        const char *documented;
        int agrees;
    } cases[] = { { "", -1 }, { ",'documented':'TDO'", 1 }, { ",'documented':'NS'", 0 } };

    (void)state;
    for (int i = 0; i < COUNT_OF(cases); i++) {
        char row[512];
        char text[MATRIX_HEADLINE_SIZE];
        struct profile_table *table;
        struct matrix_tally tallies[MATRIX_TALLIES_MAX];
        struct matrix m;

        snprintf(row, sizeof row, choices, cases[i].documented);
        table = table_of(row);
        m = with_an_error(table, "{\"model\":\"H200\"}");
        assert_int_equal(matrix_agrees(&m, 0, 0), cases[i].agrees);
        assert_int_equal(matrix_count(&m, tallies), 1);
        assert_int_equal(tallies[0].facts, 2);
        assert_int_equal(tallies[0].agree, cases[i].agrees == 1);
        assert_int_equal(tallies[0].differ, cases[i].agrees == 0);
        matrix_headline(&m, text);
        assert_string_equal(text, "1 code of reprod's own models, on H200");
        matrix_release(&m);
        profile_free(table);
    }
}

/* A table with as many names as there is room for, and our models in two rows. */
static void test_a_full_table_is_counted(void **state)
{
    struct matrix_tally tallies[MATRIX_TALLIES_MAX];
    struct profile_table *table;
    struct matrix m;
    char rows[8192];
    int length = 0;

    (void)state;
    for (int i = 0; i < PROFILE_NAMES_MAX + 2; i++) {
        char subject[64] = "'subject':'model'";

        if (i < PROFILE_NAMES_MAX) {
            snprintf(subject, sizeof subject, "'subject':'library','library':'L%d'", i);
        }
        length += snprintf(rows + length, sizeof rows - (size_t)length,
                           "%s{'id':'r%d','workload':'w','title':'W',%s,'cells':{'c':"
                           "{'%s':{'none':'a','TDO':'b','TCD':'b'}}}}",
                           i ? "," : "", i, subject,
                           i < PROFILE_NAMES_MAX ? "library" : "model");
    }
    table = table_of(rows);
    matrix_init(&m, table, NULL, now_ms, false, 0);
    matrix_settle(&m);
    assert_int_equal(matrix_count(&m, tallies), MATRIX_TALLIES_MAX);
    for (int i = 0; i < MATRIX_TALLIES_MAX; i++) {
        bool is_model = i == MATRIX_TALLIES_MAX - 1;

        assert_int_equal(tallies[i].subject, is_model ? SUBJECT_MODEL : SUBJECT_LIBRARY);
        assert_int_equal(tallies[i].cells, is_model ? 2 : 1);
    }
    matrix_release(&m);
    profile_free(table);
}

/* Who took part: the one of that name, with runs that completed.  Where its rows have
 * nothing to measure, no code is missing. */
static void test_who_took_part(void **state)
{
    static const char bare[] =
        "{'id':'h','title':'H','subject':'framework','framework':'F',"
        "'cells':{'c':{'documented':'NS!'}}}";
    static const struct {
        const char *row, *name;
        int runs;
        const char *text;
    } cases[] = {
        { A_FRAMEWORK, "F", 5, "no code has been measured here; no code of F yet" },
        { A_FRAMEWORK, "F", 0, "no code has been measured here; F took no part" },
        { A_FRAMEWORK, "G", 5, "no code has been measured here; F took no part" },
        { bare, "F", 5, "no workload stands for a source of this table" },
    };

    (void)state;
    for (int i = 0; i < COUNT_OF(cases); i++) {
        struct profile_table *table = table_of(cases[i].row);
        char text[MATRIX_HEADLINE_SIZE];
        char subject[SUBJECT_TEXT_SIZE];
        struct matrix m;

        matrix_init(&m, table, NULL, now_ms, false, 0);
        add_of(&m, SUBJECT_FRAMEWORK, cases[i].name, "a", VERDICT_INCONCLUSIVE,
               cases[i].runs);
        matrix_settle(&m);
        matrix_headline(&m, text);
        assert_string_equal(text, cases[i].text);
        matrix_row_subject(&m, 0, subject);
        assert_string_equal(subject, table->rows[0].workload ? "F" : "no model");
        matrix_release(&m);
        profile_free(table);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codes_of_what_nobody_saw),
        cmocka_unit_test(test_an_answer_holds_until_the_first_is_stale),
        cmocka_unit_test(test_an_unmeasured_cell_is_shown),
        cmocka_unit_test(test_an_old_version_says_nothing),
        cmocka_unit_test(test_a_wrong_control_is_no_base),
        cmocka_unit_test(test_relations_are_of_one_version_of_one_workload),
        cmocka_unit_test(test_what_is_documented_is_compared),
        cmocka_unit_test(test_a_full_table_is_counted),
        cmocka_unit_test(test_who_took_part),
    };

    return cmocka_run_group_tests_name("edges of the matrix", tests, load_profiles,
                                       free_profiles);
}
