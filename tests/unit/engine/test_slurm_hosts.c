/* What follows for hosts from what Slurm says: who is held, what waits, why agents ended,
 * which jobs are orphans. */
#include "daemon/engine/slurm_hosts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/buf.h"
#include "daemon/base/mem.h"

enum { USER = 7, PERIOD_MS = 10000 };

struct fixture {
    struct slurm_hosts hosts;
    struct buf told;
    bool agents; /* every host has one */
    int heard;
    int64_t now;
};

static void on_hold(void *arg, const char *host, const char *cause, bool leave)
{
    struct fixture *f = arg;

    buf_printf(&f->told, "%s held%s: %s\n", host, leave ? " and let go" : "",
               cause ? cause : "no");
}

static void on_waits(void *arg, const char *host, const char *words)
{
    struct fixture *f = arg;

    buf_printf(&f->told, "%s waits: %s\n", host, words ? words : "no");
}

static void on_ended(void *arg, const char *host, const char *cause)
{
    struct fixture *f = arg;

    buf_printf(&f->told, "%s ended: %s\n", host, cause ? cause : "?");
}

static bool on_has_agent(void *arg, const char *host)
{
    struct fixture *f = arg;

    (void)host;
    return f->agents;
}

static void on_heard(void *arg)
{
    struct fixture *f = arg;

    f->heard++;
}

static void check_told(struct fixture *f, const char *expected)
{
    assert_string_equal(f->told.data ? f->told.data : "", expected);
    buf_release(&f->told);
}

static void begin(struct fixture *f)
{
    const struct slurm_hooks hooks = { .arg = f,
                                       .hold = on_hold,
                                       .waits = on_waits,
                                       .ended = on_ended,
                                       .has_agent = on_has_agent,
                                       .heard = on_heard };
    json_t *json = json_loads(
        "[{\"name\":\"b\",\"engine\":\"slurm\"},"
        "{\"name\":\"plain\",\"launch\":[\"x\"]},"
        "{\"name\":\"a\",\"engine\":\"slurm\",\"slurm\":{\"node\":"
        "\"node-a\"}}]",
        0, NULL);

    *f = (struct fixture){ .now = 1000 };
    slurm_hosts_init(&f->hosts, json, "reprod-1", USER, PERIOD_MS, &hooks);
    json_decref(json);
    check_told(f,
               "b held: slurm: it was not asked yet\n"
               "a held: slurm: it was not asked yet\n");
}

static void end(struct fixture *f)
{
    slurm_hosts_release(&f->hosts);
    buf_release(&f->told);
}

static void list_nodes(struct fixture *f, const char *b, const char *a)
{
    struct slurm_node node = { .name = "b", .features = "x,y", .gres = "gpu:1" };

    slurm_hosts_list_nodes(&f->hosts);
    copy_text(node.state, sizeof node.state, b);
    slurm_hosts_node(&f->hosts, &node);
    if (a) {
        copy_text(node.name, sizeof node.name, "node-a");
        copy_text(node.state, sizeof node.state, a);
        slurm_hosts_node(&f->hosts, &node);
    }
    copy_text(node.name, sizeof node.name, "other");
    slurm_hosts_node(&f->hosts, &node);
    slurm_hosts_nodes_listed(&f->hosts, f->now, 1700000000000);
}

static void add_job(struct fixture *f, int64_t id, const char *host, const char *state)
{
    struct slurm_job job = {
        .id = id, .submitted = id, .user = USER, .name = "reprod-1"
    };

    snprintf(job.comment, sizeof job.comment, "reprod:%s", host);
    copy_text(job.state, sizeof job.state, state);
    copy_text(job.node, sizeof job.node, host);
    slurm_hosts_job(&f->hosts, &job);
}

static void list_no_jobs(struct fixture *f)
{
    slurm_hosts_list_jobs(&f->hosts);
    slurm_hosts_jobs_listed(&f->hosts, f->now, f->now);
}

static void list_one_job(struct fixture *f, int64_t id, const char *host,
                         const char *state)
{
    slurm_hosts_list_jobs(&f->hosts);
    add_job(f, id, host, state);
    slurm_hosts_jobs_listed(&f->hosts, f->now, f->now);
}

