/* The daemon's end of an agent, against agents that are shell scripts. */
#include "daemon/link/link.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/base/buf.h"
#include "daemon/base/log.h"
#include "daemon/jobs/options.h"
#include "daemon/process/proc.h"
#include "daemon/process/run_exit.h"

#define HELLO                                                                            \
    "echo '{\"event\":\"hello\",\"v\":1,\"host\":\"h\",\"pid\":1,\"boot_id\":\"b\","     \
    "\"stacks\":[]}';"
#define HELLO_OF                                                                         \
    "{\"event\":\"hello\",\"v\":1,\"host\":\"h\",\"pid\":1,\"boot_id\":\"b\","           \
    "\"stacks\":"
#define STARTED                                                                          \
    "read line; echo '{\"event\":\"started\",\"run\":\"R1\",\"pid\":5,"                  \
    "\"process_start\":6}';"
#define EXITED_WITH(code, number, reason)                                                \
    "echo '{\"event\":\"exited\",\"run\":\"R1\",\"exit_code\":" code                     \
    ",\"signal\":" number ",\"reason\":\"" reason                                        \
    "\",\"wall_ms\":1.5,\"max_rss_kb\":7,\"log\":\"text\",\"log_bytes\":9}';"
#define SAY(text) "echo '" text "';"

struct fixture {
    uv_loop_t loop;
    struct link *link;
    struct buf seen; /* what was told, in order */
    bool gone;
    bool close_on_hello;
    int runs;                   /* to start on hello */
    struct run_options options; /* of these */
    int64_t check_seconds;      /* likewise */
    const char *check_passed;
    int64_t pid;
};

static const struct case_key key = { "conv_wgrad", 1, "ordered", "small", "float32", 7 };

static void gone(void *arg)
{
    struct fixture *f = arg;

    f->gone = true;
}

static void on_hello(void *arg, const json_t *hello)
{
    struct fixture *f = arg;

    buf_printf(&f->seen, "hello(%s) ", json_string_value(json_object_get(hello, "host")));
    link_hold(f->link, true);
    assert_false(link_takes_runs(f->link));
    link_hold(f->link, false);
    assert_true(link_takes_runs(f->link));
    assert_null(link_ending(f->link));
    if (f->close_on_hello) {
        link_close(f->link, gone, f);
    }
    for (int i = 0; i < f->runs; i++) {
        char id[16];

        snprintf(id, sizeof id, "R%d", i + 1);
        link_run(f->link, &(struct link_run){ id, "cpu", "cpu:h", 1000, &key, 10,
                                              &f->options, f->check_seconds,
                                              f->check_passed ? f->check_passed : "" });
    }
}

static void on_stacks(void *arg, const json_t *stacks)
{
    struct fixture *f = arg;

    buf_printf(&f->seen, "stacks(%zu) ", json_array_size(stacks));
}

static void on_started(void *arg, const char *run, int64_t pid, int64_t process_start)
{
    struct fixture *f = arg;

    buf_printf(&f->seen, "started(%s,%lld,%lld) ", run, (long long)pid,
               (long long)process_start);
    f->pid = pid;
}

static void on_worker_event(void *arg, const char *run, const json_t *event)
{
    struct fixture *f = arg;

    buf_printf(&f->seen, "worker(%s,%zu) ", run, json_object_size(event));
}

static void on_iterations(void *arg, const char *run, const json_t *event)
{
    struct fixture *f = arg;

    buf_printf(&f->seen, "iterations(%s,%zu) ", run, json_object_size(event));
}

static void on_garbage(void *arg, const char *run, const char *cause)
{
    struct fixture *f = arg;

    buf_printf(&f->seen, "garbage(%s,%s) ", run, cause);
}

static void on_exited(void *arg, const char *run, const struct run_exit *exit)
{
    struct fixture *f = arg;

    buf_printf(&f->seen, "exited(%s,%d,%d,%s,%.1f,%lld,%s,%zu,%lld) ", run,
               exit->exit_code, exit->signal, exit_reason_name(exit->reason),
               exit->wall_ms, (long long)exit->max_rss_kb, exit->log, exit->log_length,
               (long long)exit->log_bytes);
}

