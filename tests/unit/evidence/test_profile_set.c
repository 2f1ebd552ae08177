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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_tables_join_the_built_in_ones),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_own_tables_name_what_there_is),
    };

    return cmocka_run_group_tests_name("profile_set", tests, NULL, NULL);
}
