/* A run's tensors are what the contract says: inputs a pure function of their names and
 * the seed, outputs poisoned, limits named.  On the CPU backend. */
#include "workloads/worker/run.h"

#include <math.h>
#include <omp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "workloads/instruments/half.h"

enum { N = 20000 }; /* enough for inputs to be made by more than one thread */

static const int64_t vector[] = { N };

static jmp_buf ended;
static char end_outcome[32];
static char end_cause[256];

static int on_end(struct run *run, const char *outcome, const char *cause)
{
    (void)run;
    snprintf(end_outcome, sizeof end_outcome, "%s", outcome);
    snprintf(end_cause, sizeof end_cause, "%s", cause);
    longjmp(ended, 1);
}

static void setup(struct run *run)
{
    run_input(run, "x", run->dtype, 1, vector, FILL_UNIFORM, 0);
    run_output(run, "y", run->dtype, 1, vector);
}

static int seen_threads;

static void compute(struct run *run)
{
    seen_threads = omp_get_max_threads();
    memcpy(run->outputs[0].data, run->inputs[0].data, N * dtype_bytes(run->dtype));
}

static struct workload_variant variant = { .name = "v",
                                           .algorithm = "a",
                                           .compute = compute };
static struct workload workload = { .name = "w", .variants = &variant, .setup = setup };

static void init(struct run *run, enum dtype dtype, uint64_t seed, int threads)
{
    struct args args = { .workload = &workload,
                         .variant = &variant,
                         .dtype = dtype,
                         .seed = seed,
                         .threads = threads,
                         .iterations = 3 };
    run_init(run, &args, backend_linked(stderr));
    run_on_early_end(on_end);
    run->backend->open(run);
}

/* The tensors' memory is the process's; a test gives it back for the leak checker. */
static void release(struct run *run)
{
    for (int i = 0; i < run->input_count; i++) {
        free(run->inputs[i].data);
    }
    for (int i = 0; i < run->output_count; i++) {
        free(run->outputs[i].data);
    }
}

static struct digest input_digest(const char *name, enum dtype dtype, enum fill fill,
                                  int64_t limit, uint64_t seed, int threads)
{
    struct run run;
    struct digest digest;
    init(&run, dtype, seed, threads);
    run_input(&run, name, dtype, 1, vector, fill, limit);
    digest = run_input_digest(&run);
    release(&run);
    return digest;
}

static void test_inputs_do_not_depend_on_threads(void **state)
{
    (void)state;
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        struct digest one = input_digest("x", dtype, FILL_INDEX, 200, 1, 1);
        assert_true(digest_equal(one, input_digest("x", dtype, FILL_INDEX, 200, 1, 2)));
        assert_true(digest_equal(one, input_digest("x", dtype, FILL_INDEX, 200, 1, 5)));
    }
}

static void test_inputs_depend_on_names_seed_and_fill(void **state)
{
    struct digest d;

    (void)state;
    d = input_digest("x", DTYPE_FLOAT32, FILL_UNIFORM, 0, 1, 1);
    assert_true(digest_equal(d, input_digest("x", DTYPE_FLOAT32, FILL_UNIFORM, 0, 1, 1)));
    assert_false(
        digest_equal(d, input_digest("x", DTYPE_FLOAT32, FILL_UNIFORM, 0, 2, 1)));
    assert_false(
        digest_equal(d, input_digest("z", DTYPE_FLOAT32, FILL_UNIFORM, 0, 1, 1)));
    assert_false(digest_equal(d, input_digest("x", DTYPE_FLOAT32, FILL_WIDE, 0, 1, 1)));
    workload.name = "other";
    assert_false(
        digest_equal(d, input_digest("x", DTYPE_FLOAT32, FILL_UNIFORM, 0, 1, 1)));
    workload.name = "w";
}

static double float_at(const struct tensor *t, int i)
{
    switch (t->dtype) {
    case DTYPE_FLOAT16:
        return f32_from_f16(((uint16_t *)t->data)[i]);
    case DTYPE_BFLOAT16:
        return f32_from_bf16(((uint16_t *)t->data)[i]);
    case DTYPE_FLOAT64:
        return ((double *)t->data)[i];
    default:
        return ((float *)t->data)[i];
    }
}

