/* Every registered workload of the CPU, at its small size: right within the bound of its
 * reference, complete, and, where a variant promises an order, bit-equal for any number
 * of threads.  Each run has its own process, as in production. */
#include "workloads/worker/run.h"

#include <math.h>
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

#include "workloads/worker/args.h"
#include "workloads/worker/check.h"
#include "workloads/worker/registry.h"
#include "workloads/worker/resume.h"

enum { ITERATIONS = 2 };

/* Digests of a build with a sanitizer are those of the one without: what it can see, the
 * run of a variant that is compared with its reference shows. */
#ifdef __SANITIZE_ADDRESS__
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

static struct registry registry;

/* What a run's process reports. */
struct report {
    struct digest digests[ITERATIONS];
    int64_t failed;       /* output elements out of bound */
    int64_t elements;     /* of all outputs */
    int64_t zeros_failed; /* outputs that would be out of bound if they were all zero */
    int64_t outputs;
};

typedef void case_cb(const struct workload *workload,
                     const struct workload_variant *variant, enum dtype dtype);

static int end_early_cb(struct run *run, const char *outcome, const char *cause)
{
    fprintf(stderr, "%s/%s ended %s: %s\n", run->workload->name, run->variant->name,
            outcome, cause);
    return 1;
}

static void output_check(struct run *run, int index, struct report *report)
{
    struct tensor *output = &run->outputs[index];
    size_t elements = (size_t)tensor_elements(output);
    double *expected = run_host_alloc(elements * sizeof *expected);
    double *bound = run_host_alloc(elements * sizeof *bound);

    run->workload->reference(run, run->inputs, output, expected, bound);
    report->elements += (int64_t)elements;
    report->failed +=
        check_compare(output->dtype, output->data, (int64_t)elements, expected, bound)
            .failed;
    memset(output->data, 0, elements * dtype_bytes(output->dtype));
    report->zeros_failed +=
        check_compare(output->dtype, output->data, (int64_t)elements, expected, bound)
            .failed > 0;
    report->outputs++;
    free(bound);
    free(expected);
}

/* cmocka catches these: a child that crashes would go on with the tests that follow. */
static void crashes_end_the_process(void)
{
    static const int signals[] = { SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS };

    for (int i = 0; i < COUNT_OF(signals); i++) {
        signal(signals[i], SIG_DFL);
    }
}

/* What a test does to the last output, which is then the only one that is checked. */
static void (*alter)(struct tensor *output);

/* As reprod-launch does (launch_main.c): what a killed process of this number left. */
static void forget_former_process(void)
{
    char path[64];

    snprintf(path, sizeof path, "/dev/shm/__KMP_REGISTERED_LIB_%d_%u", (int)getpid(),
             (unsigned)getuid());
    unlink(path);
}

static void child_main(const struct args *args, bool check, int to)
{
    static struct run run;
    struct report report = { .failed = 0 };

    forget_former_process();
    crashes_end_the_process();
    run_on_early_end(end_early_cb);
    run_init(&run, args, backend_linked(stderr));
    run_prepare(&run);
    for (int i = 0; i < ITERATIONS; i++) {
        run_compute(&run, i);
        report.digests[i] = run_output_digest(&run);
    }
    if (alter) {
        alter(&run.outputs[run.output_count - 1]);
    }
    for (int i = alter ? run.output_count - 1 : 0; check && i < run.output_count; i++) {
        output_check(&run, i, &report);
    }
    run_finish(&run);
    _exit(write(to, &report, sizeof report) == sizeof report ? 0 : 1);
}

static struct report run_case(const struct workload *workload,
                              const struct workload_variant *variant, enum dtype dtype,
                              int threads, bool check)
{
    struct args args = { .command = ARGS_RUN,
                         .workload = workload,
                         .variant = variant,
                         .dtype = dtype,
                         .seed = 1,
                         .iterations = ITERATIONS,
                         .threads = threads };
    struct report report;
    int ends[2], status;
    pid_t child;

    for (int i = 0; i < workload->size_count; i++) {
        if (strcmp(workload->sizes[i].name, "small") == 0) {
            args.size = &workload->sizes[i];
        }
    }
    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        child_main(&args, check, ends[1]);
    }
    close(ends[1]);
    if (read(ends[0], &report, sizeof report) != sizeof report) {
        fail_msg("%s/%s with %d threads reported nothing", workload->name, variant->name,
                 threads);
    }
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    return report;
}

