/* Profile tables: the built-in ones, and what is refused. */
#include "tests/unit/evidence/profile_fixture.h"

#include "daemon/base/nearest.h"

static void test_parse(void **state)
{
    struct err err;
    struct profile_table *t = parse(NULL, NULL, &err);

    (void)state;
    assert_non_null(t);
    assert_int_equal(t->row_count, 1);
    assert_false(t->rows[0].cells[0].absent);
    assert_true(t->rows[0].cells[1].absent);
    assert_string_equal(t->rows[0].cells[0].choices[0].variant, "unordered");
    assert_null(t->rows[0].cells[0].choices[1].variant);
    assert_string_equal(t->rows[0].cells[0].documented, "NS!");
    profile_free(t);
}

/* One row names the extra recipe of the column, the other does not. */
static void test_extra_recipes(void **state)
{
    static const char text[] =
        "{\"table\":\"t\",\"title\":\"T\",\"source\":\"S\",\"recipes\":["
        "{\"name\":\"TDO\",\"title\":\"do\"},{\"name\":\"FE\",\"title\":\"more\"}],"
        "\"columns\":[{\"id\":\"c\",\"title\":\"C\",\"recipes\":[\"TDO\"],"
        "\"extra_recipes\":[\"FE\"]}],\"rows\":["
        "{\"workload\":\"v\",\"title\":\"V\",\"subject\":\"model\",\"cells\":{\"c\":{"
        "\"model\":"
        "{\"none\":\"a\",\"TDO\":\"a\"}}}},"
        "{\"workload\":\"w\",\"title\":\"W\",\"subject\":\"model\",\"cells\":{\"c\":{"
        "\"model\":"
        "{\"none\":\"a\",\"FE\":\"b\",\"TDO\":\"a\"}}}}]}";
    struct err err;
    struct profile_table *t = NULL;

    (void)state;
    assert_int_equal(profile_parse("t.json", text, sizeof text - 1, &t, &err), ERR_OK);
    assert_int_equal(t->rows[0].cells[0].choice_count, 2);
    assert_int_equal(t->rows[1].cells[0].choice_count, 3);
    assert_string_equal(t->rows[1].cells[0].choices[2].recipe, "FE");
    assert_string_equal(t->rows[1].cells[0].choices[2].variant, "b");
    profile_free(t);
}

/* A source has a row for each subject that something was said of: its own first. */
static void test_a_row_for_each_subject(void **state)
{
    struct err err;
    struct profile_table *t =
        parse("'subject':'model'", "'subject':'library','library':'cuDNN'", &err);

    (void)state;
    assert_non_null(t);
    assert_int_equal(t->row_count, 2);
    assert_int_equal(t->rows[0].subject, SUBJECT_LIBRARY);
    assert_string_equal(t->rows[0].subject_name, "cuDNN");
    assert_true(t->rows[0].is_source);
    assert_int_equal(t->rows[0].cells[0].choice_count, 0);
    assert_string_equal(t->rows[0].cells[0].documented, "NS!");
    assert_int_equal(t->rows[1].subject, SUBJECT_MODEL);
    assert_null(t->rows[1].subject_name);
    assert_false(t->rows[1].is_source);
    assert_int_equal(t->rows[1].cells[0].choice_count, 2);
    assert_int_equal(t->rows[1].index, 0);
    profile_free(t);
}

/* A source that no workload stands for: only what documents say of it. */
static void test_a_row_without_a_workload(void **state)
{
    static const char row[] =
        "'rows':[{'id':'histc','title':'H','subject':'framework','framework':'PyTorch',"
        "'references':[{'kind':'issue','id':'i','title':'t','url':'https://u',"
        "'state':'open 2020-06'}],'cells':{'c1':{'documented':'NS!'}}},";
    struct err err;
    struct profile_table *t = parse("'rows':[", row, &err);

    (void)state;
    assert_non_null(t);
    assert_string_equal(t->rows[0].id, "histc");
    assert_null(t->rows[0].workload);
    assert_int_equal(t->rows[0].cells[0].choice_count, 0);
    assert_int_equal(json_array_size(t->rows[0].references), 1);
    assert_string_equal(t->rows[1].id, "w");
    assert_string_equal(t->rows[1].workload, "w");
    profile_free(t);
}