static void test_ranges(void **state)
{
    static const enum dtype dtypes[] = { DTYPE_FLOAT32, DTYPE_FLOAT64, DTYPE_FLOAT16,
                                         DTYPE_BFLOAT16 };

    (void)state;
    for (int d = 0; d < COUNT_OF(dtypes); d++) {
        struct run run;
        struct tensor *u;
        struct tensor *w;
        struct tensor *i;
        int negative, large, tiny;
        init(&run, dtypes[d], 3, 2);
        u = run_input(&run, "u", dtypes[d], 1, vector, FILL_UNIFORM, 0);
        w = run_input(&run, "w", dtypes[d], 1, vector, FILL_WIDE, 0);
        i = run_input(&run, "i", dtypes[d], 1, vector, FILL_INDEX, 7);
        negative = 0;
        large = 0;
        tiny = 0;
        for (int k = 0; k < N; k++) {
            double magnitude;
            double index;

            assert_in_range((int)(float_at(u, k) * 1000) + 1000, 0, 2000);
            magnitude = fabs(float_at(w, k));
            assert_true(magnitude >= 0x1p-12 && magnitude <= 0x1p13);
            negative += float_at(w, k) < 0;
            large += magnitude > 0x1p11;
            tiny += magnitude < 0x1p-10;
            index = float_at(i, k);
            assert_true(index == floor(index) && index >= 0 && index < 7);
        }
        assert_in_range(negative, N / 3, 2 * N / 3);
        assert_true(large > N / 50 && tiny > N / 50);
        release(&run);
    }
}

static void test_half_inputs_are_the_rounded_float32_ones(void **state)
{
    struct run single, half;

    (void)state;
    init(&single, DTYPE_FLOAT32, 9, 1);
    init(&half, DTYPE_FLOAT16, 9, 1);
    run_input(&single, "x", DTYPE_FLOAT32, 1, vector, FILL_WIDE, 0);
    run_input(&half, "x", DTYPE_FLOAT16, 1, vector, FILL_WIDE, 0);
    for (int i = 0; i < N; i++) {
        uint16_t wanted = f16_from_f32(((float *)single.inputs[0].data)[i]);
        assert_int_equal(((uint16_t *)half.inputs[0].data)[i], wanted);
    }
    release(&single);
    release(&half);
}

static void test_computes_on_a_warm_team_of_that_size(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 4; threads++) {
        struct run run;
        init(&run, DTYPE_FLOAT32, 1, threads);
        run_prepare(&run);
        assert_true(run_compute(&run, 0) >= 0);
        assert_int_equal(seen_threads, threads);
        assert_int_equal(run_output_elements(&run), N);
        assert_int_equal(run_output_bytes(&run), N * 4);
        assert_true(run.backend->exact_sum(&run, &run.inputs[0]) ==
                    run.backend->exact_sum(&run, &run.outputs[0]));
        release(&run);
    }
}

static void compute_nothing(struct run *run)
{
    (void)run;
}

static void test_unwritten_outputs_change(void **state)
{
    struct run run;
    struct digest seen[3];

    (void)state;
    init(&run, DTYPE_FLOAT32, 1, 1);
    variant.compute = compute_nothing;
    run_prepare(&run);
    for (int i = 0; i < 3; i++) {
        run_compute(&run, i);
        seen[i] = run_output_digest(&run);
        assert_true(isnan(run.loss));
    }
    assert_false(digest_equal(seen[0], seen[1]));
    assert_false(digest_equal(seen[1], seen[2]));
    variant.compute = compute;
    release(&run);
}

/* Forks: returns the digest of an output that a fresh process left unwritten.  The parent
 * must not have computed yet, or both children inherit its pattern. */
static uint64_t unwritten_in_a_process(void)
{
    int ends[2];
    uint64_t hi = 0;
    pid_t pid;
    assert_int_equal(pipe(ends), 0);
    pid = fork();
    if (pid == 0) {
        struct run run;
        init(&run, DTYPE_FLOAT32, 1, 1);
        variant.compute = compute_nothing;
        run_prepare(&run);
        run_compute(&run, 0);
        hi = run_output_digest(&run).hi;
        _exit(write(ends[1], &hi, sizeof hi) == sizeof hi ? 0 : 1);
    }
    assert_int_equal(read(ends[0], &hi, sizeof hi), sizeof hi);
    waitpid(pid, NULL, 0);
    close(ends[0]);
    close(ends[1]);
    return hi;
}

static void test_unwritten_outputs_change_between_processes(void **state)
{
    (void)state;
    assert_true(unwritten_in_a_process() != unwritten_in_a_process());
}

static void test_scratch_is_aligned_and_poisoned(void **state)
{
    struct run run;

    (void)state;
    init(&run, DTYPE_FLOAT32, 1, 1);
    for (size_t bytes = 0; bytes < 300; bytes += 99) {
        unsigned char *scratch = run_alloc(&run, bytes);
        assert_int_equal((uintptr_t)scratch % 64, 0);
        for (size_t i = 0; i < bytes; i++) {
            assert_int_equal(scratch[i], 0xa5);
        }
        free(scratch);
    }
}

static void test_input_values(void **state)
{
    struct run run;
    int32_t values[N];
    struct tensor *t;

    (void)state;
    for (int i = 0; i < N; i++) {
        values[i] = -i;
    }
    init(&run, DTYPE_FLOAT32, 1, 1);
    t = run_input_values(&run, "v", DTYPE_INT32, 1, vector, values);
    assert_memory_equal(t->data, values, sizeof values);
    assert_true(t->data != (void *)values);
    assert_int_equal(run.input_count, 1);
    release(&run);
}

