/* What the registry takes from a workload of the CPU for its twin on CUDA. */
#include "tests/unit/worker/registry_fixture.h"

static void test_cuda_has_from_cpu_what_it_leaves_empty(void **state)
{
    struct sample cpu, cuda;
    struct registry registry;
    const struct workload *w;
    const struct workload *list[] = { &cuda.workload, &cpu.workload };

    (void)state;
    sample_init(&cpu, "alpha");
    cpu.workload.loss = "l";
    cpu.workload.teardown = other_setup;
    sample_init_cuda(&cuda, "alpha");
    assert_int_equal(registry_init(&registry, list, list + 2, stderr), 0);
    w = registry_find(&registry, "alpha", "cuda");
    assert_non_null(w);
    assert_int_equal(w->version, 3);
    assert_string_equal(w->backend, "cuda");
    assert_int_equal(w->variant_count, 2);
    assert_memory_equal(w->variants, cuda.variants, sizeof cuda.variants);
    assert_ptr_equal(w->setup, other_setup);
    assert_null(w->teardown); /* that belongs to the other setup */
    assert_ptr_equal(w->title, cpu.workload.title);
    assert_ptr_equal(w->summary, cpu.workload.summary);
    assert_ptr_equal(w->weight_sum, cpu.workload.weight_sum);
    assert_ptr_equal(w->loss, cpu.workload.loss);
    assert_ptr_equal(w->reference, reference);
    assert_ptr_equal(w->sizes, cpu.sizes);
    assert_int_equal(w->size_count, 2);
    assert_int_equal(w->dtype_count, 2);
    assert_int_equal(w->dtypes[1], DTYPE_FLOAT64);
    assert_ptr_equal(w->references, cpu.references);
    assert_int_equal(w->reference_count, 2);
    assert_ptr_equal(registry_find(&registry, "alpha", "cpu"), &cpu.workload);
    registry_release(&registry);
}

static void test_cuda_variants_say_what_their_namesakes_say(void **state)
{
    struct sample cpu, cuda;
    struct registry registry;
    const struct workload *list[] = { &cpu.workload, &cuda.workload };
    char text[4096] = "";
    const struct workload *w;

    (void)state;
    sample_init(&cpu, "alpha");
    sample_init_cuda(&cuda, "alpha");
    cpu.variants[0].models = "a model";
    cuda.variants[0].models = NULL;
    cuda.variants[0].summary = NULL;
    cuda.variants[1].models = "own";
    assert_int_equal(registry_init(&registry, list, list + 2, stderr), 0);
    w = registry_find(&registry, "alpha", "cuda");
    assert_string_equal(w->variants[0].models, "a model");
    assert_ptr_equal(w->variants[0].summary, cpu.variants[0].summary);
    assert_string_equal(w->variants[1].models, "own");
    registry_release(&registry);
    cuda.variants[0].name = "another";
    assert_int_equal(defects_of(list, 2, text), 2);
    assert_non_null(strstr(text, "variant 'another' does not say what it models"));
    sample_init_cuda(&cuda, "alpha");
    cuda.variants[0].algorithm = NULL; /* the same words promise the same bits */
    assert_int_equal(defects_of(list, 2, text), 1);
}

static void test_cuda_has_the_setup_of_cpu(void **state)
{
    struct sample cpu, cuda;
    struct registry registry;
    const struct workload *list[] = { &cpu.workload, &cuda.workload };
    const struct workload *w;

    (void)state;
    sample_init(&cpu, "alpha");
    sample_init_cuda(&cuda, "alpha");
    cpu.workload.teardown = other_setup;
    cuda.workload.setup = NULL;
    assert_int_equal(registry_init(&registry, list, list + 2, stderr), 0);
    w = registry_find(&registry, "alpha", "cuda");
    assert_ptr_equal(w->setup, cpu.workload.setup);
    assert_ptr_equal(w->teardown, other_setup);
    registry_release(&registry);
}

