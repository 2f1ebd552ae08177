/* Whose computation it is: words, names and versions. */
#include "daemon/evidence/subject.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/array.h"

static void test_words(void **state)
{
    static const char *const words[] = { "model", "library", "framework" };

    (void)state;
    for (int i = 0; i < SUBJECT_COUNT; i++) {
        enum subject subject = SUBJECT_COUNT;

        assert_string_equal(subject_word((enum subject)i), words[i]);
        assert_string_equal(subject_words[i], words[i]);
        assert_int_equal(subject_parse(words[i], &subject), 0);
        assert_int_equal(subject, i);
    }
    assert_null(subject_words[SUBJECT_COUNT]);
    for (int i = 0; i < 2; i++) {
        enum subject subject = SUBJECT_LIBRARY;

        assert_int_equal(subject_parse(i ? "Model" : "", &subject), -1);
        assert_int_equal(subject, SUBJECT_LIBRARY);
    }
}

/* The fact has the name in lower case, without spaces; PyTorch's has its package's. */
static void test_versions(void **state)
{
    static const struct {
        const char *name, *version, *text;
    } cases[] = {
        { "cuDNN", "9.12.0", "cuDNN 9.12.0" },
        { "ONNX Runtime", "1.20", "ONNX Runtime 1.20" },
        { "PyTorch", "2.8", "PyTorch 2.8" },
        { "Torch", "2.8", "Torch 2.8" },
        { "NCCL", NULL, "NCCL" },
    };
    json_t *facts = json_pack("{s:s,s:s,s:s,s:s}", "cudnn", "9.12.0", "onnxruntime",
                              "1.20", "torch", "2.8", "pytorch", "not this");
    char longest[SUBJECT_NAME_SIZE], longer[SUBJECT_NAME_SIZE + 1];
    char text[SUBJECT_TEXT_SIZE];

    (void)state;
    for (int i = 0; i < COUNT_OF(cases); i++) {
        const char *version = subject_version(cases[i].name, facts);

        if (cases[i].version) {
            assert_string_equal(version, cases[i].version);
        } else {
            assert_null(version);
        }
        subject_text(SUBJECT_LIBRARY, cases[i].name, facts, text);
        assert_string_equal(text, cases[i].text);
    }
    memset(longest, 'n', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    json_object_set_new(facts, longest, json_string("7"));
    assert_string_equal(subject_version(longest, facts), "7");
    snprintf(longer, sizeof longer, "%sX", longest);
    assert_null(subject_version(longer, facts)); /* not the version of its beginning */
    assert_null(subject_version("cuDNN", NULL));
    subject_text(SUBJECT_MODEL, "", facts, text);
    assert_string_equal(text, "our models");
    json_decref(facts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_versions),
    };

    return cmocka_run_group_tests_name("subject", tests, NULL, NULL);
}
