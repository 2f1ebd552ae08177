/* The catalogue: what of a worker's list is refused, and what two backends must share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/array.h"
#include "daemon/evidence/catalogue.h"

/* A variant named NAME that has the members MORE, with ' for ". */
#define VARIANT(name, more)                                                              \
    "{'name':'" name "','summary':'','models':'','algorithm':''," more "}"
#define MODEL "'subject':'model','control':"

/* Adds workload w of BACKEND with these variants and, beside them, the members MORE. */
static enum err_code add(struct catalogue *c, const char *backend, const char *variants,
                         const char *more, struct err *err)
{
    char text[1024];
    json_t *list;
    enum err_code code;

    snprintf(text, sizeof text,
             "[{'workload':'w','version':1,'backend':'%s','title':'','summary':'',"
             "'variants':[%s],'sizes':[{'name':'small','description':''}],"
             "'dtypes':['float32'],'weight_sum':''%s}]",
             backend, variants, more);
    for (char *at = text; *at; at++) {
        *at = *at == '\'' ? '"' : *at;
    }
    list = json_loads(text, 0, NULL);
    assert_non_null(list);
    code = catalogue_add(c, list, err);
    json_decref(list);
    return code;
}

/* A library without a name is nobody, and a model with one would be somebody else. */
static void test_names_are_those_of_others(void **state)
{
    static const struct {
        const char *variant;
        bool good;
    } cases[] = {
        { VARIANT("v", MODEL "true"), true },
        { VARIANT("v", MODEL "true,'subject_name':null"), true },
        { VARIANT("v", MODEL "true,'subject_name':''"), true },
        { VARIANT("v", MODEL "true,'subject_name':'cuDNN'"), false },
        { VARIANT("v", "'subject':'library','control':true,'subject_name':'cuDNN'"),
          true },
        { VARIANT("v", "'subject':'library','control':true,'subject_name':''"), false },
        { VARIANT("v", "'subject':'library','control':true"), false },
        { VARIANT("v", "'subject':'framework','control':true"), false },
    };

    (void)state;
    for (int i = 0; i < COUNT_OF(cases); i++) {
        struct catalogue *c = catalogue_new();
        struct err err;
        enum err_code code = add(c, "cpu", cases[i].variant, "", &err);

        assert_int_equal(code, cases[i].good ? ERR_OK : ERR_PROTOCOL);
        assert_int_equal(catalogue_count(c), cases[i].good);
        if (!cases[i].good) {
            assert_string_equal(err.message,
                                "catalogue: /0/variants/0/subject_name: a library or "
                                "framework has a name, and a model has none");
        }
        catalogue_free(c);
    }
    catalogue_free(NULL);
}

/* A case has no backend: a control must be one on all of them, and of the same kind, and
 * the reason for none must be the same.  What only one of them has is its own. */
static void test_backends_share_controls(void **state)
{
    static const char none[] = ",'no_control':'nothing races'";
    static const char on_cpu[] =
        VARIANT("a", MODEL "true") "," VARIANT("b", MODEL "false");
    static const struct {
        const char *first, *first_more, *second, *second_more;
        bool good;
    } cases[] = {
        { on_cpu, "", on_cpu, "", true },
        { on_cpu, "", on_cpu, ",'loss':'x'", true },
        { on_cpu, none, on_cpu, none, true },
        { on_cpu, "", on_cpu, none, false },
        { on_cpu, none, on_cpu, "", false },
        { on_cpu, none, on_cpu, ",'no_control':'else'", false },
        { on_cpu, "", VARIANT("a", MODEL "true"), "", true },
        { VARIANT("a", MODEL "true"), "", on_cpu, "", true },
        { on_cpu, "", VARIANT("c", MODEL "true"), "", true },
        { on_cpu, "", VARIANT("a", MODEL "false"), "", false },
        { on_cpu, "", VARIANT("b", MODEL "true"), "", false },
        { on_cpu, "", VARIANT("a", MODEL "true,'kind':'entropy'"), "", false },
        { on_cpu, "", VARIANT("a", MODEL "true,'kind':'race'"), "", true },
        { on_cpu, "", VARIANT("b", MODEL "false,'kind':'poison'"), "", false },
    };

    (void)state;
    for (int i = 0; i < COUNT_OF(cases); i++) {
        struct catalogue *c = catalogue_new();
        struct err err;
        enum err_code code;

        assert_int_equal(add(c, "cpu", cases[i].first, cases[i].first_more, &err),
                         ERR_OK);
        code = add(c, "cuda", cases[i].second, cases[i].second_more, &err);
        if (code != (cases[i].good ? ERR_OK : ERR_CONFLICT)) {
            fail_msg("case %d: %d", i, code);
        }
        assert_int_equal(catalogue_count(c), 1 + cases[i].good);
        if (!cases[i].good) {
            assert_string_equal(err.message,
                                "workload w has other controls, or another reason for "
                                "none, on cuda than on cpu");
        }
        catalogue_free(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_are_those_of_others),
        cmocka_unit_test(test_backends_share_controls),
    };

    return cmocka_run_group_tests_name("catalogue", tests, NULL, NULL);
}
