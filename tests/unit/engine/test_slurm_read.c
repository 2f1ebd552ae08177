/* What sinfo and squeue said, of two versions, as it comes: in pieces. */
#include "daemon/engine/slurm_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/buf.h"
#include "daemon/engine/elements.h"
#include "daemon/engine/slurm_words.h"

/* Nodes and jobs in a line each, then errors. */
struct read {
    struct buf text;
    char error[SLURM_TEXT_SIZE];
};

static json_t *parsed(const char *text, size_t length)
{
    json_t *json = json_loadb(text, length, 0, NULL);

    assert_non_null(json);
    return json;
}

static void take_node(void *arg, const struct slurm_node *node)
{
    struct read *read = arg;
    char held[SLURM_CAUSE_SIZE];

    slurm_node_held(node, false, held);
    buf_printf(&read->text, "%s %s|%s|%s|%s|%s\n", node->name, node->state,
               node->features, node->gres, node->reason, held);
}

static void take_nodes(void *arg, const char *text, size_t length)
{
    json_t *json = parsed(text, length);

    slurm_nodes_read(json, take_node, arg);
    json_decref(json);
}

static void take_job(void *arg, const char *text, size_t length)
{
    static const char *const phases[] = { "waits", "runs", "ending", "ended" };
    struct read *read = arg;
    json_t *json = parsed(text, length);
    struct slurm_job job;
    char cause[SLURM_CAUSE_SIZE];

    slurm_job_read(json, &job);
    slurm_job_cause(&job, cause);
    buf_printf(&read->text, "%lld %lld %s %s %s|%s|%s|%s|%d %s|%s\n", (long long)job.id,
               (long long)job.user, job.name, job.comment, job.state, job.reason,
               job.node, job.preempted ? "preempted" : "", job.submitted > 0,
               phases[slurm_job_phase(&job)], cause);
    json_decref(json);
}

static void take_error(void *arg, const char *text, size_t length)
{
    struct read *read = arg;
    json_t *json = parsed(text, length);

    slurm_error_read(json, read->error);
    json_decref(json);
}

/* The file in pieces of PIECE bytes; caller frees. */
static char *read_file(const char *name, const char *key, size_t piece, struct read *read)
{
    struct elements elements = {
        .arrays = { { key, true, strcmp(key, "jobs") == 0 ? take_job : take_nodes },
                    { "errors", false, take_error } },
        .arg = read
    };
    char *path = NULL, bytes[4096];
    FILE *file;
    size_t length;

    assert_true(asprintf(&path, "tests/fixtures/slurm/%s.json", name) > 0);
    file = fopen(path, "r");
    assert_non_null(file);
    while ((length = fread(bytes, 1, piece, file)) > 0) {
        elements_feed(&elements, bytes, length);
    }
    fclose(file);
    free(path);
    assert_true(elements_whole(&elements));
    assert_int_equal(elements.skipped, 0);
    elements_release(&elements);
    return buf_detach(&read->text, NULL);
}

static void check_file(const char *name, const char *key, const char *expected)
{
    static const size_t pieces[] = { 1, 7, 4096 };

    for (int i = 0; i < 3; i++) {
        struct read read = { .text = BUF_INIT };
        char *text = read_file(name, key, pieces[i], &read);

        assert_string_equal(text, expected);
        assert_string_equal(read.error, "");
        free(text);
    }
}

static void test_older_version(void **state)
{
    (void)state;
    check_file("22.05-nodes", "nodes",
               "n1 ALLOCATED+DRAIN|a,driver-1|gpu:a:2|flaky ECC|slurm: draining: flaky "
               "ECC\n"
               "n2 ALLOCATED|b,driver-2|gpu:b:2||\n"
               "n3 IDLE|a,driver-2|gpu:a:1||\n");
    check_file(
        "22.05-jobs", "jobs",
        "8 0 reprod-f00d reprod:n1 RUNNING||n1||1 runs|\n"
        "9 0 reprod-f00d reprod:n1 PENDING|ReqNodeNotAvail|||1 waits|\n"
        "10 0 reprod-f00d reprod:n2 FAILED|JobLaunchFailure|n2|preempted|1 ended|slurm: "
        "preempted on n2 (job 10)\n"
        "11 0 sleep  RUNNING||n2||1 runs|\n"
        "12 0 reprod-f00d reprod:n3 NODE_FAIL|NodeDown|n3||1 ended|slurm: node failure "
        "of "
        "n3 (job 12)\n");
}

