/* The worker's command line: what is meant is understood, anything else is refused with a
 * message that helps. */
#include "workloads/worker/args.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct workload_variant variants[] = {
    { .name = "unordered", .control = true },
    { .name = "ordered" },
};
static const struct workload_size sizes[] = { { .name = "small" }, { .name = "large" } };
static const struct workload conv = {
    .name = "conv_wgrad",
    .backend = "cpu",
    .variants = variants,
    .variant_count = 2,
    .sizes = sizes,
    .size_count = 2,
    .dtypes = { DTYPE_FLOAT32, DTYPE_BFLOAT16 },
    .dtype_count = 2,
};
static const struct workload elsewhere = { .name = "gpu_only", .backend = "cuda" };
static void resume(struct run *run, int file)
{
    (void)run;
    (void)file;
}

static const struct workload resumable = {
    .name = "resumable",
    .backend = "cpu",
    .variants = variants,
    .variant_count = 2,
    .sizes = sizes,
    .size_count = 2,
    .dtypes = { DTYPE_FLOAT32 },
    .dtype_count = 1,
    .resume = resume,
};
static const struct workload *workloads[] = { &conv, &elsewhere, &resumable };
static const struct registry registry = { .workloads = workloads, .count = 3 };
static const struct backend backend = {
    .name = "cpu",
    .threads_default = 2,
    .threads_max = 256,
};

enum { WORDS_MAX = 32 };

/* Splits LINE at spaces (in place) and parses it. */
static bool parse(const char *line, struct args *ret_args, char *ret_message)
{
    static char text[1024];
    char *words[WORDS_MAX] = { (char *)"reprod-worker" };
    int count = 1;
    char *rest;
    snprintf(text, sizeof text, "%s", line);
    rest = text;
    for (char *word = strtok_r(text, " ", &rest); word;
         word = strtok_r(NULL, " ", &rest)) {
        words[count++] = word;
    }
    return worker_args_parse(&registry, &backend, count, words, ret_args, ret_message);
}

static void accept(const char *line, struct args *ret_args)
{
    char message[ARGS_MESSAGE_SIZE] = "";
    if (!parse(line, ret_args, message)) {
        fail_msg("'%s' was refused: %s", line, message);
    }
}

static void refuse(const char *line, const char *wanted)
{
    struct args args;
    char message[ARGS_MESSAGE_SIZE] = "";
    if (parse(line, &args, message)) {
        fail_msg("'%s' was accepted", line);
    }
    if (!strstr(message, wanted)) {
        fail_msg("'%s': wanted '%s' in '%s'", line, wanted, message);
    }
    assert_null(strchr(message, '\n'));
}

static void test_whole_request(void **state)
{
    struct args a;

    (void)state;
    accept(
        "--run --workload conv_wgrad --variant ordered --size large --dtype bfloat16 "
        "--seed 18446744073709551615 --iterations 1000 --threads 256 --device cpu:h",
        &a);
    assert_int_equal(a.command, ARGS_RUN);
    assert_ptr_equal(a.workload, &conv);
    assert_ptr_equal(a.variant, &variants[1]);
    assert_ptr_equal(a.size, &sizes[1]);
    assert_int_equal(a.dtype, DTYPE_BFLOAT16);
    assert_true(a.seed == UINT64_MAX);
    assert_int_equal(a.iterations, 1000);
    assert_int_equal(a.threads, 256);
    assert_string_equal(a.device, "cpu:h");
}

static void test_probes(void **state)
{
    struct args a;

    (void)state;
    accept("--run --workload conv_wgrad", &a);
    assert_false(probes_wanted(&a.probes));
    accept("--run --workload conv_wgrad --probes 0", &a);
    assert_false(probes_wanted(&a.probes));
    accept(
        "--run --workload conv_wgrad --probes 2 --probe-names conv* --probe-steps 0-7 "
        "--iterations 4 --capture 3:37:a:b",
        &a);
    assert_int_equal(a.probes.every, 2);
    assert_string_equal(a.probes.names, "conv*");
    assert_int_equal(a.probes.first_step, 0);
    assert_int_equal(a.probes.last_step, 7);
    assert_true(a.probes.capture);
    assert_int_equal(a.probes.capture_iteration, 3);
    assert_int_equal(a.probes.capture_step, 37);
    assert_string_equal(a.probes.capture_place, "a:b");
    refuse("--run --workload conv_wgrad --probes all", "not a number of steps");
    refuse("--run --workload conv_wgrad --probes -1", "not a number of steps");
    refuse("--run --workload conv_wgrad --probe-names x", "--probes asks for none");
    refuse("--run --workload conv_wgrad --probes 0 --probe-steps 1-2", "'--probe-steps'");
    refuse("--run --workload conv_wgrad --probes 1 --probe-steps 2-1", "two numbers");
    refuse("--run --workload conv_wgrad --probes 1 --probe-steps 2", "two numbers");
    refuse("--run --workload conv_wgrad --probes 1 --probe-steps 1-2x", "two numbers");
    refuse("--run --workload conv_wgrad --iterations 1 --capture 5:0:a", "below 1");
    refuse("--run --workload conv_wgrad --capture 0:0:", "ITERATION:STEP:PLACE");
    refuse("--run --workload conv_wgrad --capture 0:a", "ITERATION:STEP:PLACE");
    refuse("--check --workload conv_wgrad --probes 1", "for --run and --resume only");
    accept("--resume --workload resumable --probes 1 --iterations 3", &a);
    assert_int_equal(a.probes.every, 1);
}

