/* Tables of the configuration beside the built-in ones: what is read, and what is
 * refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/base/mem.h"
#include "daemon/evidence/profile.h"

enum { LARGEST = 4 << 20 };

static const char own[] =
    "{\"table\":\"%s\",\"title\":\"T\",\"source\":\"a book\",\"recipes\":["
    "{\"name\":\"R\",\"title\":\"r\"}],"
    "\"columns\":[{\"id\":\"c\",\"title\":\"C\",\"recipes\":[\"R\"]}],"
    "\"rows\":[{\"workload\":\"no-such\",\"title\":\"W\",\"subject\":\"model\","
    "\"cells\":{\"c\":{\"model\":{\"none\":\"x\",\"R\":\"x\"}}}}]}";

/* Loads the table ID from a file, COPIES times, whose text is padded to BYTES. */
static struct profile_set *load(const char *id, int copies, size_t bytes, struct err *err)
{
    char path[] = "/tmp/reprod-profile-XXXXXX";
    int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");
    json_t *files = json_array();
    struct profile_set *set = NULL;
    int length;

    assert_non_null(file);
    length = fprintf(file, own, id);
    for (size_t i = (size_t)length; i < bytes; i++) {
        fputc(' ', file);
    }
    fclose(file);
    for (int i = 0; i < copies; i++) {
        json_array_append_new(files, json_string(path));
    }
    if (profile_set_load(files, &set, err) != ERR_OK) {
        set = NULL;
    }
    json_decref(files);
    unlink(path);
    return set;
}

static void test_own_tables_join_the_built_in_ones(void **state)
{
    struct err err;
    struct profile_set *set = load("own", 1, LARGEST, &err);
    const struct profile_table *table;

    (void)state;
    assert_non_null(set);
    table = profile_set_find(set, "own");
    assert_non_null(table);
    assert_ptr_equal(table, profile_set_at(set, profile_set_count(set) - 1));
    assert_string_equal(table->source, "a book");
    assert_non_null(profile_set_find(set, "documents-2020"));
    profile_set_free(set);
    profile_set_free(NULL);
    profile_free(NULL);
}

static void test_refused(void **state)
{
    json_t *missing = json_pack("[s]", "/no/such/table.json");
    struct profile_set *set;
    struct err err;

    (void)state;
    assert_null(load("own", 2, 0, &err));
    assert_int_equal(err.code, ERR_INVALID);
    assert_non_null(strstr(err.message, ": /table: there is a table 'own' already"));
    assert_null(load("documents-2020", 1, 0, &err));
    assert_non_null(strstr(err.message, "there is a table 'documents-2020' already"));
    assert_null(load("own", 1, LARGEST + 1, &err));
    assert_int_equal(err.code, ERR_TOO_LARGE);
    assert_non_null(strstr(err.message, ": over 4194304 bytes"));
    assert_int_not_equal(profile_set_load(missing, &set, &err), ERR_OK);
    assert_non_null(strstr(err.message, "/no/such/table.json"));
    json_decref(missing);
}

/* A built-in table may name what no worker here has; one of the configuration may not. */
static void test_own_tables_name_what_there_is(void **state)
{
    struct catalogue *empty = catalogue_new();
    struct err err;
    struct profile_set *set = load("own", 1, 0, &err);
    struct profile_set *built_in = load("own", 0, 0, &err);

    (void)state;
    assert_non_null(set);
    assert_non_null(built_in);
    assert_int_equal(profile_set_check(built_in, empty, &err), ERR_OK);
    assert_int_equal(profile_set_check(set, empty, &err), ERR_INVALID);
    assert_non_null(
        strstr(err.message, "/rows/0/workload: no worker has a workload 'no-such'"));
    profile_set_free(set);
    profile_set_free(built_in);
    catalogue_free(empty);
}

/* Writes TEXT into a file of its own; the caller unlinks it. */
static json_t *file_of(const char *text)
{
    char path[] = "/tmp/reprod-profile-XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    return json_string(path);
}

static void unlink_all(json_t *files)
{
    for (size_t i = 0; i < json_array_size(files); i++) {
        unlink(json_string_value(json_array_get(files, i)));
    }
    json_decref(files);
}

/* The first file that is wrong is told, and none after it is read. */
static void test_the_first_wrong_file_is_told(void **state)
{
    json_t *files = json_pack("[s,o]", "/tmp", file_of("{"));
    struct profile_set *kept = NULL;
    struct err err;

    (void)state;
    assert_int_not_equal(profile_set_load(files, &kept, &err), ERR_OK);
    assert_string_equal(err.message, "/tmp: Is a directory");
    json_array_remove(files, 0);
    json_array_append_new(files, json_string("/no/such/table.json"));
    assert_int_equal(profile_set_load(files, &kept, &err), ERR_INVALID);
    assert_non_null(strstr(err.message, ": line 1: "));
    assert_null(kept);
    unlink_all(files);
}

/* There is room for so many tables; one more is refused, and none is left out in silence.
 */