static void on_refused(void *arg, const char *run, const char *cause)
{
    struct fixture *f = arg;

    buf_printf(&f->seen, "refused(%s,%s) ", run, cause);
}

static void on_closed(void *arg, const char *cause)
{
    struct fixture *f = arg;

    buf_printf(&f->seen, "closed(%s)", cause);
    link_close(f->link, gone, f);
}

static void on_ending(void *arg, const char *cause, int64_t notice_ms)
{
    struct fixture *f = arg;

    buf_printf(&f->seen, "ending(%s,%lld) ", cause, (long long)notice_ms);
    assert_false(link_takes_runs(f->link));
    assert_string_equal(link_ending(f->link), cause);
}

/* A shell may take long to say hello on a busy machine. */
static void on_silent(void *arg, int64_t since_ms)
{
    struct fixture *f = arg;

    buf_printf(&f->seen, since_ms ? "silent " : "heard ");
}

enum { HELLO_LONG_MS = 300000, HELLO_SHORT_MS = 100, PING_SHORT_MS = 5 };

static struct link_events events = {
    .hello = on_hello,
    .stacks = on_stacks,
    .started = on_started,
    .worker_event = on_worker_event,
    .iterations = on_iterations,
    .garbage = on_garbage,
    .exited = on_exited,
    .refused = on_refused,
    .closed = on_closed,
    .silent = on_silent,
    .ending = on_ending,
    .hello_deadline_ms = HELLO_LONG_MS,
    .end_grace_ms = 100,
};

/* Runs the agent SCRIPT until its link is gone; what was told is in FIXTURE->seen. */
static void run_script(struct fixture *f, const char *script)
{
    char *const argv[] = { (char *)"/bin/sh", (char *)"-c", (char *)script, NULL };
    struct err err;

    assert_int_equal(uv_loop_init(&f->loop), 0);
    assert_int_equal(link_open(&f->loop, "h", argv, &events, f, &f->link, &err), ERR_OK);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_true(f->gone);
    assert_int_equal(uv_loop_close(&f->loop), 0);
}

static void expect(const char *script, int runs, const char *seen)
{
    struct fixture f = { .runs = runs };

    run_script(&f, script);
    if (strncmp(f.seen.data ? f.seen.data : "", seen, strlen(seen)) != 0) {
        fail_msg("%s\n  told:     %s\n  expected: %s", script, f.seen.data, seen);
    }
    buf_release(&f.seen);
}

static void test_how_it_goes_away(void **state)
{
    (void)state;
    expect("exit 3", 0, "closed(exit status 3)");
    expect("echo first >&2; echo last >&2; exit 3", 0, "closed(exit status 3: last)");
    expect("kill -9 $$", 0, "closed(killed by SIGKILL)");
    expect(HELLO "exit 0", 0, "hello(h) closed(exit status 0)");
    expect(HELLO "exec >&-; exec sleep 1000", 0, "hello(h) closed(it closed its output)");
    expect("(sleep 1000 &) ; exit 3", 0, "closed(exit status 3)");
}

static void test_no_hello(void **state)
{
    (void)state;
    events.hello_deadline_ms = HELLO_SHORT_MS;
    expect("exec sleep 1000", 0, "closed(no hello in time)");
    events.hello_deadline_ms = HELLO_LONG_MS;
}

static int64_t deadline_of(const char *stacks)
{
    json_t *json = json_loads(stacks, 0, NULL);
    int64_t ms = link_hello_deadline_ms(json);

    json_decref(json);
    return ms;
}

/* A framework takes longer to say what it is than an agent otherwise has. */
static void test_the_slowest_stack_has_its_time(void **state)
{
    (void)state;
    assert_int_equal(link_hello_deadline_ms(NULL), LINK_HELLO_MS);
    assert_int_equal(deadline_of("[]"), LINK_HELLO_MS);
    assert_int_equal(deadline_of("[{\"name\":\"cpu\"}]"), LINK_HELLO_MS);
    assert_int_equal(deadline_of("[{\"probe_seconds\":3},{\"name\":\"cpu\"}]"),
                     LINK_HELLO_MS);
    assert_int_equal(deadline_of("[{\"probe_seconds\":600},{\"probe_seconds\":60}]"),
                     605000);
}