static void test_checked(void **state)
{
    struct args a;

    (void)state;
    accept("--run --workload conv_wgrad", &a);
    assert_int_equal(a.check_seconds, 0);
    accept("--run --workload conv_wgrad --checked 300", &a);
    assert_int_equal(a.check_seconds, 300);
    assert_false(a.has_passed);
    accept(
        "--run --workload conv_wgrad --checked 300"
        " --passed 00112233445566778899aabbccddeeff",
        &a);
    assert_true(a.has_passed);
    assert_true(a.passed.hi == 0x0011223344556677 && a.passed.lo == 0x8899aabbccddeeff);
    refuse("--run --workload conv_wgrad --checked 300 --passed 0011", "32 hex digits");
    refuse("--run --workload conv_wgrad --passed 00112233445566778899aabbccddeeff",
           "for --checked only");
    refuse("--check --workload conv_wgrad --passed 00112233445566778899aabbccddeeff",
           "for --run only");
    refuse("--resume --workload conv_wgrad --passed 00112233445566778899aabbccddeeff",
           "for --run only");
    refuse("--run --workload conv_wgrad --checked 0", "in 1 .. 3600");
    refuse("--run --workload conv_wgrad --checked 3601", "in 1 .. 3600");
    refuse("--run --workload conv_wgrad --checked", "lacks its value");
    refuse("--check --workload conv_wgrad --checked 3", "for --run only");
    refuse("--catalogue --checked 3", "is for --run");
}

static void test_defaults(void **state)
{
    struct args a;

    (void)state;
    accept("--workload conv_wgrad --check", &a);
    assert_int_equal(a.command, ARGS_CHECK);
    assert_ptr_equal(a.variant, &variants[0]);
    assert_ptr_equal(a.size, &sizes[0]);
    assert_int_equal(a.dtype, DTYPE_FLOAT32);
    assert_true(a.seed == 1);
    assert_int_equal(a.iterations, 10);
    assert_int_equal(a.threads, 2);
    assert_null(a.device);
}

static void test_commands(void **state)
{
    struct args a;

    (void)state;
    accept("--catalogue", &a);
    assert_int_equal(a.command, ARGS_CATALOGUE);
    accept("--probe", &a);
    assert_int_equal(a.command, ARGS_PROBE);
    accept("--version", &a);
    assert_int_equal(a.command, ARGS_VERSION);
    accept("--help", &a);
    assert_int_equal(a.command, ARGS_HELP);
    refuse("", "no command");
    refuse("--seed 1", "no command");
    refuse("--run --check --workload conv_wgrad", "one command too many");
    refuse("--run --run", "one command too many");
    refuse("--catalogue --seed 1", "'--seed' is for --run, --check and --resume only");
}

static void test_circumstances(void **state)
{
    struct args a, b;

    (void)state;
    accept("--run --workload conv_wgrad", &a);
    assert_int_equal(a.circumstances.contention, 0);
    assert_false(a.circumstances.is_poisoned || a.circumstances.is_jittered);
    accept(
        "--run --workload conv_wgrad --contention 64 --memory-poison 00c0ffee "
        "--allocation-jitter 18446744073709551615",
        &a);
    assert_int_equal(a.circumstances.contention, 64);
    assert_true(a.circumstances.is_poisoned && a.circumstances.is_jittered);
    assert_int_equal(a.circumstances.pattern, 0x00c0ffee);
    assert_true(a.circumstances.jitter == UINT64_MAX);
    accept(
        "--check --workload conv_wgrad --memory-poison random "
        "--allocation-jitter random",
        &a);
    accept(
        "--check --workload conv_wgrad --memory-poison random "
        "--allocation-jitter random",
        &b);
    assert_true(a.circumstances.pattern != b.circumstances.pattern);
    assert_true(a.circumstances.jitter != b.circumstances.jitter);
    refuse("--run --workload conv_wgrad --contention 0", "in 1 .. 64");
    refuse("--run --workload conv_wgrad --contention 65", "in 1 .. 64");
    refuse("--run --workload conv_wgrad --memory-poison 0xcafe", "8 hex digits");
    refuse("--run --workload conv_wgrad --memory-poison CAFECAFE", "8 hex digits");
    refuse("--run --workload conv_wgrad --allocation-jitter -1", "'random' nor a number");
    refuse("--run --workload conv_wgrad --memory_poison random",
           "nearest: '--memory-poison'");
}

