/* What the representations of digest classes say. */
#include "tests/unit/evidence/classes_fixture.h"

#include "api/render/classes.h"
#include "daemon/base/text.h"

static struct classes_view view_of(struct classes *classes, bool of_devices)
{
    if (of_devices) {
        classes_merge_hosts(classes);
    }
    classes_settle(classes, of_devices);
    return (struct classes_view){ .classes = classes,
                                  .of_devices = of_devices,
                                  .environment = "e",
                                  .environment_title = "the environment",
                                  .count = classes->column_count,
                                  .as_of_ms = INT64_C(1800000000000) };
}

static char *text_of(const struct classes_view *view)
{
    struct buf text = BUF_INIT;
    size_t length;

    classes_text(view, &text);
    return buf_detach(&text, &length);
}

static void check_width(const char *text)
{
    char *copy = xstrdup(text);
    char *rest = copy;

    for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
        size_t length = strlen(line);

        if (text_width(line) > 118 || (length > 0 && line[length - 1] == ' ')) {
            fail_msg("%d columns: '%s'", text_width(line), line);
        }
    }
    free(copy);
}

static void check_said(const char *text, const char *part, int times)
{
    int found = 0;

    for (text = strstr(text, part); text; text = strstr(text + 1, part)) {
        found++;
    }
    assert_int_equal(found, times);
}

/* Only what is reproducible now has a bare letter. */
static void test_only_green_is_a_bare_letter(void **state)
{
    struct classes classes = fixture_classes(VERDICT_COUNT);
    struct classes_view view;

    (void)state;
    for (int v = 0; v < VERDICT_COUNT; v++) {
        fixture_add(&classes, v, 0, 5, (enum verdict)v);
        fixture_add(&classes, v, 1, 0, (enum verdict)v);
    }
    view = view_of(&classes, false);
    for (int v = 0; v < VERDICT_COUNT; v++) {
        char mark[CLASS_MARK_SIZE];

        classes_mark(&view, &classes.rows[0], v, mark);
        assert_int_equal(strcmp(mark, "A") == 0, v == VERDICT_REPRODUCIBLE);
        assert_int_equal(mark[0], 'A');
        classes_mark(&view, &classes.rows[1], v, mark);
        assert_null(strchr(mark, 'A'));
        assert_true(mark[0] != '\0');
    }
    classes_release(&classes);
}

static void test_sixty_environments_fit_a_terminal(void **state)
{
    struct classes classes = fixture_classes(60);
    struct classes_view view;
    char *text;

    (void)state;
    for (int n = 0; n < 200; n++) {
        for (int c = 0; c < 60; c++) {
            fixture_add(&classes, c, n, n % 10 ? 1 : 1 + c / 20, VERDICT_REPRODUCIBLE);
        }
    }
    view = view_of(&classes, false);
    text = text_of(&view);
    check_width(text);
    assert_non_null(strstr(text, "200 cases in 60 environments; 20 of them"));
    assert_non_null(strstr(text, "\n  60 driver 541.1"));
    assert_non_null(strstr(text, "Shared   cuda\n"));
    /* What is the same everywhere is said once; what differs in each block of columns. */
    check_said(text, "\nThe same in columns 1 to 60\nworkload_000\n", 1);
    check_said(text, "workload_001\n", 1);
    check_said(text, "workload_002\n", 1 + 4);
    free(text);
    view.differing = true;
    text = text_of(&view);
    assert_null(strstr(text, "workload_001\n"));
    assert_non_null(strstr(text, "workload_000\n"));
    free(text);
    classes_release(&classes);
}

/* 500 hosts of 8 devices; in one host one device is wrong. */
static void test_four_thousand_devices(void **state)
{
    struct classes classes = fixture_devices(4000, 8);
    struct classes_view view;
    char *text;

    (void)state;
    for (int n = 0; n < 200; n++) {
        for (int d = 0; d < 4000; d++) {
            fixture_add(&classes, d, n, n == 17 && d == 1234 ? 9 : 1,
                        VERDICT_REPRODUCIBLE);
        }
    }
    view = view_of(&classes, true);
    assert_int_equal(view.count, 499 + 8);
    view.differing = true;
    view.first = 150;
    view.count = 100;
    text = text_of(&view);
    check_width(text);
    assert_non_null(strstr(text, "200 cases on 4000 devices; 1 of them"));
    assert_non_null(strstr(text, "GPU-1234 on host-0154"));
    assert_non_null(strstr(text, "host-0153: 8 devices, NVIDIA H100"));
    assert_non_null(strstr(text, " B"));
    free(text);
    classes_release(&classes);
}

static void test_a_column_measured_in_part_says_so(void **state)
{
    struct classes classes = fixture_devices(2, 2);
    struct classes_view view;
    char mark[CLASS_MARK_SIZE];

    (void)state;
    fixture_add(&classes, 0, 0, 1, VERDICT_REPRODUCIBLE);
    fixture_add(&classes, 0, 1, 1, VERDICT_REPRODUCIBLE);
    fixture_add(&classes, 1, 1, 1, VERDICT_REPRODUCIBLE);
    view = view_of(&classes, true);
    assert_int_equal(view.count, 1);
    classes_mark(&view, &classes.rows[0], 0, mark);
    assert_string_equal(mark, "A°");
    classes_mark(&view, &classes.rows[1], 0, mark);
    assert_string_equal(mark, "A");
    classes_release(&classes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_green_is_a_bare_letter),
        cmocka_unit_test(test_sixty_environments_fit_a_terminal),
        cmocka_unit_test(test_four_thousand_devices),
        cmocka_unit_test(test_a_column_measured_in_part_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