static void each_case(case_cb *test)
{
    int cases = 0;

    for (int w = 0; w < registry.count; w++) {
        const struct workload *workload = registry.workloads[w];

        /* Library workloads have tests/system/test_onednn.py. */
        if (strncmp(workload->name, "onednn_", 7) == 0) {
            continue;
        }
        for (int v = 0; v < workload->variant_count; v++) {
            for (int d = 0; d < workload->dtype_count; d++, cases++) {
                test(workload, &workload->variants[v], workload->dtypes[d]);
            }
        }
    }
    assert_true(cases >= 12);
}

static void check_order(const struct workload *workload,
                        const struct workload_variant *variant, enum dtype dtype)
{
    static const int threads[] = { 1, 2, 4, 8 };
    struct digest first = { 0, 0 };

    if (variant->control || SANITIZED) {
        return;
    }
    for (int t = 0; t < COUNT_OF(threads); t++) {
        struct report report = run_case(workload, variant, dtype, threads[t], false);

        if (t == 0) {
            first = report.digests[0];
        }
        for (int i = 0; i < ITERATIONS; i++) {
            if (!digest_equal(report.digests[i], first)) {
                fail_msg("%s/%s: %d threads, iteration %d differ from 1 thread",
                         workload->name, variant->name, threads[t], i);
            }
        }
    }
}

static void test_ordered_is_bit_equal_for_any_threads(void **state)
{
    (void)state;
    each_case(check_order);
}

/* The poison differs between iterations, and one thread has one order: an element that is
 * not written shows.  (Where the order is fixed, check_order sees it.) */
static void check_complete(const struct workload *workload,
                           const struct workload_variant *variant, enum dtype dtype)
{
    struct report report;

    if (!variant->control || SANITIZED ||
        strcmp(workload->name, "uninitialized_read") == 0) {
        return; /* not writing is the subject of the latter */
    }
    report = run_case(workload, variant, dtype, 1, false);
    if (!digest_equal(report.digests[0], report.digests[1])) {
        fail_msg("%s/%s leaves an element of its output unwritten", workload->name,
                 variant->name);
    }
}

static void test_every_element_is_written(void **state)
{
    (void)state;
    each_case(check_complete);
}

static void check_reference(const struct workload *workload,
                            const struct workload_variant *variant, enum dtype dtype)
{
    struct report report = run_case(workload, variant, dtype, SANITIZED ? 8 : 2, true);

    if (report.failed > 0) {
        fail_msg("%s/%s: %lld of %lld elements are out of bound", workload->name,
                 variant->name, (long long)report.failed, (long long)report.elements);
    }
    if (report.zeros_failed < report.outputs) {
        fail_msg("%s/%s: the bound is so wide that zeros would pass", workload->name,
                 variant->name);
    }
}

static void test_every_variant_is_within_the_bound(void **state)
{
    (void)state;
    each_case(check_reference);
}

enum { LOADER_SLOT = 4 * 200 + 3, LOADER_DRAWN = 4 }; /* a brightness; four an item */

static void leave_as_it_is(struct tensor *drawn)
{
    (void)drawn;
}

static void draw_another(struct tensor *drawn)
{
    int32_t *number = (int32_t *)drawn->data + LOADER_SLOT;

    *number = *number % 256 + 1;
}

static void draw_the_same_for_all(struct tensor *drawn)
{
    for (int64_t i = 3; i < tensor_elements(drawn); i += LOADER_DRAWN) {
        ((int32_t *)drawn->data)[i] = 128;
    }
}

static void draw_none(struct tensor *drawn)
{
    ((int32_t *)drawn->data)[LOADER_SLOT] = 1 << 30;
}