static void test_load(void **state)
{
    struct args a;

    (void)state;
    accept("--load", &a);
    assert_int_equal(a.command, ARGS_LOAD);
    assert_int_equal(a.threads, 2);
    assert_null(a.device);
    accept("--load --device cpu:h --threads 3", &a);
    assert_int_equal(a.threads, 3);
    assert_string_equal(a.device, "cpu:h");
    refuse("--load --workload conv_wgrad", "'--workload' is for --run");
    refuse("--load --contention 2", "'--contention' is for --run");
    refuse("--load --threads 0", "in 1 .. 256");
}

static void test_resume(void **state)
{
    struct args a;

    (void)state;
    accept("--resume --workload resumable --variant ordered --threads 3", &a);
    assert_int_equal(a.command, ARGS_RESUME);
    assert_ptr_equal(a.workload, &resumable);
    assert_int_equal(a.threads, 3);
    refuse("--resume --workload conv_wgrad", "'conv_wgrad' has no second process");
    refuse("--resume", "'--workload' is missing");
}

static void test_options(void **state)
{
    (void)state;
    refuse("--run --worklod conv_wgrad", "nearest: '--workload'");
    refuse("--rum", "nearest: '--run'");
    refuse("-h", "unknown option '-h'");
    refuse("--run conv_wgrad", "unknown option 'conv_wgrad'");
    refuse("--run --workload=conv_wgrad", "nearest: '--workload'");
    refuse("--run --workload", "'--workload' lacks its value");
    refuse("--run --workload --seed 1", "'--workload' lacks its value");
    refuse("--run --workload conv_wgrad --seed 1 --seed 1", "'--seed' is given twice");
    refuse("--run", "'--workload' is missing");
}

static void test_names(void **state)
{
    (void)state;
    refuse("--run --workload conv_wgard",
           "unknown workload 'conv_wgard'; nearest: "
           "'conv_wgrad'");
    refuse("--run --workload gpu_only", "unknown workload 'gpu_only'");
    refuse("--run --workload conv_wgrad --variant order",
           "unknown variant 'order' of workload 'conv_wgrad'; nearest: 'ordered'");
    refuse("--run --workload conv_wgrad --size smal", "nearest: 'small'");
    refuse("--run --workload conv_wgrad --dtype float16",
           "unknown dtype 'float16' of workload 'conv_wgrad'; nearest: 'bfloat16'");
    refuse("--run --workload conv_wgrad --variant ORDERED", "nearest: ");
}

static void test_numbers(void **state)
{
    static const char *const bad[] = { "0",   "1001", "-1",
                                       "1.5", "0x10", "ten",
                                       "1e2", "+3",   "99999999999999999999" };
    char line[256];
    struct args a;

    (void)state;
    for (int i = 0; i < COUNT_OF(bad); i++) {
        snprintf(line, sizeof line, "--run --workload conv_wgrad --iterations %s",
                 bad[i]);
        refuse(line, "not a number in 1 .. 1000");
    }
    refuse("--run --workload conv_wgrad --threads 257", "not a number in 1 .. 256");
    refuse("--run --workload conv_wgrad --threads 0", "not a number in 1 .. 256");
    refuse("--run --workload conv_wgrad --seed 18446744073709551616",
           "not a number in 0 .. 2^64-1");
    refuse("--run --workload conv_wgrad --seed -1", "not a number in 0 .. 2^64-1");
    refuse("--run --workload conv_wgrad --seed 1x", "not a number in 0 .. 2^64-1");
    accept("--run --workload conv_wgrad --seed 0", &a);
    assert_true(a.seed == 0);
}

static void test_long_words_do_not_overflow(void **state)
{
    char word[4096];
    char *lines[][4] = {
        { (char *)"w", word, NULL, NULL },
        { (char *)"w", (char *)"--run", (char *)"--workload", word },
    };

    (void)state;
    memset(word, 'x', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    for (int i = 0; i < COUNT_OF(lines); i++) {
        struct args args;
        char message[ARGS_MESSAGE_SIZE] = "";
        assert_false(worker_args_parse(&registry, &backend, lines[i][2] ? 4 : 2, lines[i],
                                       &args, message));
        assert_non_null(strstr(message, "nearest"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checked),
        cmocka_unit_test(test_whole_request),
        cmocka_unit_test(test_probes),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_commands),
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_circumstances),
        cmocka_unit_test(test_load),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_long_words_do_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
