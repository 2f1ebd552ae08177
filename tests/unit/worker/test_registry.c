/* The registry sorts what it is given, finds it again, and names every broken promise. */
#include "tests/unit/worker/registry_fixture.h"

#include "daemon/base/nearest.h"

static void test_accepts_a_sound_workload(void **state)
{
    struct sample s;
    char text[4096] = "";
    const struct workload *list[] = { &s.workload };

    (void)state;
    sample_init(&s, "conv_2d");
    assert_int_equal(defects_of(list, 1, text), 0);
    assert_string_equal(text, "");
}

static void test_a_workload_without_dtypes_has_float32(void **state)
{
    struct sample a;
    struct registry registry;
    const struct workload *list[] = { &a.workload };

    (void)state;
    sample_init(&a, "alpha");
    a.workload.dtype_count = 0;
    assert_int_equal(registry_init(&registry, list, list + 1, stderr), 0);
    assert_int_equal(registry.workloads[0]->dtype_count, 1);
    assert_int_equal(registry.workloads[0]->dtypes[0], DTYPE_FLOAT32);
    registry_release(&registry);
}

static void test_a_workload_without_backend_is_for_the_cpu(void **state)
{
    struct sample cpu, again, cuda;
    struct registry registry;
    char text[4096] = "";
    const struct workload *list[] = { &cpu.workload, &cuda.workload, &again.workload };

    (void)state;
    sample_init(&cpu, "alpha");
    cpu.workload.backend = NULL;
    sample_init_cuda(&cuda, "alpha");
    assert_int_equal(registry_init(&registry, list, list + 2, stderr), 0);
    assert_string_equal(registry_find(&registry, "alpha", "cpu")->backend, "cpu");
    assert_ptr_equal(registry_find(&registry, "alpha", "cuda")->title,
                     cpu.workload.title);
    registry_release(&registry);
    sample_init(&again, "alpha");
    assert_int_equal(defects_of(list, 3, text), 1);
    assert_string_equal(text, "workload 'alpha': registered twice for backend 'cpu'\n");
}

static void test_sorts_skips_padding_and_finds(void **state)
{
    struct sample a, b, c;
    struct registry registry;
    const struct workload *list[] = { &b.workload, NULL, &c.workload, &a.workload, NULL };

    (void)state;
    sample_init(&a, "alpha");
    sample_init(&b, "beta");
    sample_init(&c, "alpha");
    c.workload.backend = "cuda";
    assert_int_equal(registry_init(&registry, list, list + 5, stderr), 0);
    assert_int_equal(registry.count, 3);
    assert_ptr_equal(registry.workloads[0], &a.workload);
    assert_string_equal(registry.workloads[1]->backend, "cuda");
    assert_ptr_equal(registry.workloads[2], &b.workload);
    assert_ptr_equal(registry_find(&registry, "alpha", "cuda"), registry.workloads[1]);
    assert_ptr_equal(registry_find(&registry, "beta", "cpu"), &b.workload);
    assert_null(registry_find(&registry, "beta", "cuda"));
    assert_null(registry_find(&registry, "bet", "cpu"));
    assert_string_equal(registry_nearest(&registry, "betta"), "beta");
    registry_release(&registry);
}