static int64_t failed_when(const char *variant_name, void (*altered)(struct tensor *))
{
    const struct workload *workload = registry_find(&registry, "data_loader", "cpu");
    int64_t failed = -1;

    alter = altered;
    for (int v = 0; v < workload->variant_count; v++) {
        if (strcmp(workload->variants[v].name, variant_name) == 0) {
            failed =
                run_case(workload, &workload->variants[v], workload->dtypes[0], 2, true)
                    .failed;
        }
    }
    alter = NULL;
    return failed;
}

/* Each of the generator's numbers is drawn once; where two pipelines share it, each in
 * its order. */
static void test_a_number_that_was_not_handed_out(void **state)
{
    (void)state;
    assert_int_equal(failed_when("unordered", leave_as_it_is), 0);
    assert_int_equal(failed_when("validation_shares", leave_as_it_is), 0);
    assert_true(failed_when("validation_shares", draw_another) > 0);
    assert_true(failed_when("validation_shares", draw_the_same_for_all) > 0);
    assert_true(failed_when("unordered", draw_the_same_for_all) > 0);
    assert_true(failed_when("unordered", draw_none) > 0);
    assert_true(failed_when("validation_shares", draw_none) > 0);
    assert_true(failed_when("one_thread", draw_another) > 0);
}

static struct digest digest_of(const char *name, const char *variant_name)
{
    const struct workload *workload = registry_find(&registry, name, "cpu");

    assert_non_null(workload);
    for (int v = 0; v < workload->variant_count; v++) {
        const struct workload_variant *variant = &workload->variants[v];

        if (strcmp(variant->name, variant_name) == 0) {
            return run_case(workload, variant, workload->dtypes[0], 2, false).digests[0];
        }
    }
    fail_msg("%s has no variant %s", name, variant_name);
    return (struct digest){ 0, 0 };
}

/* A digest is comparable only within one variant: another solution is another order. */
static void test_work_arounds_have_an_order_of_their_own(void **state)
{
    (void)state;
    assert_false(digest_equal(digest_of("bias_add_bwd", "ordered"),
                              digest_of("bias_add_bwd", "patched")));
    assert_false(digest_equal(digest_of("reduce_sum", "ordered"),
                              digest_of("reduce_sum", "matmul")));
}

static void test_the_first_variant_is_the_control(void **state)
{
    static const char *const names[] = { "bias_add_bwd", "conv_wgrad", "ctc_loss",
                                         "maxpool_bwd", "reduce_sum" };

    (void)state;
    for (int i = 0; i < COUNT_OF(names); i++) {
        const struct workload *workload = registry_find(&registry, names[i], "cpu");

        assert_non_null(workload);
        assert_string_equal(workload->variants[0].name, "unordered");
        assert_true(workload->variants[0].control);
        assert_string_equal(workload->variants[1].name, "ordered");
        assert_false(workload->variants[1].control);
    }
}

static int registry_open(void **state)
{
    (void)state;
    return registry_init_linked(&registry, stderr);
}

static int registry_close(void **state)
{
    (void)state;
    registry_release(&registry);
    return 0;
}

/* What run_resume starts is this program. */
static int resume(int argc, char **argv)
{
    const struct backend *backend = backend_linked(stderr);
    char message[ARGS_MESSAGE_SIZE];
    struct args args;

    if (registry_open(NULL) != 0 ||
        !worker_args_parse(&registry, backend, argc, argv, &args, message)) {
        return 1;
    }
    return resume_run(&args, backend);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ordered_is_bit_equal_for_any_threads),
        cmocka_unit_test(test_every_element_is_written),
        cmocka_unit_test(test_every_variant_is_within_the_bound),
        cmocka_unit_test(test_a_number_that_was_not_handed_out),
        cmocka_unit_test(test_work_arounds_have_an_order_of_their_own),
        cmocka_unit_test(test_the_first_variant_is_the_control),
    };

    if (argc > 1) {
        return resume(argc, argv);
    }
    return cmocka_run_group_tests(tests, registry_open, registry_close);
}