static void test_newer_version(void **state)
{
    (void)state;
    check_file("23.11-nodes", "sinfo",
               "g1 IDLE|h200|gpu:h200:8(S:0-1)||\n"
               "g2 MIXED+DRAIN|||flaky ECC|slurm: draining: flaky ECC\n"
               "g3 IDLE+PLANNED|a\"]}{[|gpu:1||\n"
               "g4 DOWN+NOT_RESPONDING|||Not responding|slurm: down: Not responding\n"
               "g9 DOWN+NOT_RESPONDING|||Not responding|slurm: down: Not responding\n"
               "g5 IDLE+RESERVED||||slurm: reserved\n"
               "g6 IDLE+QUANTUM||||slurm: state 'QUANTUM' is not known here\n"
               "g7 ||||slurm: the node has no state\n"
               "g8 ||||slurm: the node has no state\n"
               " ||||slurm: the node has no state\n");
    check_file(
        "23.11-jobs", "jobs",
        "101 1000 reprod-f00d reprod:g1 RUNNING||g1||1 runs|\n"
        "102 1000 reprod-f00d reprod:g2 PENDING|QOSMaxJobsPerUserLimit|||1 waits|\n"
        "103 1000 reprod-f00d reprod:g3 CANCELLED+COMPLETING||g3||0 ended|slurm: "
        "cancelled on g3 (job 103)\n"
        "104 1000 reprod-f00d  OUT_OF_MEMORY||g4||0 ended|slurm: out of memory on g4 "
        "(job "
        "104)\n");
}

static void test_nobody_answers_them(void **state)
{
    struct read read = { .text = BUF_INIT };
    char *text = read_file("22.05-away", "jobs", 9, &read);

    (void)state;
    assert_string_equal(text, "");
    assert_string_equal(read.error, "Failed while looking for jobs");
    free(text);
}

static void check_error(const char *json, const char *expected)
{
    json_t *parsed_json = json_loads(json, 0, NULL);
    char text[SLURM_TEXT_SIZE];

    slurm_error_read(parsed_json, text);
    assert_string_equal(text, expected);
    json_decref(parsed_json);
}

static void test_errors(void **state)
{
    (void)state;
    check_error("{\"error\":\"Unspecified error\"}", "Unspecified error");
    check_error("{\"description\":\"\",\"error\":\"e\"}", "e");
    check_error("{\"description\":\"\",\"error\":\"\"}", "an error");
    check_error("{\"errno\":7}", "an error");
}

static void copy_node(void *arg, const struct slurm_node *node)
{
    *(struct slurm_node *)arg = *node;
}

static void check_node_state(const char *json, const char *expected)
{
    json_t *node_json = json_loads(json, 0, NULL);
    struct slurm_node node;

    assert_non_null(node_json);
    slurm_nodes_read(node_json, copy_node, &node);
    assert_string_equal(node.state, expected);
    json_decref(node_json);
}

static void test_spellings_of_states(void **state)
{
    (void)state;
    check_node_state("{\"state\":\"down*\"}", "DOWN+NOT_RESPONDING");
    check_node_state("{\"state\":\"idle~\"}", "IDLE+POWERED_DOWN");
    check_node_state("{\"state\":\"IDLE+DRAIN*\"}", "IDLE+DRAIN+NOT_RESPONDING");
    check_node_state("{\"state\":[\"mixed-\",3,\"PLANNED\"]}", "MIXED+PLANNED+PLANNED");
    check_node_state("{\"state\":\"idle$@\"}", "IDLE+REBOOT_ISSUED+MAINTENANCE");
    check_node_state("{\"state\":\"*\"}", "NOT_RESPONDING");
    check_node_state("{\"state\":7,\"state_flags\":{}}", "");
    check_node_state("{\"state\":\"idle\",\"state_flags\":[\"DRAIN\",\"INVALID_REG\"]}",
                     "IDLE+DRAIN+INVALID_REG");
    check_node_state("[]", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_older_version),       cmocka_unit_test(test_newer_version),
        cmocka_unit_test(test_nobody_answers_them), cmocka_unit_test(test_errors),
        cmocka_unit_test(test_spellings_of_states),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