static void test_cuda_has_the_relations_of_cpu(void **state)
{
    static const struct workload_relation same = { "ordered", "unordered", true };
    struct sample cpu, cuda;
    struct registry registry;
    const struct workload *list[] = { &cpu.workload, &cuda.workload };

    (void)state;
    sample_init(&cpu, "alpha");
    sample_init_cuda(&cuda, "alpha");
    cpu.variants[0].control = cuda.variants[0].control = false;
    cpu.workload.no_control = cuda.workload.no_control = "nothing varies";
    cpu.workload.relations = &same;
    cpu.workload.relation_count = 1;
    assert_int_equal(registry_init(&registry, list, list + 2, stderr), 0);
    assert_ptr_equal(registry_find(&registry, "alpha", "cuda")->relations, &same);
    assert_int_equal(registry_find(&registry, "alpha", "cuda")->relation_count, 1);
    registry_release(&registry);
}

/* Else a control would be of one kind on a CPU and of another on a GPU. */
static void test_cuda_has_the_kinds_of_cpu(void **state)
{
    struct sample cpu, cuda;
    struct registry registry;
    const struct workload *list[] = { &cpu.workload, &cuda.workload };

    (void)state;
    sample_init(&cpu, "alpha");
    sample_init_cuda(&cuda, "alpha");
    cpu.variants[0].kind = "choice";
    assert_int_equal(registry_init(&registry, list, list + 2, stderr), 0);
    assert_string_equal(registry_find(&registry, "alpha", "cuda")->variants[0].kind,
                        "choice");
    assert_null(registry_find(&registry, "alpha", "cuda")->variants[1].kind);
    registry_release(&registry);
}

static void test_cuda_keeps_what_it_has(void **state)
{
    struct sample cpu, cuda;
    struct registry registry;
    const struct workload *w;
    const struct workload *list[] = { &cpu.workload, &cuda.workload };

    (void)state;
    sample_init(&cpu, "alpha");
    sample_init_cuda(&cuda, "alpha");
    cuda.workload.summary = "own";
    cuda.workload.dtypes[0] = DTYPE_FLOAT16;
    cuda.workload.dtype_count = 1;
    cuda.workload.sizes = cuda.sizes;
    cuda.workload.size_count = 1;
    assert_int_equal(registry_init(&registry, list, list + 2, stderr), 0);
    w = registry_find(&registry, "alpha", "cuda");
    assert_string_equal(w->summary, "own");
    assert_int_equal(w->dtype_count, 1);
    assert_int_equal(w->dtypes[0], DTYPE_FLOAT16);
    assert_ptr_equal(w->sizes, cuda.sizes);
    assert_int_equal(w->size_count, 1);
    registry_release(&registry);
}

static void test_cuda_without_definition(void **state)
{
    struct sample cpu, cuda;
    char text[4096] = "";
    const struct workload *list[] = { &cpu.workload, &cuda.workload };

    (void)state;
    sample_init(&cpu, "alpha");
    sample_init_cuda(&cuda, "beta");
    assert_int_equal(defects_of(list, 2, text), 1);
    assert_non_null(strstr(text, "workload 'beta': backend \"cuda\" leaves parts"));
    sample_init(&cuda, "beta");
    cuda.workload.backend = "cuda";
    assert_int_equal(defects_of(list, 2, text), 0);
}

/* A defect of the definition is told once for each backend that has it. */
static void test_cuda_of_an_unsound_definition(void **state)
{
    struct sample cpu, cuda;
    char text[4096] = "";
    const struct workload *list[] = { &cpu.workload, &cuda.workload };

    (void)state;
    sample_init(&cpu, "alpha");
    cpu.workload.title = NULL;
    sample_init_cuda(&cuda, "alpha");
    assert_int_equal(defects_of(list, 2, text), 2);
    sample_init(&cpu, "alpha");
    cpu.workload.setup = cuda.workload.setup = NULL;
    assert_int_equal(defects_of(list, 2, text), 2);
    assert_string_equal(text,
                        "workload 'alpha': has no setup hook\n"
                        "workload 'alpha': has no setup hook\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuda_has_from_cpu_what_it_leaves_empty),
        cmocka_unit_test(test_cuda_variants_say_what_their_namesakes_say),
        cmocka_unit_test(test_cuda_has_the_setup_of_cpu),
        cmocka_unit_test(test_cuda_has_the_relations_of_cpu),
        cmocka_unit_test(test_cuda_has_the_kinds_of_cpu),
        cmocka_unit_test(test_cuda_keeps_what_it_has),
        cmocka_unit_test(test_cuda_without_definition),
        cmocka_unit_test(test_cuda_of_an_unsound_definition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