static void test_relations_are_between_two_variants_that_repeat(void **state)
{
    static const struct {
        struct workload_relation list[2];
        const char *defect;
    } cases[] = {
        { { { "ordered", "ordinary", true } }, "compares 'ordered' with 'ordinary'" },
        { { { "ordered", "unordered", true } }, "compares 'ordered' with 'unordered'" },
        { { { "unordered", "ordered", true } }, "compares 'unordered' with 'ordered'" },
        { { { "ordered", "ordered", false } }, "compares 'ordered' with 'ordered'" },
        { { { "ordered", NULL, false } }, "compares 'ordered' with '(null)'" },
        { { { "ordered", "unordered", true }, { "ordered", "unordered", false } },
          "compares 'ordered' with more than one variant" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sample s;
        char text[4096] = "";
        const struct workload *list[] = { &s.workload };

        sample_init(&s, "conv_2d");
        s.workload.relations = cases[i].list;
        s.workload.relation_count = cases[i].list[1].variant ? 2 : 1;
        assert_true(defects_of(list, 1, text) > 0);
        assert_non_null(strstr(text, cases[i].defect));
    }
}

static void test_empty_registry(void **state)
{
    struct registry registry;

    (void)state;
    assert_int_equal(registry_init(&registry, NULL, NULL, stderr), 0);
    assert_int_equal(registry.count, 0);
    assert_null(registry_nearest(&registry, "x"));
    registry_release(&registry);
}

static void test_refuses_the_same_name_twice(void **state)
{
    struct sample a, b;
    char text[4096] = "";
    const struct workload *list[] = { &a.workload, &b.workload };

    (void)state;
    sample_init(&a, "alpha");
    sample_init(&b, "alpha");
    assert_int_equal(defects_of(list, 2, text), 1);
    assert_string_equal(text, "workload 'alpha': registered twice for backend 'cpu'\n");
}

static void test_names(void **state)
{
    static const char *const bad[] = { "",    "Conv", "2d", "_x",
                                       "a-b", "a b",  "é",  "conv_wgrad\n" };
    struct sample s;
    char long_name[66];

    (void)state;
    for (int i = 0; i < COUNT_OF(bad); i++) {
        sample_init(&s, bad[i]);
        expect_defect(&s, "is not [a-z][a-z0-9_]*");
    }
    memset(long_name, 'a', sizeof long_name);
    long_name[65] = '\0';
    sample_init(&s, long_name);
    expect_defect(&s, "is not [a-z][a-z0-9_]*");
    sample_init(&s, NULL);
    expect_defect(&s, "name '(null)'");
}

/* Changes a sound sample S, and expects that defect. */
#define BREAK(change, message)                                                           \
    do {                                                                                 \
        sample_init(&s, "w");                                                            \
        change;                                                                          \
        expect_defect(&s, message);                                                      \
    } while (0)

static void test_required_parts(void **state)
{
    struct sample s;

    (void)state;
    BREAK(s.workload.version = 0, "version is 0");
    BREAK(s.workload.backend = "gpu", "backend is 'gpu'");
    BREAK(s.workload.title = NULL, "has no title");
    BREAK(s.workload.summary = "", "has no summary");
    BREAK(s.workload.weight_sum = NULL, "weight_sum");
    BREAK(s.workload.setup = NULL, "has no setup hook");
    BREAK(s.workload.reference = NULL, "has no reference hook");
    BREAK(s.workload.references = NULL, "there are no references");
    BREAK(s.workload.relation_count = 1, "there are no relations");
    BREAK(s.references[0].title = "", "lacks its id or its title");
    BREAK(s.references[0].kind = NULL, "reference 'i' is of no kind: '(null)'");
    BREAK(s.references[1].kind = "Issue", "reference 'j' is of no kind: 'Issue'");
    BREAK(s.references[1].url = "http://u", "reference 'j' has no https address");
    BREAK(s.references[1].state = "open", "reference 'j' has no state and month: 'open'");
    BREAK(s.references[1].id = "i", "reference 'i' is there twice");
}

static void test_variants(void **state)
{
    struct sample s;

    (void)state;
    BREAK(s.workload.variant_count = 0, "has 0 variants");
    BREAK(s.workload.variants = NULL, "has 0 variants");
    BREAK(s.workload.variant_count = 65, "has 65 variants");
    BREAK(s.variants[1].name = "unordered", "two variants are named 'unordered'");
    BREAK(s.variants[1].name = "Ordered", "variant name 'Ordered'");
    BREAK(s.variants[1].summary = NULL, "'ordered' has no summary");
    BREAK(s.variants[1].models = NULL, "does not say what it models");
    BREAK(s.variants[1].algorithm = NULL, "has no algorithm");
    BREAK(s.variants[1].compute = NULL, "has no compute hook");
    BREAK(s.variants[1].claim = "maybe", "claims 'maybe'");
    BREAK(s.variants[0].kind = "luck", "'unordered' has kind 'luck'");
    BREAK(s.variants[1].kind = "entropy",
          "'ordered' is exposed to entropy, as no control");
}

static void test_control(void **state)
{
    struct sample s;
    char text[4096] = "";
    const struct workload *list[] = { &s.workload };

    (void)state;
    BREAK(s.variants[0].control = false, "no variant is a control");
    BREAK(s.workload.no_control = "because", "has a control, and no_control says");
    sample_init(&s, "w");
    s.variants[0].kind = s.variants[1].kind = "entropy";
    assert_int_equal(defects_of(list, 1, text), 0);
    sample_init(&s, "w");
    s.variants[0].control = false;
    s.workload.no_control = "because";
    assert_int_equal(defects_of(list, 1, text), 0);
}

static void test_sizes_and_dtypes(void **state)
{
    struct sample s;

    (void)state;
    BREAK(s.workload.size_count = 0, "has 0 sizes");
    BREAK(s.sizes[0].name = "medium", "no size is named \"small\"");
    BREAK(s.sizes[1].name = "small", "two sizes are named 'small'");
    BREAK(s.sizes[1].description = NULL, "size 'large' has no description");
    BREAK(s.workload.dtype_count = -1, "has -1 dtypes");
    BREAK(s.workload.dtype_count = 8, "has 8 dtypes");
    BREAK(s.workload.dtypes[1] = DTYPE_FLOAT32, "float32 is listed twice");
    BREAK(s.workload.dtypes[1] = DTYPE_COUNT, "dtype number 7 does not exist");
}

static void test_names_every_defect_on_its_own_line(void **state)
{
    struct sample s;
    char text[4096] = "";
    int lines = 0;
    const struct workload *list[] = { &s.workload };

    (void)state;
    sample_init(&s, "w");
    s.workload.version = -1;
    s.workload.title = NULL;
    s.variants[1].compute = NULL;
    assert_int_equal(defects_of(list, 1, text), 3);
    for (const char *c = text; *c; c++) {
        lines += *c == '\n';
    }
    assert_int_equal(lines, 3);
}

static void test_linked_workloads_are_sound(void **state)
{
    struct registry registry;

    (void)state;
    assert_int_equal(registry_init_linked(&registry, stderr), 0);
    for (int i = 1; i < registry.count; i++) {
        assert_true(
            strcmp(registry.workloads[i - 1]->name, registry.workloads[i]->name) <= 0);
    }
    registry_release(&registry);
}

static void test_spelling(void **state)
{
    const char *const names[] = { "conv_wgrad", "conv_dgrad", "ctc_loss" };
    char huge[1000];

    (void)state;
    assert_string_equal(nearest_of("conv_wgrd", names, 3), "conv_wgrad");
    assert_string_equal(nearest_of("ctcloss", names, 3), "ctc_loss");
    assert_string_equal(nearest_of("", names, 3), "ctc_loss");
    assert_null(nearest_of("x", names, 0));
    memset(huge, 'c', sizeof huge);
    huge[999] = '\0';
    assert_non_null(nearest_of(huge, names, 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepts_a_sound_workload),
        cmocka_unit_test(test_relations_are_between_two_variants_that_repeat),
        cmocka_unit_test(test_a_workload_without_dtypes_has_float32),
        cmocka_unit_test(test_a_workload_without_backend_is_for_the_cpu),
        cmocka_unit_test(test_sorts_skips_padding_and_finds),
        cmocka_unit_test(test_empty_registry),
        cmocka_unit_test(test_refuses_the_same_name_twice),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_required_parts),
        cmocka_unit_test(test_variants),
        cmocka_unit_test(test_control),
        cmocka_unit_test(test_sizes_and_dtypes),
        cmocka_unit_test(test_names_every_defect_on_its_own_line),
        cmocka_unit_test(test_linked_workloads_are_sound),
        cmocka_unit_test(test_spelling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
