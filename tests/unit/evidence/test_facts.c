/* What environments differ in, in words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/evidence/facts.h"

static json_t *facts_of(const char *text)
{
    json_t *facts = json_loads(text, 0, NULL);

    assert_non_null(facts);
    return facts;
}

static void check_change(const char *from, const char *to, const char *expected)
{
    json_t *before = facts_of(from);
    json_t *after = facts_of(to);
    char *text = facts_change(before, after);

    assert_string_equal(text, expected);
    free(text);
    json_decref(before);
    json_decref(after);
}

static void test_exactly_what_differs_is_named(void **state)
{
    (void)state;
    check_change("{\"driver\":\"550\",\"threads\":2,\"zlib\":\"1\"}",
                 "{\"driver\":\"560\",\"threads\":2,\"zlib\":\"1\"}", "driver 550 → 560");
    check_change("{\"zlib\":\"1\",\"threads\":1,\"cudnn\":\"8\"}",
                 "{\"zlib\":\"2\",\"threads\":2,\"cudnn\":\"9\"}",
                 "threads 1 → 2, cuDNN 8 → 9, zlib 1 → 2");
    check_change("{\"zlib\":\"1\",\"alpha\":1}", "{\"zlib\":\"2\",\"alpha\":2}",
                 "alpha 1 → 2, zlib 1 → 2");
    check_change("{\"driver\":\"550\"}", "{\"driver\":\"550\"}", "");
    check_change("{}", "{\"zlib\":\"1.2.13\"}", "no zlib → zlib 1.2.13");
    check_change("{\"threads\":1}", "{\"threads\":\"1\"}", "threads 1 → 1");
}

static void test_what_is_missing_differs(void **state)
{
    (void)state;
    check_change("{}", "{\"cudnn\":\"9.1\"}", "no cuDNN → cuDNN 9.1");
    check_change("{\"model\":\"A\"}", "{}", "A → no model");
}

static void test_a_hash_is_cut_where_it_still_tells(void **state)
{
    (void)state;
    check_change("{\"worker_build\":\"aaaaaaaaaaaa\"}",
                 "{\"worker_build\":\"bbbbbbbbbbbb\"}", "worker aaaaaaaa → bbbbbbbb");
    check_change("{\"worker_build\":\"aaaaaaaaaaaa\"}",
                 "{\"worker_build\":\"aaaaaaaabbbb\"}",
                 "worker aaaaaaaaaaaa → aaaaaaaabbbb");
}

static void test_what_the_first_two_lack(void **state)
{
    json_t *none = facts_of("{}");
    json_t *one = facts_of("{\"cudnn\":\"9\"}");
    const json_t *const all[] = { none, none, one };
    json_t *names = facts_names(all, 3, true);

    (void)state;
    assert_int_equal(json_array_size(names), 1);
    json_decref(names);
    json_decref(none);
    json_decref(one);
}

static void test_titles_of_columns(void **state)
{
    json_t *a = facts_of("{\"backend\":\"cpu\",\"driver\":\"1\",\"cudnn\":\"8\"}");
    json_t *b = facts_of("{\"backend\":\"cpu\",\"driver\":\"2\",\"cudnn\":\"8\"}");
    json_t *c = facts_of("{\"backend\":\"cpu\",\"driver\":\"2\"}");
    const json_t *const all[] = { a, b, c };
    json_t *names = facts_names(all, 3, true);
    json_t *same = facts_names(all, 3, false);
    char *first = facts_title(a, names);
    char *last = facts_title(c, names);
    char *common = facts_title(c, same);

    (void)state;
    assert_string_equal(first, "driver 1 · cuDNN 8");
    assert_string_equal(last, "driver 2 · no cuDNN");
    assert_string_equal(common, "cpu");
    json_decref(names);
    names = facts_names(all, 2, true);
    free(first);
    first = facts_title(a, names);
    assert_string_equal(first, "driver 1");
    free(first);
    free(last);
    free(common);
    json_decref(names);
    json_decref(same);
    json_decref(a);
    json_decref(b);
    json_decref(c);
}

/* Facts have a word of their own, or are the name in small letters. */
static void test_versions_of_frameworks(void **state)
{
    static const struct {
        const char *name, *version;
    } cases[] = {
        { "PyTorch", "2.11.0" }, { "JAX", NULL },     { "ONNX Runtime", "1.23" },
        { "NumPy", "2.4" },      { "Num", NULL },     { "NumPyro", NULL },
        { "torch", "2.11.0" },   { "TensorX", NULL }, { "threads", NULL },
    };
    json_t *facts = facts_of(
        "{\"torch\":\"2.11.0\",\"onnxruntime\":\"1.23\","
        "\"numpy\":\"2.4\",\"threads\":2}");

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *version = facts_version(facts, cases[i].name);

        if (cases[i].version) {
            assert_string_equal(version, cases[i].version);
        } else {
            assert_null(version);
        }
    }
    json_decref(facts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exactly_what_differs_is_named),
        cmocka_unit_test(test_what_is_missing_differs),
        cmocka_unit_test(test_a_hash_is_cut_where_it_still_tells),
        cmocka_unit_test(test_what_the_first_two_lack),
        cmocka_unit_test(test_titles_of_columns),
        cmocka_unit_test(test_versions_of_frameworks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