static void expect_early_end(void (*hook)(struct run *), const char *outcome,
                             const char *cause)
{
    struct run run;
    end_outcome[0] = '\0';
    init(&run, DTYPE_FLOAT32, 1, 1);
    if (setjmp(ended) == 0) {
        hook(&run);
        fail_msg("the run went on instead of ending as %s", outcome);
    }
    assert_string_equal(end_outcome, outcome);
    assert_non_null(strstr(end_cause, cause));
}

static void want_too_much(struct run *run)
{
    int64_t shape[] = { (int64_t)1 << 50, 1024 };
    run_output(run, "z", DTYPE_FLOAT32, 2, shape);
}

static void want_the_impossible(struct run *run)
{
    int64_t shape[] = { INT64_MAX, INT64_MAX };
    run_output(run, "z", DTYPE_FLOAT32, 2, shape);
}

static void be_unsupported(struct run *run)
{
    run_unsupported(run, "no %s", "way");
}

static void want_infra(struct run *run)
{
    run_infra(run, "error %d", 999);
}

static const char *refuse(const struct run *run)
{
    (void)run;
    return "not here";
}

static void setup_must_not_run(struct run *run)
{
    (void)run;
    fail();
}

static void prepare_refused(struct run *run)
{
    variant.unsupported = refuse;
    workload.setup = setup_must_not_run;
    run_prepare(run);
}

static void test_early_ends(void **state)
{
    (void)state;
    expect_early_end(want_too_much, "out_of_memory", "4611686018427387904 bytes");
    expect_early_end(want_the_impossible, "out_of_memory", "2^63 bytes");
    expect_early_end(be_unsupported, "unsupported", "no way");
    expect_early_end(want_infra, "infra", "error 999");
    expect_early_end(prepare_refused, "unsupported", "not here");
    variant.unsupported = NULL;
    workload.setup = setup;
}

static void same_name_twice(struct run *run)
{
    run_input(run, "x", DTYPE_FLOAT32, 1, vector, FILL_UNIFORM, 0);
    run_input(run, "x", DTYPE_FLOAT32, 1, vector, FILL_UNIFORM, 0);
}

static void uniform_integers(struct run *run)
{
    run_input(run, "x", DTYPE_INT32, 1, vector, FILL_UNIFORM, 0);
}

static void inexact_indices(struct run *run)
{
    run_input(run, "x", DTYPE_BFLOAT16, 1, vector, FILL_INDEX, 257);
}

static void no_indices(struct run *run)
{
    run_input(run, "x", DTYPE_INT32, 1, vector, FILL_INDEX, 0);
}

static void empty_extent(struct run *run)
{
    int64_t shape[] = { 4, 0 };
    run_output(run, "x", DTYPE_INT32, 2, shape);
}

static void no_outputs(struct run *run)
{
    workload.setup = compute_nothing;
    run_prepare(run);
}

/* HOOK breaks the contract: the process must abort, and never go on. */
static void expect_abort(void (*hook)(struct run *))
{
    pid_t pid = fork();
    int status = 0;
    if (pid == 0) {
        struct run run;
        signal(SIGABRT, SIG_DFL);
        if (!freopen("/dev/null", "w", stderr)) {
            _exit(1);
        }
        init(&run, DTYPE_FLOAT32, 1, 1);
        hook(&run);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void test_defects_abort(void **state)
{
    (void)state;
    expect_abort(same_name_twice);
    expect_abort(uniform_integers);
    expect_abort(inexact_indices);
    expect_abort(no_indices);
    expect_abort(empty_extent);
    expect_abort(no_outputs);
}

static void test_devices(void **state)
{
    const struct backend *backend;
    char message[BACKEND_MESSAGE_SIZE] = "";

    (void)state;
    backend = backend_linked(stderr);
    assert_string_equal(backend->name, "cpu");
    assert_true(strncmp(backend->device_id(), "cpu:", 4) == 0);
    assert_true(backend->select(NULL, message));
    assert_true(backend->select(backend->device_id(), message));
    assert_false(backend->select("cpu:", message));
    assert_non_null(strstr(message, backend->device_id()));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unwritten_outputs_change_between_processes),
        cmocka_unit_test(test_defects_abort),
        cmocka_unit_test(test_inputs_do_not_depend_on_threads),
        cmocka_unit_test(test_inputs_depend_on_names_seed_and_fill),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_half_inputs_are_the_rounded_float32_ones),
        cmocka_unit_test(test_computes_on_a_warm_team_of_that_size),
        cmocka_unit_test(test_unwritten_outputs_change),
        cmocka_unit_test(test_scratch_is_aligned_and_poisoned),
        cmocka_unit_test(test_input_values),
        cmocka_unit_test(test_early_ends),
        cmocka_unit_test(test_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
