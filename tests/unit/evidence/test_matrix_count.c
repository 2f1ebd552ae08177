/* Counts and the headline: what each subject shows, and who took no part. */
#include "tests/unit/evidence/matrix_fixture.h"

#include "daemon/evidence/matrix_count.h"

/* Each row has variants of its own: a variant is of one subject. */
#define CELLS                                                                            \
    "\"cells\":{\"c\":{\"%s\":{\"none\":\"u%d\",\"TDO\":\"o%d\"},\"documented\":"        \
    "\"TDO\"},"                                                                          \
    "\"d\":{\"%s\":{\"none\":\"u%d\",\"TDO\":\"p%d\"},\"documented\":\"NS\"}}"

/* A framework F, two libraries A and B, and our model, each with a row of its own. */
static struct profile_table *four_subjects(void)
{
    static const char *const rows[][2] = {
        { "framework", "\"subject\":\"framework\",\"framework\":\"F\"," },
        { "library", "\"subject\":\"library\",\"library\":\"A\"," },
        { "library", "\"subject\":\"library\",\"library\":\"B\"," },
        { "model", "\"subject\":\"model\"," },
    };
    struct profile_table *table = NULL;
    char text[4096];
    int length = snprintf(text, sizeof text,
                          "{\"table\":\"t\",\"title\":\"T\",\"source\":\"S\",\"recipes\":"
                          "[{\"name\":\"TDO\",\"title\":\"do\"}],\"columns\":["
                          "{\"id\":\"c\",\"title\":\"C\",\"recipes\":[\"TDO\"]},"
                          "{\"id\":\"d\",\"title\":\"D\",\"recipes\":[\"TDO\"]}],"
                          "\"rows\":[");
    struct err err;

    for (int i = 0; i < 4; i++) {
        length +=
            snprintf(text + length, sizeof text - (size_t)length,
                     "%s{\"id\":\"r%d\",\"workload\":\"w\",\"title\":\"W\",%s" CELLS "}",
                     i ? "," : "", i, rows[i][1], rows[i][0], i, i, rows[i][0], i, i);
    }
    length += snprintf(text + length, sizeof text - (size_t)length, "]}");
    if (profile_parse("t", text, (size_t)length, &table, &err) != ERR_OK) {
        fail_msg("%s", err.message);
    }
    return table;
}

/* Two recipes that solve what the last variant shows. */
static void add_codes(struct matrix *m, int row)
{
    static const char names[] = { 'o', 'p', 'u' };
    const struct profile_row *r = &m->table->rows[row];

    for (int i = 0; i < 3; i++) {
        const char variant[] = { names[i], (char)('0' + row), '\0' };
        struct cell c =
            cell_of("w", variant, i < 2 ? VERDICT_REPRODUCIBLE : VERDICT_VARIES, i + 1);

        c.subject = r->subject;
        copy_text(c.subject_name, sizeof c.subject_name,
                  r->subject_name ? r->subject_name : "");
        matrix_add(m, &c);
    }
}

enum { F = 1, A = 2, B = 4, MODEL = 8 };

static struct matrix measured(const struct profile_table *table, int subjects)
{
    struct matrix m;

    matrix_init(&m, table, NULL, now_ms, false, 0);
    m.environment_json = xstrdup("{\"a\":\"1\",\"b\":\"2\",\"f\":\"3\"}");
    for (int row = 0; row < 4; row++) {
        if (subjects & 1 << row) {
            add_codes(&m, row);
        }
    }
    matrix_settle(&m);
    return m;
}

static void test_each_subject_has_counts_of_its_own(void **state)
{
    static const struct {
        enum subject subject;
        const char *name;
    } expected[] = { { SUBJECT_FRAMEWORK, "F" },
                     { SUBJECT_LIBRARY, "A" },
                     { SUBJECT_LIBRARY, "B" },
                     { SUBJECT_MODEL, NULL } };
    struct profile_table *table = four_subjects();

    (void)state;
    for (int subjects = 0; subjects < 16; subjects++) {
        struct matrix m = measured(table, subjects);
        struct matrix_tally tallies[MATRIX_TALLIES_MAX];

        assert_int_equal(matrix_count(&m, tallies), 4);
        for (int i = 0; i < 4; i++) {
            const struct matrix_tally *t = &tallies[i];
            bool is = subjects & 1 << i;

            assert_int_equal(t->subject, expected[i].subject);
            if (expected[i].name) {
                assert_string_equal(t->name, expected[i].name);
            } else {
                assert_null(t->name);
            }
            assert_int_equal(t->cells, 2);
            assert_int_equal(t->states[SOLUTION_MEASURED], is ? 2 : 0);
            assert_int_equal(t->states[SOLUTION_UNMEASURED], is ? 0 : 2);
            assert_int_equal(t->agree, is);  /* with TDO; */
            assert_int_equal(t->differ, is); /* the other is documented as NS */
            assert_int_equal(t->facts, is ? 3 : 0);
        }
        matrix_release(&m);
    }
    profile_free(table);
}