static void test_hosts_are_held_by_their_nodes(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f);
    list_nodes(&f, "IDLE", "IDLE+DRAIN");
    check_told(&f, "");
    list_no_jobs(&f);
    check_told(&f, "b held: no\na held and let go: slurm: drained\n");
    list_nodes(&f, "DOWN", NULL);
    list_no_jobs(&f);
    check_told(&f,
               "b held and let go: slurm: down\n"
               "a held and let go: slurm: there is no node 'node-a'\n");
    list_nodes(&f, "MIXED", "ALLOCATED");
    slurm_hosts_look(&f.hosts, f.now);
    check_told(&f, "b held: no\na held: no\n");
    end(&f);
}

static void test_nothing_is_started_where_slurm_is_not_heard(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f);
    slurm_hosts_failed(&f.hosts, "sinfo: gone", f.now);
    check_told(&f, "b held: slurm: sinfo: gone\na held: slurm: sinfo: gone\n");
    list_nodes(&f, "IDLE", "IDLE");
    list_no_jobs(&f);
    check_told(&f, "b held: no\na held: no\n");
    f.now += 3 * PERIOD_MS;
    slurm_hosts_look(&f.hosts, f.now);
    check_told(&f, "");
    f.hosts.pause_ms = 2 * PERIOD_MS; /* it is slow, and so asked less often */
    slurm_hosts_look(&f.hosts, f.now + 1);
    check_told(&f, "");
    f.agents = true;
    slurm_hosts_failed(&f.hosts, "squeue: slow", f.now + 1);
    check_told(&f, ""); /* what runs goes on */
    f.agents = false;
    slurm_hosts_look(&f.hosts, f.now + 1);
    check_told(&f, "b held: slurm: squeue: slow\na held: slurm: squeue: slow\n");
    end(&f);
}

static void test_jobs_of_before_are_orphans(void **state)
{
    struct fixture f;
    struct slurm_job other = { .id = 99, .user = USER, .name = "reprod-12" };

    (void)state;
    begin(&f);
    list_nodes(&f, "IDLE", "IDLE");
    slurm_hosts_list_jobs(&f.hosts);
    slurm_hosts_job(&f.hosts, &other);
    other.user = USER + 1;
    copy_text(other.name, sizeof other.name, "reprod-1");
    slurm_hosts_job(&f.hosts, &other);
    add_job(&f, 1, "a", "COMPLETED");
    add_job(&f, 2, "a", "RUNNING");
    add_job(&f, 3, "nowhere", "PENDING");
    slurm_hosts_jobs_listed(&f.hosts, f.now, f.now);
    assert_int_equal(f.hosts.orphan_count, 2);
    assert_int_equal(f.hosts.orphans[0], 2);
    assert_int_equal(f.hosts.orphans[1], 3);
    check_told(&f, "b held: no\na held: slurm: job 2 of an agent before is cancelled\n");
    list_one_job(&f, 2, "a", "COMPLETING");
    assert_int_equal(f.hosts.orphan_count, 0);
    check_told(&f, "a held: no\n");
    end(&f);
}

static void test_a_site_rewrites_comments(void **state)
{
    struct fixture f;
    struct slurm_job job = { .id = 9, .user = USER, .name = "reprod-1" };

    (void)state;
    begin(&f);
    list_nodes(&f, "IDLE", "IDLE");
    copy_text(job.comment, sizeof job.comment, "account 7");
    copy_text(job.state, sizeof job.state, "RUNNING");
    for (int i = 0; i < 2; i++) {
        slurm_hosts_list_jobs(&f.hosts);
        slurm_hosts_job(&f.hosts, &job);
        slurm_hosts_jobs_listed(&f.hosts, f.now, f.now);
        assert_int_equal(f.hosts.orphan_count, i == 0); /* later it may be an agent's */
    }
    end(&f);
}

