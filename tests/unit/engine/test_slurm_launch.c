/* The srun of a host, from its entry in a configuration. */
#include "daemon/engine/slurm_launch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/buf.h"
#include "daemon/config/config.h"
#include "daemon/config/hosts.h"

#define ENV                                                                              \
    "env -u SLURM_JOB_ID -u SLURM_JOBID -u SLURM_STEP_ID -u REPROD_PARENT "              \
    "SLURM_EXIT_ERROR=200 SLURM_EXIT_IMMEDIATE=201 "
#define SRUN "srun --nodes=1 --ntasks=1 --unbuffered --cpu-bind=none "

static json_t *expanded(const char *entry, struct err *err)
{
    json_t *hosts = json_pack("[o]", json_loads(entry, 0, NULL));
    json_t *all = hosts_expand(hosts, "c.json", err);

    json_decref(hosts);
    return all;
}

/* That of the last host of ENTRY. */
static void check(const char *entry, const char *expected)
{
    struct err err;
    json_t *all = expanded(entry, &err), *launch, *word;
    const json_t *host;
    struct buf text = BUF_INIT;
    size_t i;

    assert_non_null(all);
    host = json_array_get(all, json_array_size(all) - 1);
    assert_true(slurm_host_is(host));
    launch = slurm_launch(host, "reprod-1");
    json_array_foreach(launch, i, word)
    {
        buf_printf(&text, "%s%s", i ? " " : "", json_string_value(word));
    }
    assert_string_equal(text.data, expected);
    buf_release(&text);
    json_decref(launch);
    json_decref(all);
}

static void test_the_least(void **state)
{
    (void)state;
    check("{\"name\":\"n1\",\"engine\":\"slurm\",\"agent\":[\"reprod\",\"agent\"]}",
          ENV SRUN
          "--nodelist=n1 --job-name=reprod-1 --comment=reprod:n1 --exclusive "
          "--mem=0 reprod agent");
}

static void test_all_that_an_entry_may_say(void **state)
{
    (void)state;
    check(
        "{\"name\":\"n[1-2]\",\"engine\":\"slurm\",\"agent\":[\"reprod\",\"agent\","
        "\"--notice\",\"30\"],\"slurm\":{\"node\":\"{host}.site\",\"partition\":\"p\","
        "\"qos\":\"q\",\"account\":\"a\",\"constraint\":\"h200&x\",\"gres\":\"gpu:8\","
        "\"reservation\":\"r\",\"time\":\"1:00:00\",\"exclusive\":false,\"arguments\":["
        "\"--signal=TERM@60\",\"--chdir=/x/{host}\"]}}",
        ENV SRUN
        "--nodelist=n2.site --job-name=reprod-1 --comment=reprod:n2 "
        "--partition=p --qos=q --account=a --constraint=h200&x --gres=gpu:8 "
        "--time=1:00:00 --reservation=r --signal=TERM@60 --chdir=/x/n2 "
        "reprod agent --notice 30");
}

static void test_a_host_of_slurm(void **state)
{
    json_t *plain = json_loads("{\"name\":\"n1\"}", 0, NULL);
    json_t *reserved =
        json_loads("{\"name\":\"n1\",\"slurm\":{\"reservation\":\"r\"}}", 0, NULL);

    (void)state;
    assert_false(slurm_host_is(plain));
    assert_false(slurm_host_has_reservation(plain));
    assert_true(slurm_host_has_reservation(reserved));
    assert_string_equal(slurm_host_node(plain), "n1");
    json_decref(plain);
    json_decref(reserved);
}

static void check_refused(const char *entry, const char *expected)
{
    struct err err;

    assert_null(expanded(entry, &err));
    assert_string_equal(err.message, expected);
}

static void test_an_engine_and_a_launch_command(void **state)
{
    (void)state;
    check_refused("{\"name\":\"n1\"}", "c.json: /hosts/0/launch: is missing");
    check_refused("{\"name\":\"n1\",\"engine\":\"slurm\",\"launch\":[\"x\"]}",
                  "c.json: /hosts/0/launch: its engine makes it");
    check_refused("{\"name\":\"n1\",\"engine\":\"slurm\"}",
                  "c.json: /hosts/0/agent: is missing: the command of the agent on the "
                  "node");
    check_refused("{\"name\":\"n1\",\"launch\":[\"x\"],\"agent\":[\"x\"]}",
                  "c.json: /hosts/0/agent: belongs to an engine, and there is none");
    check_refused("{\"name\":\"n1\",\"launch\":[\"x\"],\"slurm\":{}}",
                  "c.json: /hosts/0/slurm: belongs to an engine, and there is none");
}

static void test_the_example_that_is_shipped(void **state)
{
    struct config config;
    struct err err;
    json_t *launch;

    (void)state;
    config_init(&config);
    assert_int_equal(config_read(&config, "deploy/slurm/reprod.json", &err), ERR_OK);
    assert_int_equal(json_array_size(config.hosts), 64);
    assert_int_equal(config.slurm.every_seconds, 10);
    launch = slurm_launch(json_array_get(config.hosts, 6), "reprod-1");
    assert_string_equal(json_string_value(json_array_get(launch, 16)),
                        "--nodelist=gpu-007");
    json_decref(launch);
    config_release(&config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_least),
        cmocka_unit_test(test_all_that_an_entry_may_say),
        cmocka_unit_test(test_a_host_of_slurm),
        cmocka_unit_test(test_an_engine_and_a_launch_command),
        cmocka_unit_test(test_the_example_that_is_shipped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