static void test_so_many_tables(void **state)
{
    enum { ROOM = 32 };
    struct profile_set *loaded = load("own", 0, 0, &(struct err){ .message = "" });
    int own_tables = ROOM - profile_set_count(loaded);
    json_t *files = json_array();
    struct err err;

    (void)state;
    profile_set_free(loaded);
    for (int i = 0; i < own_tables; i++) {
        char text[sizeof own + 16], id[16];

        snprintf(id, sizeof id, "own%d", i);
        snprintf(text, sizeof text, own, id);
        json_array_append_new(files, file_of(text));
    }
    assert_int_equal(profile_set_load(files, &loaded, &err), ERR_OK);
    assert_int_equal(profile_set_count(loaded), ROOM);
    profile_set_free(loaded);
    json_array_append_new(files, file_of("{}"));
    assert_int_equal(profile_set_load(files, &loaded, &err), ERR_TOO_LARGE);
    assert_non_null(strstr(err.message, ": more than 32 profile tables"));
    unlink_all(files);
}

/* A catalogue of workload w and another, with variants of a library and a model. */
static struct catalogue *with_library(void)
{
    struct catalogue *c = catalogue_new();
    json_t *list = json_pack(
        "[{s:s,s:i,s:s,s:s,s:s,s:[{s:s,s:s,s:s,s:s,s:s,s:s,s:b},"
        "{s:s,s:s,s:s,s:s,s:s,s:b}],s:[{s:s,s:s}],s:[s],s:s}]",
        "workload", "w", "version", 1, "backend", "cpu", "title", "", "summary", "",
        "variants", "name", "algo_1", "summary", "", "models", "", "algorithm", "",
        "subject", "library", "subject_name", "cuDNN", "control", 1, "name", "ordered",
        "summary", "", "models", "", "algorithm", "", "subject", "model", "control", 0,
        "sizes", "name", "small", "description", "", "dtypes", "float32", "weight_sum",
        "");
    json_t *another;
    struct err err;

    assert_int_equal(catalogue_add(c, list, &err), ERR_OK);
    another = json_deep_copy(list);
    json_object_set_new(json_array_get(another, 0), "workload", json_string("another"));
    assert_int_equal(catalogue_add(c, another, &err), ERR_OK);
    json_decref(another);
    json_decref(list);
    return c;
}

/* A row names variants of its own subject: those of another library, or of our models,
 * are none.  What is nearest among its own is suggested. */
static void test_a_row_names_variants_of_its_subject(void **state)
{
    static const struct {
        const char *workload, *subject, *variant;
        bool may_lack;
        const char *message; /* NULL: it is good */
    } cases[] = {
        { "w", "'subject':'library','library':'cuDNN'", "algo_1", false, NULL },
        { "w", "'subject':'library','library':'cuDNN'", "ordered", false,
          "w has no variant 'ordered' of cuDNN" },
        { "w", "'subject':'library','library':'cuDNN'", "algo_2", false,
          "w has no variant 'algo_2' of cuDNN; did you mean 'algo_1'?" },
        { "w", "'subject':'library','library':'miDNN'", "algo_1", false,
          "w has no variant 'algo_1' of miDNN" },
        { "w", "'subject':'library','library':'miDNN'", "algo_1", true, NULL },
        { "w", "'subject':'library','library':'cuDNN'", "algo_3", true,
          "w has no variant 'algo_3' of cuDNN" },
        { "w", "'subject':'model'", "ordered", false, NULL },
        { "w", "'subject':'model'", "algo_1", false,
          "w has no variant 'algo_1' of our models" },
        { "ww", "'subject':'model'", "ordered", false,
          "no worker has a workload 'ww'; did you mean 'w'?" },
    };
    struct catalogue *catalogue = with_library();

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        struct profile_table *table = NULL;
        struct err err = { .message = "" };
        int length = snprintf(
            text, sizeof text,
            "{'table':'t','title':'T','source':'S','recipes':[{'name':'R','title':'r'}],"
            "'columns':[{'id':'c','title':'C','recipes':['R']}],'rows':[{'workload':'%s',"
            "'title':'W',%s,'cells':{'c':{'%s':{'none':'%s','R':'raises'}}}}]}",
            cases[i].workload, cases[i].subject,
            strstr(cases[i].subject, "library") ? "library" : "model", cases[i].variant);

        for (char *at = text; *at; at++) {
            *at = *at == '\'' ? '"' : *at;
        }
        assert_int_equal(profile_parse("t", text, (size_t)length, &table, &err), ERR_OK);
        if (cases[i].message) {
            assert_int_equal(profile_check(table, catalogue, cases[i].may_lack, &err),
                             ERR_INVALID);
            if (!strstr(err.message, cases[i].message)) {
                fail_msg("%s", err.message);
            }
        } else {
            assert_int_equal(profile_check(table, catalogue, cases[i].may_lack, &err),
                             ERR_OK);
        }
        profile_free(table);
    }
    catalogue_free(catalogue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_tables_join_the_built_in_ones),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_own_tables_name_what_there_is),
        cmocka_unit_test(test_the_first_wrong_file_is_told),
        cmocka_unit_test(test_so_many_tables),
        cmocka_unit_test(test_a_row_names_variants_of_its_subject),
    };

    return cmocka_run_group_tests_name("profile_set", tests, NULL, NULL);
}
