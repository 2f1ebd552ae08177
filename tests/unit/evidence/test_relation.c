/* Which variants are related, and how two cases of them compare. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <jansson.h>

#include "daemon/evidence/catalogue.h"
#include "daemon/evidence/relation.h"

static void add_workload(struct catalogue *catalogue, const char *name,
                         const char *backend)
{
    static const char *const variants[][3] = { { "resumed", "equals", "whole" },
                                               { "less", "differs", "whole" },
                                               { "whole", NULL, NULL },
                                               { "alone", NULL, NULL } };
    json_t *list = json_array();
    json_t *json;
    struct err err;

    for (int i = 0; i < 4; i++) {
        json_t *v =
            json_pack("{s:s,s:s,s:s,s:s,s:s,s:b}", "name", variants[i][0], "summary", "",
                      "models", "", "algorithm", "", "subject", "model", "control", 0);

        if (variants[i][1]) {
            json_object_set_new(v, variants[i][1], json_string(variants[i][2]));
        }
        json_array_append_new(list, v);
    }
    json =
        json_pack("[{s:s,s:i,s:s,s:s,s:s,s:o,s:[{s:s,s:s}],s:[s],s:s,s:s}]", "workload",
                  name, "version", 1, "backend", backend, "title", "", "summary", "",
                  "variants", list, "sizes", "name", "small", "description", "", "dtypes",
                  "float32", "weight_sum", "", "no_control", "x");
    assert_int_equal(catalogue_add(catalogue, json, &err), ERR_OK);
    json_decref(json);
}

static void test_relations_are_of_one_workload(void **state)
{
    struct catalogue *catalogue = catalogue_new();
    struct relations relations;
    const struct relation *r;

    (void)state;
    add_workload(catalogue, "v", "cpu");
    add_workload(catalogue, "w", "cpu");
    add_workload(catalogue, "w", "cuda"); /* says the same: one relation */
    relations_init(&relations, catalogue);
    assert_int_equal(relations.count, 4);
    r = relations_find(&relations, "w", "resumed");
    assert_non_null(r);
    assert_true(r->equal);
    assert_string_equal(r->workload, "w");
    assert_string_equal(r->other, "whole");
    r = relations_find(&relations, "v", "less");
    assert_non_null(r);
    assert_false(r->equal);
    assert_string_equal(r->workload, "v");
    assert_null(relations_find(&relations, "w", "whole"));
    assert_null(relations_find(&relations, "x", "less"));
    assert_null(relations_find(NULL, "w", "less"));
    assert_true(relations_involve(&relations, "w", "less"));
    assert_true(relations_involve(&relations, "v", "whole"));
    assert_false(relations_involve(&relations, "w", "alone"));
    assert_false(relations_involve(&relations, "x", "whole"));
    relations_release(&relations);
    assert_int_equal(relations.count, 0);
    assert_false(relations_involve(&relations, "w", "less"));
    assert_null(relation_seen_name(RELATION_UNKNOWN));
    assert_string_equal(relation_seen_name(RELATION_EQUAL), "equal");
    assert_string_equal(relation_seen_name(RELATION_DIFFERENT), "different");
    relations_init(&relations, NULL);
    assert_int_equal(relations.count, 0);
    catalogue_free(catalogue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_relations_are_of_one_workload),
    };

    return cmocka_run_group_tests_name("relation", tests, NULL, NULL);
}
