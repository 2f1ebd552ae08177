/* Of which versions a column of a profile table is, and which operations of frameworks
 * compute a row's source. */
#include "tests/unit/evidence/profile_fixture.h"

static void test_versions_and_operations(void **state)
{
    struct err err;
    struct profile_table *t = parse(
        "'recipes':['TDO']},",
        "'recipes':['TDO'],'versions':{'framework':'F','from':'2.2','to':'2.7'}},", &err);

    (void)state;
    assert_non_null(t);
    assert_string_equal(t->column_versions[0].framework, "F");
    assert_string_equal(t->column_versions[0].from, "2.2");
    assert_string_equal(t->column_versions[0].to, "2.7");
    assert_null(t->column_versions[1].framework);
    assert_null(t->rows[0].operations);
    assert_string_equal(t->rows[0].backend, "cuda");
    profile_free(t);
    t = parse("'subject':'model'",
              "'subject':'model','operations':['f_a'],'backend':'cpu'", &err);
    assert_non_null(t);
    assert_int_equal(json_array_size(t->rows[0].operations), 1);
    assert_string_equal(t->rows[0].backend, "cpu");
    profile_free(t);
    assert_null(parse("'subject':'model'", "'subject':'model','operations':[]", &err));
    assert_null(parse("'subject':'model'", "'subject':'model','backend':'tpu'", &err));
    assert_null(parse("'recipes':['TDO']},",
                      "'recipes':['TDO'],'versions':{'framework':'F','from':'2.x'}},",
                      &err));
    assert_non_null(
        strstr(err.message, "/columns/0/versions/from: must be numbers and dots"));
    assert_null(parse("'recipes':['TDO']},",
                      "'recipes':['TDO'],'versions':{'framework':'F','from':''}},",
                      &err));
    assert_null(parse("'recipes':['TDO']},",
                      "'recipes':['TDO'],'versions':{'from':'2'}},", &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions_and_operations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