static void test_jobs_without_an_agent_become_orphans(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f);
    list_nodes(&f, "IDLE", "IDLE");
    list_no_jobs(&f);
    f.agents = true;
    list_one_job(&f, 5, "a", "RUNNING");
    assert_int_equal(f.hosts.orphan_count, 0);
    slurm_hosts_list_jobs(&f.hosts);
    add_job(&f, 6, "a", "PENDING"); /* two: the later one is the agent's */
    add_job(&f, 5, "a", "RUNNING");
    slurm_hosts_jobs_listed(&f.hosts, f.now, f.now);
    assert_int_equal(f.hosts.orphan_count, 1);
    assert_int_equal(f.hosts.orphans[0], 5);
    f.agents = false;
    list_one_job(&f, 6, "a", "RUNNING");
    assert_int_equal(f.hosts.orphan_count, 0);
    list_one_job(&f, 6, "a", "RUNNING");
    assert_int_equal(f.hosts.orphan_count, 1);
    slurm_hosts_let_go(&f.hosts, "a");
    slurm_hosts_let_go(&f.hosts, "nobody");
    f.agents = true;
    list_one_job(&f, 6, "a", "RUNNING");
    assert_int_equal(f.hosts.orphan_count, 1); /* whoever is there now, it is not his */
    end(&f);
}

static void test_ids_begin_anew(void **state)
{
    struct fixture f;
    struct slurm_job job = { .id = 1, .submitted = 900, .user = USER };

    (void)state;
    begin(&f);
    list_nodes(&f, "IDLE", "IDLE");
    list_one_job(&f, 500, "a", "COMPLETED");
    f.agents = true;
    copy_text(job.name, sizeof job.name, "reprod-1");
    copy_text(job.comment, sizeof job.comment, "reprod:a");
    copy_text(job.state, sizeof job.state, "RUNNING");
    slurm_hosts_list_jobs(&f.hosts);
    slurm_hosts_job(&f.hosts, &job);
    slurm_hosts_jobs_listed(&f.hosts, f.now, f.now);
    assert_int_equal(f.hosts.orphan_count, 0);
    end(&f);
}

static void list_two_jobs(struct fixture *f, int64_t id, const char *state, int64_t other,
                          const char *other_state)
{
    slurm_hosts_list_jobs(&f->hosts);
    add_job(f, id, "a", state);
    add_job(f, other, "a", other_state);
    slurm_hosts_jobs_listed(&f->hosts, f->now, f->now);
}

static void test_the_clock_of_slurm_is_set_back(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f);
    list_nodes(&f, "IDLE", "IDLE");
    list_no_jobs(&f);
    f.agents = true;
    list_one_job(&f, 500, "a", "RUNNING");
    slurm_hosts_ask(&f.hosts, "a", f.now);
    list_one_job(&f, 500, "a", "FAILED");
    list_two_jobs(&f, 500, "FAILED", 400, "PENDING"); /* it was submitted before */
    assert_int_equal(f.hosts.orphan_count, 0);
    list_two_jobs(&f, 400, "RUNNING", 500, "FAILED");
    assert_int_equal(f.hosts.orphan_count, 0);
    assert_int_equal(f.hosts.hosts[1].job.id, 400);
    end(&f);
}

/* Its job ends late, and the next agent has one already when that is asked no more. */
static void test_the_job_of_the_next_agent_is_its_own(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f);
    list_nodes(&f, "IDLE", "IDLE");
    list_no_jobs(&f);
    f.agents = true;
    list_one_job(&f, 5, "a", "RUNNING");
    assert_true(slurm_hosts_ask(&f.hosts, "a", f.now));
    list_one_job(&f, 5, "a", "COMPLETING");
    check_told(&f, "b held: no\na held: no\n");
    slurm_hosts_started(&f.hosts, "plain");
    slurm_hosts_started(&f.hosts, "a");
    list_two_jobs(&f, 5, "COMPLETING", 6, "PENDING");
    assert_false(slurm_hosts_asked(&f.hosts, f.now + 16001));
    list_two_jobs(&f, 5, "FAILED", 6, "RUNNING");
    assert_int_equal(f.hosts.orphan_count, 0);
    check_told(&f, "a waits: slurm: job 6 waits\na waits: no\n");
    end(&f);
}

static void test_why_it_waits_is_told_once(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f);
    list_nodes(&f, "IDLE", "IDLE");
    list_no_jobs(&f);
    f.agents = true;
    check_told(&f, "b held: no\na held: no\n");
    list_one_job(&f, 4, "a", "PENDING");
    list_one_job(&f, 4, "a", "PENDING");
    check_told(&f, "a waits: slurm: job 4 waits\n");
    list_one_job(&f, 4, "a", "RUNNING");
    check_told(&f, "a waits: no\n");
    end(&f);
}