static void test_what_breaks_the_protocol(void **state)
{
    static const struct {
        const char *script, *cause;
    } cases[] = {
        { SAY("hello"), "closed(it broke the protocol in line 1: not JSON)" },
        { SAY("{\"event\":\"hello\",\"v\":2}"),
          "closed(it broke the protocol in line 1: hello: it speaks protocol version 2" },
        { SAY("{\"event\":\"hello\"}"),
          "closed(it broke the protocol in line 1: hello:" },
        { SAY("{\"event\":\"hello\",\"v\":1}"),
          "closed(it broke the protocol in line 1: hello:" },
        { SAY("{\"event\":\"hello\",\"v\":1,\"host\":\"h\",\"pid\":1,\"boot_id\":\"b\","
              "\"stacks\":[1]}"),
          "closed(it broke the protocol in line 1: hello: stacks/0 must be an object" },
        { "printf '%s%64s%s\\n' '" HELLO_OF "[{\"name\":\"' x '\"}]}';",
          "closed(it broke the protocol in line 1: hello: stacks[0]: name has more" },
        { "stack='{\"name\":\"a\"}'; for i in 1 2 3 4 5 6 7 8; do "
          "stack=$stack,$stack; done; echo '" HELLO_OF "[{\"name\":\"b\"},'$stack']}';",
          "closed(it broke the protocol in line 1: hello: stacks: there are more" },
        { SAY("{\"event\":1}"),
          "closed(it broke the protocol in line 1: a line without" },
        { SAY("{\"event\":\"exited\",\"run\":\"R1\"}"),
          "closed(it broke the protocol in line 1: 'exited' before hello" },
        { HELLO HELLO,
          "hello(h) closed(it broke the protocol in line 2: a second hello" },
        { SAY("{\"event\":\"stacks\",\"stacks\":[]}"),
          "closed(it broke the protocol in line 1: 'stacks' before hello" },
        { HELLO SAY("{\"event\":\"stacks\"}"),
          "hello(h) closed(it broke the protocol in line 2: stacks: stacks is missing" },
        { HELLO SAY("{\"event\":\"stacks\",\"stacks\":[{\"name\":7}]}"),
          "hello(h) closed(it broke the protocol in line 2: stacks: stacks[0]: name" },
        { HELLO SAY("{\"event\":\"stacks\",\"stacks\":[{\"name\":\"a\"}]}") "echo x;",
          "hello(h) stacks(1) closed(it broke the protocol in line 3" },
        { HELLO SAY("{\"event\":\"ending\",\"cause\":\"x\"}"),
          "hello(h) closed(it broke the protocol in line 2: ending: notice_ms is "
          "missing" },
        { HELLO SAY("{\"event\":\"started\",\"run\":\"R9\"}"),
          "hello(h) closed(it broke the protocol in line 2: 'started' for a run" },
        { "head -c 5000000 /dev/zero | tr '\\000' x;",
          "closed(it wrote a line of more than" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char script[1024];

        /* Neither one that stays nor one that goes may change what is told. */
        snprintf(script, sizeof script, "%s exec sleep 1000", cases[i].script);
        expect(script, 1, cases[i].cause);
        snprintf(script, sizeof script, "%s exec cat >/dev/null", cases[i].script);
        expect(script, 1, cases[i].cause);
    }
}

static void test_a_run(void **state)
{
    (void)state;
    expect(HELLO STARTED SAY("{\"event\":\"worker\",\"run\":\"R1\",\"data\":{\"a\":1}}")
               SAY("{\"event\":\"of_the_future\",\"run\":\"R9\"}")
                   SAY("{\"event\":\"garbage\",\"run\":\"R1\",\"cause\":\"line 2\"}")
                       EXITED_WITH("0", "null", "exited") "exit 0",
           1,
           "hello(h) started(R1,5,6) worker(R1,1) garbage(R1,line 2) "
           "exited(R1,0,0,exited,1.5,7,text,4,9) closed(exit status 0)");
    expect(HELLO "read line;" SAY(
               "{\"event\":\"refused\",\"run\":\"R1\",\"cause\":\"busy\"}") "exit 0",
           1, "hello(h) refused(R1,busy) closed(exit status 0)");
    expect(HELLO STARTED EXITED_WITH("null", "11", "timeout") "exit 0", 1,
           "hello(h) started(R1,5,6) exited(R1,-1,11,timeout");
    expect(HELLO STARTED EXITED_WITH("null", "null", "stuck") "exit 0", 1,
           "hello(h) started(R1,5,6) exited(R1,-1,0,stuck");
}

/* What the agent says of several iterations is no event of the worker, and the other way
 * round. */
static void test_several_iterations(void **state)
{
    (void)state;
    expect(HELLO STARTED SAY("{\"event\":\"iterations\",\"run\":\"R1\",\"i\":0}")
               SAY("{\"event\":\"worker\",\"run\":\"R1\",\"data\":{\"event\":"
                   "\"iterations\"}}") EXITED_WITH("0", "null", "exited") "exit 0",
           1, "hello(h) started(R1,5,6) iterations(R1,3) worker(R1,1) exited(R1,");
}

static void test_what_is_sent(void **state)
{
    (void)state;
    expect(HELLO
           "read line; want='{\"command\":\"run\",\"run\":\"R1\",\"stack\":\"cpu\","
           "\"device\":\"cpu:h\",\"timeout_ms\":1000,\"arguments\":{\"workload\":"
           "\"conv_wgrad\",\"variant\":\"ordered\",\"size\":\"small\",\"dtype\":"
           "\"float32\",\"seed\":\"7\",\"iterations\":10},\"merge_iterations\":"
           "true}';"
           "[ \"$line\" = \"$want\" ] && exit 42; exit 1",
           1, "hello(h) closed(exit status 42)");
}

static void test_events_that_are_not_due(void **state)
{
    static const char *const bad[] = {
        SAY("{\"event\":\"worker\",\"run\":\"R1\",\"data\":{}}"),
        SAY("{\"event\":\"iterations\",\"run\":\"R1\"}"),
        SAY("{\"event\":\"garbage\",\"run\":\"R1\",\"cause\":\"x\"}"),
        EXITED_WITH("0", "null", "exited"),
        STARTED SAY("{\"event\":\"started\",\"run\":\"R1\",\"pid\":5,"
                    "\"process_start\":6}"),
        STARTED SAY("{\"event\":\"refused\",\"run\":\"R1\",\"cause\":\"x\"}"),
        STARTED EXITED_WITH("0", "null", "exited") EXITED_WITH("0", "null", "exited"),
        STARTED SAY("{\"event\":\"worker\",\"run\":\"R2\",\"data\":{}}"),
        STARTED SAY("{\"event\":\"worker\",\"run\":7,\"data\":{}}"),
        STARTED SAY("{\"event\":\"worker\",\"run\":\"R1\",\"data\":[]}"),
        STARTED SAY("{\"event\":\"worker\",\"run\":\"R1\"}"),
        STARTED SAY("{\"event\":\"garbage\",\"run\":\"R1\",\"cause\":1}"),
        STARTED SAY("{\"event\":\"exited\",\"run\":\"R1\"}"),
        STARTED EXITED_WITH("null", "null", "exited"),
        STARTED EXITED_WITH("0", "9", "exited"),
        STARTED EXITED_WITH("\"0\"", "null", "exited"),
        STARTED EXITED_WITH("4294967296", "null", "exited"),
        STARTED EXITED_WITH("-1", "null", "exited"),
        STARTED EXITED_WITH("0", "null", "fine"),
        STARTED
        "printf '%s%65537s%s\\n' '{\"event\":\"exited\",\"run\":\"R1\","
        "\"exit_code\":0,\"signal\":null,\"reason\":\"exited\",\"wall_ms\":1,"
        "\"max_rss_kb\":7,\"log_bytes\":9,\"log\":\"' x '\"}';",
        "read line; echo '{\"event\":\"started\",\"run\":\"R1\",\"pid\":\"5\"}';",
        "read line; echo '{\"event\":\"refused\",\"run\":\"R1\"}';",
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct fixture f = { .runs = 1 };
        char script[2048];

        snprintf(script, sizeof script, HELLO "%s exec cat >/dev/null", bad[i]);
        run_script(&f, script);
        if (!strstr(f.seen.data, "closed(it broke the protocol in line")) {
            fail_msg("%s\n  told: %s", bad[i], f.seen.data);
        }
        buf_release(&f.seen);
    }
}

static void test_an_agent_that_is_told_to_end(void **state)
{
    (void)state;
    expect(HELLO SAY("{\"event\":\"ending\",\"cause\":\"SIGTERM\",\"notice_ms\":30000}")
               SAY("{\"event\":\"ending\",\"cause\":\"\",\"notice_ms\":0}") "exit 0",
           0, "hello(h) ending(SIGTERM,30000) ending(told to,0) closed(exit status 0)");
}

/* A launch command may stand in a queue for as long as it takes. */
static void test_no_deadline_for_hello(void **state)
{
    (void)state;
    events.hello_deadline_ms = -1;
    expect("sleep 0.3; " HELLO "exit 0", 0, "hello(h) closed(exit status 0)");
    expect("sleep 0.3; exit 7", 0, "closed(exit status 7)");
    events.hello_deadline_ms = HELLO_LONG_MS;
}

/* Options join the arguments. */
static void test_options(void **state)
{
    struct fixture f = { .runs = 1, .options = { .probes = 3, .probe_names = "a" } };

    (void)state;
    run_script(&f, HELLO
               "read line; case $line in "
               "*'\"seed\":\"7\"'*'\"probe-names\":\"a\",\"probes\":3'*) exit 4;;"
               "*) echo \"$line\" >&2;; esac; exit 5");
    assert_string_equal(f.seen.data, "hello(h) closed(exit status 4)");
    buf_release(&f.seen);
}

/* Beside the arguments: an older agent passes those on to a worker that may be older,
 * too. */
static void test_a_run_that_checks_itself(void **state)
{
    struct fixture f = { .runs = 1, .check_seconds = 60 };

    (void)state;
    run_script(&f, HELLO
               "read line; case $line in "
               "*'},\"merge_iterations\":true,\"check_seconds\":60}') exit 4;;"
               "*) echo \"$line\" >&2;; esac; exit 5");
    assert_string_equal(f.seen.data, "hello(h) closed(exit status 4)");
    buf_release(&f.seen);
    f = (struct fixture){ .runs = 1, .check_seconds = 60, .check_passed = "aa" };
    run_script(&f, HELLO
               "read line; case $line in "
               "*'},\"merge_iterations\":true,\"check_seconds\":60,\"check_passed\":"
               "\"aa\"}') exit 4;;"
               "*) echo \"$line\" >&2;; esac; exit 5");
    assert_string_equal(f.seen.data, "hello(h) closed(exit status 4)");
    buf_release(&f.seen);
}

#define PINGS_HELLO                                                                      \
    "echo '{\"event\":\"hello\",\"v\":1,\"host\":\"h\",\"pid\":1,\"boot_id\":\"b\","     \
    "\"pings\":true,\"stacks\":[]}';"

/* One that cannot be pinged may be silent for ever; one that is stopped takes no signal
 * but SIGKILL. */
static void test_an_agent_that_does_not_answer(void **state)
{
    (void)state;
    events.ping_ms = PING_SHORT_MS;
    expect(HELLO "sleep 0.5; exit 3", 0, "hello(h) closed(exit status 3)");
    expect(PINGS_HELLO "kill -STOP $$", 0,
           "hello(h) silent closed(it does not answer: nothing was heard in 60 pings)");
    expect(PINGS_HELLO "trap '' TERM; while :; do sleep 1000; done", 0,
           "hello(h) silent closed(it does not answer");
    events.ping_ms = 0;
}

/* Whatever it says is an answer. */
static void test_an_agent_that_answers_late(void **state)
{
    (void)state;
    events.ping_ms = 200; /* 60 of them are longer than any machine takes to wake up */
    expect(PINGS_HELLO
           "sleep 1; while read line; do"
           " echo '{\"event\":\"pong\"}'; n=$n.;"
           " case $n in ....*) exit 4;; esac; done",
           0, "hello(h) silent heard closed(exit status 4)");
    events.ping_ms = 0;
}

/* It hears something now and then, however much it says. */
static void test_an_agent_that_speaks_is_pinged(void **state)
{
    struct fixture f = { .runs = 1 };

    (void)state;
    events.ping_ms = 200;
    run_script(&f, PINGS_HELLO STARTED
               "while :; do " SAY("{\"event\":\"worker\",\"run\":\"R1\",\"data\":{}}")
               "sleep 0.02; done & read l; kill $!; case $l in *ping*) exit 4; esac");
    assert_non_null(strstr(f.seen.data, "closed(exit status 4)"));
    buf_release(&f.seen);
    events.ping_ms = 0;
}

static void test_closing(void **state)
{
    static const char *const scripts[] = {
        HELLO "cat >/dev/null; echo '{}'; exit 1",
        HELLO "exec sleep 1000",
        HELLO "trap '' TERM; while :; do sleep 1000; done",
    };

    (void)state;
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        struct fixture f = { .close_on_hello = true };

        run_script(&f, scripts[i]);
        assert_string_equal(f.seen.data, "hello(h) ");
        buf_release(&f.seen);
    }
}