/* One workload may stand for several sources, each with an id of its own. */
static void test_a_workload_of_several_rows(void **state)
{
    struct err err;
    struct profile_table *t = parse(
        "'rows':[",
        "'rows':[{'id':'v','workload':'w','title':'V','subject':'model','cells':{}},",
        &err);

    (void)state;
    assert_non_null(t);
    assert_int_equal(t->row_count, 2);
    assert_string_equal(t->rows[0].workload, "w");
    profile_free(t);
}

static struct profile_table *parse_rows(const char *rows, struct err *err)
{
    struct profile_table *table = NULL;
    char text[8192];
    int length =
        snprintf(text, sizeof text,
                 "{'table':'t','title':'T','source':'S','recipes':[{'name':'TDO','title':"
                 "'do'}],'columns':[{'id':'c','title':'C','recipes':['TDO']},"
                 "{'id':'d','title':'D','recipes':['TDO']}],'rows':[%s]}",
                 rows);

    for (char *c = text; *c; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    return profile_parse("t.json", text, (size_t)length, &table, err) == ERR_OK ? table
                                                                                : NULL;
}

/* In the order of reading; what is said twice has one number. */
static void test_footnotes_are_numbered(void **state)
{
    struct err err;
    struct profile_table *t = parse_rows(
        "{'workload':'v','title':'V','subject':'model','cells':{"
        "'c':{'model':{'none':'a','TDO':'b'},'note':'one'},"
        "'d':{'model':{'none':'a','TDO':'b'},'note':'two'}}},"
        "{'workload':'w','title':'W','subject':'model','cells':{"
        "'c':{'model':{'none':'a','TDO':'b'}},"
        "'d':{'model':{'none':'a','TDO':'b'},'note':'one'}}}",
        &err);

    (void)state;
    assert_non_null(t);
    assert_int_equal(t->rows[0].cells[0].footnote, 1);
    assert_int_equal(t->rows[0].cells[1].footnote, 2);
    assert_int_equal(t->rows[1].cells[0].footnote, 0);
    assert_int_equal(t->rows[1].cells[1].footnote, 1);
    profile_free(t);
}

/* A table has room for so many libraries, each of which may have several rows. */
static void test_so_many_libraries(void **state)
{
    (void)state;
    for (int names = PROFILE_NAMES_MAX; names <= PROFILE_NAMES_MAX + 1; names++) {
        struct profile_table *t;
        struct err err;
        char rows[8192] = "";
        size_t used = 0;

        for (int i = 0; i < 2 * names; i++) {
            used += (size_t)snprintf(
                rows + used, sizeof rows - used,
                "%s{'id':'r%d','workload':'w','title':'W','subject':'library','library':"
                "'L%d','cells':{'c':{'library':{'none':'a','TDO':'b'}}}}",
                i ? "," : "", i, i % names);
        }
        t = parse_rows(rows, &err);
        if (names == PROFILE_NAMES_MAX) {
            assert_non_null(t);
            profile_free(t);
        } else {
            assert_null(t);
            assert_non_null(
                strstr(err.message, "t.json: /rows/12/library: more than 12"));
        }
    }
}

static void test_images(void **state)
{
    struct err err;
    struct profile_table *t = parse("'columns':[{'id':'c1',",
                                    "'images':[{'name':'19.06','framework':'TF 1.13'}],"
                                    "'columns':[{'id':'c1','images':['19.06'],",
                                    &err);

    (void)state;
    assert_non_null(t);
    assert_string_equal(profile_image(t, "19.06"), "TF 1.13");
    assert_null(profile_image(t, "19.07"));
    assert_int_equal(json_array_size(t->column_images[0]), 1);
    assert_null(t->column_images[1]);
    profile_free(t);
}

#define A_REFERENCE(more)                                                                \
    "'title':'W','references':[{'kind':'issue','id':'i','title':'t'," more "}]"

static void test_refused_with_pointer(void **state)
{
    static const struct {
        const char *from, *to, *expected;
    } wrong[] = {
        { "'table':'t',", "", "t.json: /table: is missing" },
        { "['TDO']", "['TCD']", "/columns/0/recipes/0" },
        { "['TDO']", "[]", "/columns/0" },
        { "['TDO']", "['TDO'],'extra_recipes':['FE']", "/columns/0/extra_recipes/0" },
        { "['TDO']", "['TDO'],'extra_recipes':['1','2','3','4','5','6','7']",
          "/columns/0: has more than 7 recipes" },
        { "{'none':'unordered',", "{", "/rows/0/cells/c1/model: no variant for none" },
        { "'TDO':'raises'}", "'TDO':'raises','TCD':'x'}",
          "/rows/0/cells/c1/model/TCD: not" },
        { "'TDO':'raises'}", "'TDO':'raises','a/~':'x'}", "/model/a~1~0: not a recipe" },
        { "'cells':{'c1'", "'cells':{'c9'",
          "/rows/0/cells/c9: this table has no column 'c9'; did you mean 'c" },
        { "'documented'", "'documneted'",
          "/rows/0/cells/c1/documneted: there is no member 'documneted'; did you mean "
          "'documented'?" },
        { "'title':'W'", "'title':'W','cell':{}", "/rows/0/cell: there is no member" },
        { "'subject':'model',", "", "/rows/0/subject: is missing" },
        { "'subject':'model'", "'subject':'libary'", "/rows/0/subject: must be" },
        { "'subject':'model'", "'subject':'library'",
          "/rows/0/library: must name the library that this row is about" },
        { "'model':{", "'framework':{",
          "/rows/0/framework: must name the framework that this row is about" },
        { "'source':'S'", "'source':'S','colour':1",
          "t.json: /colour: there is no member" },
        { "'id':'c2'", "'id':'c1'", "/columns/1/id: 'c1' is there twice" },
        { "'recipes':[{'name':'TDO','title':'do'}]", "'recipes':{}",
          "/recipes: must be an array that is not empty" },
        { "'recipes':['TDO']", "'recipes':'TDO'",
          "/columns/0/recipes: must be an array" },
        { "'title':'W',", "", "/rows/0" },
        { "{'name':'TDO'", "{'name':3", "/recipes/0" },
        { "'source':'S'", "'source':'S','source':'S'", "line 1" },
        { "['TDO']", "['TDO','TDO']", "/columns/0/recipes/1: 'TDO' is there twice" },
        { "['TDO']", "['TDO'],'extra_recipes':'FE'", "/columns/0/extra_recipes: must" },
        { "'name':'TDO'", "'name':'none'", "/recipes/0/name: 'none' is" },
        { "'name':'TDO'", "'name':''",
          "/recipes/0/name: must be a text that is not empty" },
        { "'name':'TDO'", "'name':'DET'", "/recipes/0/name: 'DET' would read as" },
        { "'name':'TDO'", "'name':'NS!'", "/recipes/0/name: 'NS!' would read as" },
        { "'name':'TDO'", "'name':'A or B'", "/recipes/0/name: 'A or B' would read as" },
        { "'workload':'w',", "", "/rows/0/id: a row without a workload must have one" },
        { "'workload':'w'", "'id':'v'",
          "/rows/0/cells/c1/model: a row without a workload has no variants" },
        { "'rows':[",
          "'rows':[{'workload':'w','title':'V','subject':'model','cells':{}},",
          "/rows/1/workload: 'w' is there twice" },
        { "'rows':[", "'rows':[{'id':'w','title':'V','subject':'model','cells':{}},",
          "/rows/1/workload: 'w' is there twice" },
        { "'rows':[{'workload':'w'",
          "'rows':[{'workload':'w','title':'V','subject':'model','cells':{}},"
          "{'workload':'v','id':'w'",
          "/rows/1/id: 'w' is there twice" },
        { "'rows':[",
          "'rows':[{'id':'v','title':'V','subject':'model','cells':{'c1':{'note':'n'}}},",
          "/rows/0/cells: a row without a workload must say what is documented in c1" },
        { "'title':'W'", A_REFERENCE("'url':'http://u'"),
          "/rows/0/references/0/url: must be an https address" },
        { "'title':'W'", A_REFERENCE("'url':'https://u','state':'open'"),
          "/rows/0/references/0/state: must be states with their months" },
        { "'title':'W'",
          "'title':'W','references':[{'kind':'book','id':'i','title':'t',"
          "'url':'https://u'}]",
          "/rows/0/references/0/kind: must be" },
        { "'title':'W'",
          A_REFERENCE("'url':'https://u'},{'kind':'issue','id':'i','title':'t',"
                      "'url':'https://v'"),
          "/rows/0/references/1/id: 'i' is there twice" },
        { "'id':'c1',", "'id':'c1','images':['19.06'],",
          "/columns/0/images/0: not an image of this table" },
        { "'source':'S'",
          "'source':'S','images':[{'name':'a','framework':'b'},"
          "{'name':'a','framework':'c'}]",
          "/images/1/name: 'a' is there twice" },
        { "'columns':[{'id':'c1',",
          "'images':[{'name':'a','framework':'b'}],"
          "'columns':[{'id':'c1','images':['a','a'],",
          "t.json: /columns/0/images/1: 'a' is there twice" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct err err;

        assert_null(parse(wrong[i].from, wrong[i].to, &err));
        assert_non_null(strstr(err.message, wrong[i].expected));
        assert_int_equal(err.code, ERR_INVALID);
    }
}

static struct catalogue *catalogue_with(const char *variant)
{
    struct catalogue *c = catalogue_new();
    struct err err;
    json_t *list = json_pack(
        "[{s:s,s:i,s:s,s:s,s:s,s:[{s:s,s:s,s:s,s:s,s:n,s:s,s:b}],s:[{s:s,s:s}],s:[s],s:s,"
        "s:n,"
        "s:n}]",
        "workload", "w", "version", 1, "backend", "cpu", "title", "", "summary", "",
        "variants", "name", variant, "summary", "", "models", "", "algorithm", "",
        "claim", "subject", "model", "control", 1, "sizes", "name", "small",
        "description", "", "dtypes", "float32", "weight_sum", "", "loss", "no_control");

    assert_int_equal(catalogue_add(c, list, &err), ERR_OK);
    json_decref(list);
    return c;
}

static void test_check_against_the_catalogue(void **state)
{
    struct err err;
    struct profile_table *t = parse(NULL, NULL, &err);
    struct catalogue *right = catalogue_with("unordered");
    struct catalogue *wrong = catalogue_with("ordered");
    struct catalogue *empty = catalogue_new();

    (void)state;
    assert_int_equal(profile_check(t, right, false, &err), ERR_OK);
    assert_int_equal(profile_check(t, empty, true, &err), ERR_OK);
    assert_int_equal(profile_check(t, empty, false, &err), ERR_INVALID);
    assert_non_null(strstr(err.message, "t.json: /rows/0/workload: "));
    assert_int_equal(profile_check(t, wrong, true, &err), ERR_INVALID);
    assert_non_null(strstr(err.message, "t.json: /rows/0/cells/c1/model/none"));
    catalogue_free(right);
    catalogue_free(wrong);
    catalogue_free(empty);
    profile_free(t);
}

static void test_built_in_tables(void **state)
{
    struct err err;
    struct profile_set *set = NULL;
    const struct profile_table *t;

    (void)state;
    assert_int_equal(profile_set_load(NULL, &set, &err), ERR_OK);
    t = profile_set_find(set, "documents-2020");
    assert_non_null(t);
    /* Nine sources: a row of the subject of each, one of our model of each, and one of
       cuDNN below what TensorFlow chooses of it. */
    assert_int_equal(t->row_count, 19);
    assert_int_equal(t->column_count, 5);
    assert_null(profile_set_find(set, "documents-1999"));
    profile_set_free(set);
}

static void test_catalogue_conflict_and_nearest(void **state)
{
    struct catalogue *c = catalogue_with("unordered");
    struct catalogue *other = catalogue_with("ordered");
    const char *const names[] = { "conv_wgrad", "maxpool_bwd", "ctc_loss" };
    json_t *list = json_array();
    struct err err;

    (void)state;
    json_array_append(list, (json_t *)catalogue_at(c, 0)->json);
    assert_int_equal(catalogue_add(c, list, &err), ERR_OK);
    assert_int_equal(catalogue_count(c), 1);
    json_array_append(list, (json_t *)catalogue_at(other, 0)->json);
    assert_int_equal(catalogue_add(c, list, &err), ERR_CONFLICT);
    json_array_append_new(list, json_integer(3));
    assert_int_equal(catalogue_add(other, list, &err), ERR_CONFLICT);
    assert_non_null(strstr(err.message, "two workers describe workload w on cpu"));
    json_object_set_new(json_array_get(list, 0), "external", json_true());
    assert_int_equal(catalogue_add(other, list, &err), ERR_CONFLICT);
    assert_non_null(strstr(err.message, "two configurations describe workload w on cpu"));
    assert_string_equal(nearest_name("conv_wgrd", names, 3), "conv_wgrad");
    assert_string_equal(nearest_name("ctcloss", names, 3), "ctc_loss");
    assert_null(nearest_name("softmax", names, 3));
    json_decref(list);
    catalogue_free(c);
    catalogue_free(other);
}

/* Adds a workload with variants a and b, of which a has the members MORE. */
static enum err_code add_related(const char *more, struct err *err)
{
    struct catalogue *from = catalogue_with("a");
    struct catalogue *c = catalogue_new();
    json_t *list = json_pack("[o]", json_deep_copy(catalogue_at(from, 0)->json));
    json_t *variants = json_object_get(json_array_get(list, 0), "variants");
    json_t *b = json_deep_copy(json_array_get(variants, 0));
    json_t *members = json_loads(more, 0, NULL);
    enum err_code code;

    json_object_set_new(b, "name", json_string("b"));
    json_array_append_new(variants, b);
    json_object_update(json_array_get(variants, 0), members);
    code = catalogue_add(c, list, err);
    json_decref(members);
    json_decref(list);
    catalogue_free(from);
    catalogue_free(c);
    return code;
}

static void test_a_variant_equals_or_differs_from_another(void **state)
{
    static const char another[] =
        "catalogue: /0/variants/0 must equal or differ from one "
        "other variant of w";
    static const struct {
        const char *members, *message;
    } wrong[] = {
        { "{\"equals\":\"a\"}", another },
        { "{\"equals\":\"c\"}", another },
        { "{\"equals\":7}", "catalogue: /0/variants/0/equals must be a text" },
        { "{\"differs\":\"a\"}", another },
        { "{\"differs\":\"\"}", another },
        { "{\"differs\":[]}", "catalogue: /0/variants/0/differs must be a text" },
        { "{\"equals\":\"b\",\"differs\":\"b\"}", another },
    };
    struct err err;

    (void)state;
    assert_int_equal(add_related("{\"equals\":\"b\"}", &err), ERR_OK);
    assert_int_equal(add_related("{\"differs\":\"b\"}", &err), ERR_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(add_related(wrong[i].members, &err), ERR_PROTOCOL);
        assert_string_equal(err.message, wrong[i].message);
    }
}

/* The kinds of two controls and of a variant that is none, where A and B are what the
 * controls name, and OWN what the variant names ("null": nothing). */
static void check_kinds(const char *a, const char *b, const char *own,
                        const char *expected_a, const char *expected_b,
                        const char *expected_own)
{
    const char *const named[] = { a, b, own };
    struct catalogue *from = catalogue_with("x");
    struct catalogue *c = catalogue_new();
    json_t *list = json_pack("[o]", json_deep_copy(catalogue_at(from, 0)->json));
    json_t *variants = json_array();
    const struct catalogue_variant *v;
    struct err err;

    for (int i = 0; i < 3; i++) {
        json_t *variant = json_deep_copy(
            json_array_get(json_object_get(catalogue_at(from, 0)->json, "variants"), 0));

        json_object_set_new(variant, "name", json_stringn(&"abc"[i], 1));
        json_object_set_new(variant, "control", json_boolean(i < 2));
        json_object_set_new(variant, "kind",
                            strcmp(named[i], "null") == 0 ? json_null()
                                                          : json_string(named[i]));
        json_array_append_new(variants, variant);
    }
    json_object_set_new(json_array_get(list, 0), "variants", variants);
    assert_int_equal(catalogue_add(c, list, &err), ERR_OK);
    v = catalogue_at(c, 0)->variants;
    assert_string_equal(v[0].kind, expected_a);
    assert_string_equal(v[1].kind, expected_b);
    assert_string_equal(v[2].kind, expected_own);
    json_decref(list);
    catalogue_free(from);
    catalogue_free(c);
}

/* A variant is exposed to what all controls are; where they differ, to a race. */
static void test_controls_have_kinds(void **state)
{
    struct err err;

    (void)state;
    check_kinds("null", "null", "null", "race", "race", "race");
    check_kinds("entropy", "entropy", "null", "entropy", "entropy", "entropy");
    check_kinds("entropy", "null", "null", "entropy", "race", "race");
    check_kinds("entropy", "choice", "null", "entropy", "choice", "race");
    check_kinds("entropy", "choice", "choice", "entropy", "choice", "choice");
    assert_int_equal(add_related("{\"kind\":\"luck\"}", &err), ERR_PROTOCOL);
    assert_non_null(strstr(err.message, "catalogue: /0/variants/0/kind"));
}

/* No cell of one backend is green for what another says of its controls. */
static void test_both_backends_have_the_same_controls(void **state)
{
    struct catalogue *c = catalogue_with("unordered");
    json_t *twin = json_deep_copy(catalogue_at(c, 0)->json);
    json_t *variant = json_array_get(json_object_get(twin, "variants"), 0);
    json_t *list = json_pack("[O]", twin);
    struct err err;

    (void)state;
    json_object_set_new(twin, "backend", json_string("cuda"));
    json_object_set_new(variant, "control", json_false());
    assert_int_equal(catalogue_add(c, list, &err), ERR_CONFLICT);
    json_object_set_new(variant, "control", json_true());
    json_object_set_new(variant, "kind", json_string("choice"));
    assert_int_equal(catalogue_add(c, list, &err), ERR_CONFLICT);
    json_object_set_new(variant, "kind", json_null());
    json_object_set_new(twin, "no_control", json_string("it cannot race"));
    assert_int_equal(catalogue_add(c, list, &err), ERR_CONFLICT);
    assert_non_null(strstr(err.message, "workload w has other controls"));
    assert_int_equal(catalogue_count(c), 1);
    json_object_set_new(twin, "version", json_integer(2)); /* another case */
    assert_int_equal(catalogue_add(c, list, &err), ERR_OK);
    assert_int_equal(catalogue_count(c), 2);
    json_decref(list);
    json_decref(twin);
    catalogue_free(c);
}

/* The first thing that is wrong with a cell is told, whatever comes after it. */
static void test_a_recipe_that_is_missing_is_told_before_extra_ones(void **state)
{
    static const char text[] =
        "{\"table\":\"t\",\"title\":\"T\",\"source\":\"S\",\"recipes\":["
        "{\"name\":\"TDO\",\"title\":\"do\"},{\"name\":\"FE\",\"title\":\"more\"}],"
        "\"columns\":[{\"id\":\"c\",\"title\":\"C\",\"recipes\":[\"TDO\"],"
        "\"extra_recipes\":[\"FE\"]}],\"rows\":["
        "{\"workload\":\"v\",\"title\":\"V\",\"subject\":\"model\",\"cells\":{\"c\":{"
        "\"model\":{\"none\":\"a\",\"FE\":\"b\"}}}}]}";
    struct profile_table *t = NULL;
    struct err err;

    (void)state;
    assert_int_equal(profile_parse("t.json", text, sizeof text - 1, &t, &err),
                     ERR_INVALID);
    assert_string_equal(err.message, "t.json: /rows/0/cells/c/model: no variant for TDO");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_extra_recipes),
        cmocka_unit_test(test_a_row_for_each_subject),
        cmocka_unit_test(test_a_row_without_a_workload),
        cmocka_unit_test(test_a_workload_of_several_rows),
        cmocka_unit_test(test_footnotes_are_numbered),
        cmocka_unit_test(test_so_many_libraries),
        cmocka_unit_test(test_images),
        cmocka_unit_test(test_refused_with_pointer),
        cmocka_unit_test(test_check_against_the_catalogue),
        cmocka_unit_test(test_built_in_tables),
        cmocka_unit_test(test_catalogue_conflict_and_nearest),
        cmocka_unit_test(test_a_variant_equals_or_differs_from_another),
        cmocka_unit_test(test_controls_have_kinds),
        cmocka_unit_test(test_both_backends_have_the_same_controls),
        cmocka_unit_test(test_a_recipe_that_is_missing_is_told_before_extra_ones),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