static void test_why_an_agent_ended(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f);
    list_nodes(&f, "IDLE", "IDLE");
    list_no_jobs(&f);
    check_told(&f, "b held: no\na held: no\n");
    assert_false(slurm_hosts_ask(&f.hosts, "plain", f.now));
    assert_false(slurm_hosts_asked(&f.hosts, f.now));
    assert_true(slurm_hosts_ask(&f.hosts, "a", f.now));
    assert_true(slurm_hosts_asked(&f.hosts, f.now));

    slurm_hosts_list_jobs(&f.hosts); /* it began before, so it says nothing of it */
    slurm_hosts_jobs_listed(&f.hosts, f.now - 1, f.now);
    list_one_job(&f, 4, "a", "RUNNING");
    check_told(&f, "");
    list_one_job(&f, 4, "a", "NODE_FAIL");
    check_told(&f, "a ended: slurm: node failure of a (job 4)\n");
    assert_false(slurm_hosts_asked(&f.hosts, f.now));

    slurm_hosts_ask(&f.hosts, "a", f.now); /* the next one had no job */
    list_one_job(&f, 4, "a", "NODE_FAIL");
    check_told(&f, "a ended: ?\n");
    slurm_hosts_ask(&f.hosts, "a", f.now);
    list_no_jobs(&f);
    check_told(&f, "a ended: ?\n");
    slurm_hosts_ask(&f.hosts, "a", f.now);
    list_one_job(&f, 6, "a", "FAILED");
    check_told(&f, "a ended: ?\n");

    slurm_hosts_ask(&f.hosts, "a", f.now); /* nobody answers */
    assert_true(slurm_hosts_asked(&f.hosts, f.now + 16000));
    check_told(&f, "");
    assert_false(slurm_hosts_asked(&f.hosts, f.now + 16001));
    check_told(&f, "a ended: ?\n");
    end(&f);
}

static void check_json(const struct fixture *f, const char *expected)
{
    json_t *json = slurm_hosts_json(&f->hosts, "b");
    char *text = json_dumps(json, JSON_COMPACT);

    assert_string_equal(text, expected);
    json_decref(json);
    free(text);
}

static void test_what_the_api_says(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f);
    assert_null(slurm_hosts_json(&f.hosts, "plain"));
    check_json(&f,
               "{\"engine\":\"slurm\",\"node\":\"b\",\"state\":null,\"reason\":null,"
               "\"features\":[],\"gres\":null,\"job\":null,\"heard_at\":null}");
    assert_int_equal(f.heard, 0);
    list_nodes(&f, "IDLE", "IDLE");
    assert_int_equal(f.heard, 1);
    f.agents = true;
    list_one_job(&f, 4, "b", "RUNNING");
    assert_int_equal(f.heard, 2);
    check_json(&f,
               "{\"engine\":\"slurm\",\"node\":\"b\",\"state\":\"IDLE\",\"reason\":null,"
               "\"features\":[\"x\",\"y\"],\"gres\":\"gpu:1\",\"job\":{\"id\":4,"
               "\"state\":\"RUNNING\",\"reason\":null},\"heard_at\":"
               "\"2023-11-14T22:13:20.000Z\"}");
    list_one_job(&f, 4, "b", "COMPLETED");
    check_json(&f,
               "{\"engine\":\"slurm\",\"node\":\"b\",\"state\":\"IDLE\",\"reason\":null,"
               "\"features\":[\"x\",\"y\"],\"gres\":\"gpu:1\",\"job\":null,"
               "\"heard_at\":\"2023-11-14T22:13:20.000Z\"}");
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hosts_are_held_by_their_nodes),
        cmocka_unit_test(test_nothing_is_started_where_slurm_is_not_heard),
        cmocka_unit_test(test_jobs_of_before_are_orphans),
        cmocka_unit_test(test_a_site_rewrites_comments),
        cmocka_unit_test(test_jobs_without_an_agent_become_orphans),
        cmocka_unit_test(test_ids_begin_anew),
        cmocka_unit_test(test_the_clock_of_slurm_is_set_back),
        cmocka_unit_test(test_the_job_of_the_next_agent_is_its_own),
        cmocka_unit_test(test_why_it_waits_is_told_once),
        cmocka_unit_test(test_why_an_agent_ended),
        cmocka_unit_test(test_what_the_api_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