static void test_an_agent_that_does_not_read(void **state)
{
    (void)state;
    expect(HELLO "exec sleep 1000", 10000, "hello(h) closed(it does not read its input)");
}

static void test_an_agent_that_cannot_be_started(void **state)
{
    char *const argv[] = { (char *)"/nowhere/agent", NULL };
    struct link *link;
    uv_loop_t loop;
    struct err err;

    (void)state;
    uv_loop_init(&loop);
    assert_int_equal(link_open(&loop, "h", argv, &events, NULL, &link, &err), ERR_IO);
    assert_non_null(strstr(err.message, "/nowhere/agent"));
    assert_int_equal(uv_loop_close(&loop), 0);
}

static bool is_dead(pid_t pid)
{
    struct proc_stat stat;

    return proc_stat(pid, &stat) != 0 || stat.state == 'Z';
}

static void wait_dead(pid_t pid)
{
    for (int i = 0; i < 6000 && !is_dead(pid); i++) {
        usleep(10000);
    }
    assert_true(is_dead(pid));
}

/* What a worker of a dead agent left is killed; what a launch command left is not. */
static void test_orphans(void **state)
{
    (void)state;
    for (int worker = 0; worker < 2; worker++) {
        struct fixture f = { .runs = 1 };
        char script[1024];

        snprintf(script, sizeof script,
                 HELLO
                 "read line; %s setsid sh -c 'echo \"{\\\"event\\\":\\\"started\\\","
                 "\\\"run\\\":\\\"R1\\\",\\\"pid\\\":$$,\\\"process_start\\\":1}\";"
                 " exec sleep 1000 >/dev/null 2>&1' & until grep -q sleep /proc/$!/comm; "
                 "do sleep 0.1; done; kill -9 $$",
                 worker ? "REPROD_RESULT_FD=3" : "");
        run_script(&f, script);
        assert_non_null(strstr(f.seen.data, "started(R1"));
        assert_true(f.pid > 1);
        if (worker) {
            wait_dead((pid_t)f.pid);
        } else {
            assert_false(is_dead((pid_t)f.pid));
            kill((pid_t)f.pid, SIGKILL);
        }
        buf_release(&f.seen);
    }
}

static void drop(void *arg, const char *line)
{
    (void)arg;
    (void)line;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_how_it_goes_away),
        cmocka_unit_test(test_no_hello),
        cmocka_unit_test(test_the_slowest_stack_has_its_time),
        cmocka_unit_test(test_what_breaks_the_protocol),
        cmocka_unit_test(test_a_run),
        cmocka_unit_test(test_several_iterations),
        cmocka_unit_test(test_what_is_sent),
        cmocka_unit_test(test_events_that_are_not_due),
        cmocka_unit_test(test_an_agent_that_is_told_to_end),
        cmocka_unit_test(test_no_deadline_for_hello),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_a_run_that_checks_itself),
        cmocka_unit_test(test_an_agent_that_does_not_answer),
        cmocka_unit_test(test_an_agent_that_answers_late),
        cmocka_unit_test(test_an_agent_that_speaks_is_pinged),
        cmocka_unit_test(test_closing),
        cmocka_unit_test(test_an_agent_that_does_not_read),
        cmocka_unit_test(test_an_agent_that_cannot_be_started),
        cmocka_unit_test(test_orphans),
    };

    log_set_sink(drop, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