static void test_the_headline_names_every_subject(void **state)
{
    static const struct {
        int subjects;
        const char *text;
    } cases[] = {
        { 0, "no code has been measured here; neither F nor A nor B took part" },
        { MODEL, "2 codes of reprod's own models; neither F nor A nor B took part" },
        { A | MODEL,
          "2 codes of A 1 and 2 of reprod's own models; neither F nor B took "
          "part" },
        { A | B | MODEL,
          "2 codes of A 1, 2 of B 2 and 2 of reprod's own models; F took "
          "no part" },
        { F | A | B | MODEL,
          "2 codes of F 3, 2 of A 1, 2 of B 2 and 2 of reprod's own models" },
        { F | B, "2 codes of F 3 and 2 of B 2; A took no part" },
    };
    struct profile_table *table = four_subjects();

    (void)state;
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        struct matrix m = measured(table, cases[i].subjects);
        char text[MATRIX_HEADLINE_SIZE];

        matrix_headline(&m, text);
        assert_string_equal(text, cases[i].text);
        matrix_release(&m);
    }
    profile_free(table);
}

/* A table of one row, ROW. */
static struct profile_table *one_row(const char *row)
{
    struct profile_table *table = NULL;
    struct err err;
    char text[1024];
    int length = snprintf(text, sizeof text,
                          "{\"table\":\"t\",\"title\":\"T\",\"source\":\"S\",\"recipes\":"
                          "[{\"name\":\"TDO\",\"title\":\"do\"}],\"columns\":["
                          "{\"id\":\"c\",\"title\":\"C\",\"recipes\":[\"TDO\"]}],"
                          "\"rows\":[%s]}",
                          row);

    if (profile_parse("t", text, (size_t)length, &table, &err) != ERR_OK) {
        fail_msg("%s", err.message);
    }
    return table;
}

#define DOCUMENTED_ONLY                                                                  \
    "{\"id\":\"h\",\"title\":\"H\",\"subject\":\"framework\",\"framework\":\"F\","       \
    "\"cells\":{\"c\":{\"documented\":\"NS!\"}}}"
#define A_MODEL                                                                          \
    "{\"workload\":\"w\",\"title\":\"W\",\"subject\":\"model\",\"cells\":{\"c\":"        \
    "{\"model\":{\"none\":\"a\",\"TDO\":\"b\"}}}}"

/* Where there is nothing to measure, nothing is said of what was not measured. */
static void test_the_headline_where_there_are_no_cells(void **state)
{
    static const struct {
        const char *row;
        enum subject only;
        const char *text;
    } cases[] = {
        { A_MODEL, SUBJECT_COUNT, "no code has been measured here" },
        { A_MODEL, SUBJECT_MODEL, "no code has been measured here" },
        { A_MODEL, SUBJECT_LIBRARY, "this table has no row of a library" },
        { A_MODEL, SUBJECT_FRAMEWORK, "this table has no row of a framework" },
        { DOCUMENTED_ONLY, SUBJECT_MODEL, "this table has no row of a model" },
        { DOCUMENTED_ONLY, SUBJECT_COUNT,
          "no workload stands for a source of this table; F took no part" },
        { DOCUMENTED_ONLY, SUBJECT_FRAMEWORK,
          "no workload stands for a source of these rows; F took no part" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct profile_table *table = one_row(cases[i].row);
        char text[MATRIX_HEADLINE_SIZE];
        struct matrix m;

        matrix_init(&m, table, NULL, now_ms, false, 0);
        m.only = cases[i].only;
        matrix_settle(&m);
        matrix_headline(&m, text);
        assert_string_equal(text, cases[i].text);
        matrix_release(&m);
        profile_free(table);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_subject_has_counts_of_its_own),
        cmocka_unit_test(test_the_headline_names_every_subject),
        cmocka_unit_test(test_the_headline_where_there_are_no_cells),
    };

    return cmocka_run_group_tests_name("matrix_count", tests, load_profiles,
                                       free_profiles);
}
