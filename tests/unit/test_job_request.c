#include "api/job_request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "workloads/evidence/trace_place.h"

/* Two workloads: wgrad (cpu and cuda) and ctc (cpu alone, more variants and sizes). */
static const char catalogue_text[] =
    "[{'workload':'wgrad','version':2,'backend':'cpu','title':'t','summary':'s',"
    " 'variants':[{'name':'unordered','summary':'s','models':'m','algorithm':'a',"
    "              'claim':null,'control':true},"
    "             {'name':'ordered','summary':'s','models':'m','algorithm':'a',"
    "              'claim':null,'control':false}],"
    " 'sizes':[{'name':'small','description':'d'},{'name':'large','description':'d'}],"
    " 'dtypes':['float32','float64'],'weight_sum':'w','loss':null,'no_control':null},"
    " {'workload':'wgrad','version':3,'backend':'cuda','title':'t','summary':'s',"
    " 'variants':[{'name':'unordered','summary':'s','models':'m','algorithm':'a',"
    "              'claim':null,'control':true}],"
    " 'sizes':[{'name':'large','description':'d'}],"
    " 'dtypes':['float32'],'weight_sum':'w','loss':null,'no_control':null},"
    " {'workload':'ctc','version':1,'backend':'cpu','title':'t','summary':'s',"
    " 'variants':[{'name':'ordered','summary':'s','models':'m','algorithm':'a',"
    "              'claim':null,'control':false},"
    "             {'name':'patched','summary':'s','models':'m','algorithm':'a',"
    "              'claim':null,'control':false}],"
    " 'sizes':[{'name':'small','description':'d'}],"
    " 'dtypes':['float32'],'weight_sum':'w','loss':null,'no_control':'fixed order'}]";

static const struct api_device devices[] = {
    { .id = "cpu:a",
      .backend = "cpu",
      .stack = "cpu",
      .host = "a",
      .is_default = true,
      .online = true },
    { .id = "cpu:b", .backend = "cpu", .stack = "cpu", .host = "b", .is_default = true },
    { .id = "GPU-1",
      .backend = "cuda",
      .stack = "cudnn9",
      .host = "a",
      .is_default = true,
      .online = true },
    { .id = "GPU-1", .backend = "cuda", .stack = "cudnn8", .host = "a", .online = true },
};
enum { DEVICES = 4 };

static struct catalogue *catalogue;

static json_t *json_of(const char *text)
{
    char copy[8192];
    json_error_t error;
    json_t *root;

    snprintf(copy, sizeof copy, "%s", text);
    for (char *c = copy; *c; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    root = json_loads(copy, 0, &error);
    if (!root) {
        fail_msg("%s: %s", error.text, copy);
    }
    return root;
}

static int make_catalogue(void **state)
{
    json_t *array = json_of(catalogue_text);
    struct err err;

    (void)state;
    catalogue = catalogue_new();
    assert_int_equal(catalogue_add(catalogue, array, &err), ERR_OK);
    json_decref(array);
    return 0;
}

static int free_catalogue(void **state)
{
    (void)state;
    catalogue_free(catalogue);
    return 0;
}

static struct job expand(const char *text)
{
    json_t *request = json_of(text);
    struct problems problems = { .count = 0 };
    struct job job;
    enum err_code code =
        job_request_expand(request, catalogue, devices, DEVICES, &job, &problems);

    if (code != ERR_OK) {
        fail_msg("%s: %s: %s", text, problems.items[0].pointer, problems.items[0].detail);
    }
    json_decref(request);
    return job;
}

/* Expects exactly one problem. */
static void refuse(const char *text, enum problem_kind kind, const char *pointer,
                   const char *words)
{
    json_t *request = json_of(text);
    struct problems problems = { .count = 0 };
    struct job job;

    assert_int_equal(
        job_request_expand(request, catalogue, devices, DEVICES, &job, &problems),
        ERR_INVALID);
    if (problems.count != 1 || strcmp(problems.items[0].pointer, pointer) != 0 ||
        problems.items[0].kind != kind || !strstr(problems.items[0].detail, words)) {
        fail_msg("%s: %d problems: %d %s: %s", text, problems.count,
                 problems.items[0].kind, problems.items[0].pointer,
                 problems.items[0].detail);
    }
    problems_release(&problems);
    json_decref(request);
}

static void test_defaults(void **state)
{
    struct job job = expand("{}");

    (void)state;
    /* cpu:a has ctc x 2 and wgrad x 2, GPU-1 has wgrad x 1; cpu:b is offline. */
    assert_int_equal(job.item_count, 5);
    assert_int_equal(job.runs_total, 25);
    assert_int_equal(job.iterations, 10);
    assert_int_equal(job.timeout_ms, 60000);
    assert_int_equal(job.priority, JOB_INTERACTIVE);
    assert_false(job.stop_when_varies);
    assert_false(job.survey);
    assert_string_equal(job.request, "{}");
    assert_string_equal(job.items[0].key.workload, "ctc");
    assert_string_equal(job.items[0].no_control, "fixed order");
    assert_false(job.items[0].is_control);
    assert_string_equal(job.items[2].key.variant, "unordered");
    assert_true(job.items[2].is_control);
    assert_string_equal(job.items[4].device, "GPU-1");
    assert_string_equal(job.items[4].stack, "cudnn9");
    assert_string_equal(job.items[4].key.size, "large");
    assert_int_equal(job.items[4].key.version, 3);
    for (int i = 0; i < job.item_count; i++) {
        assert_int_equal(job.items[i].seq, i);
        assert_int_equal(job.items[i].runs_wanted, 5);
        assert_int_equal(job.items[i].key.seed, 1);
    }
    job_release(&job);
}

static void test_variants_of_a_case_are_adjacent(void **state)
{
    struct job job = expand(
        "{'workloads':['wgrad'],'devices':['cpu:a'],'sizes':['small',"
        "'large'],'dtypes':['float64','float32'],'seeds':[1,2]}");

    (void)state;
    assert_int_equal(job.item_count, 16);
    for (int i = 0; i < job.item_count; i += 2) {
        const struct case_key *a = &job.items[i].key;
        const struct case_key *b = &job.items[i + 1].key;

        assert_string_equal(a->variant, "unordered");
        assert_string_equal(b->variant, "ordered");
        assert_string_equal(a->size, b->size);
        assert_string_equal(a->dtype, b->dtype);
        assert_int_equal(a->seed, b->seed);
    }
    job_release(&job);
}

static void test_a_variant_applies_to_those_that_have_it(void **state)
{
    struct job job = expand("{'variants':['patched','unordered'],'devices':['cpu:a']}");

    (void)state;
    assert_int_equal(job.item_count, 2);
    assert_string_equal(job.items[0].key.variant, "patched");
    assert_string_equal(job.items[1].key.variant, "unordered");
    job_release(&job);
}

static void test_a_named_device_may_be_offline(void **state)
{
    struct job job = expand("{'devices':['cpu:b']}");

    (void)state;
    assert_int_equal(job.item_count, 4);
    job_release(&job);
}

/* Which stacks GPU-1 gets, of its first, cudnn9, and cudnn8. */
static void expect_stacks(const char *text, const char *first, const char *second)
{
    struct job job = expand(text);
    const struct job_item *items = job.items;
    int at = 0;

    while (at < job.item_count && strcmp(items[at].device, "GPU-1") != 0) {
        at++;
    }
    assert_int_equal(job.item_count - at, second ? 2 : 1);
    assert_string_equal(items[at].stack, first);
    if (second) {
        assert_string_equal(items[at + 1].stack, second);
        assert_string_equal(items[at + 1].device, "GPU-1");
    }
    job_release(&job);
}

static void test_stacks_of_a_device(void **state)
{
    (void)state;
    expect_stacks("{}", "cudnn9", NULL);
    expect_stacks("{'devices':['GPU-1']}", "cudnn9", NULL);
    expect_stacks("{'stacks':['cudnn9']}", "cudnn9", NULL);
    expect_stacks("{'stacks':['cudnn8']}", "cudnn8", NULL);
    expect_stacks("{'stacks':['cudnn8','cudnn9']}", "cudnn9", "cudnn8");
    expect_stacks("{'stacks':'all'}", "cudnn9", "cudnn8");
    expect_stacks("{'stacks':'all','devices':['GPU-1']}", "cudnn9", "cudnn8");
    expect_stacks("{'survey':true}", "cudnn9", "cudnn8");
    expect_stacks("{'survey':true,'stacks':['cudnn8']}", "cudnn8", NULL);
}

static void test_named_stacks_narrow_the_devices(void **state)
{
    struct job job = expand("{'stacks':['cudnn8']}");

    (void)state;
    assert_int_equal(job.item_count, 1);
    job_release(&job);
}

/* Workers of two stacks need not have the same workloads. */
static void test_a_stack_runs_what_its_worker_has(void **state)
{
    json_t *has = json_of("[{'workload':'wgrad'},{'no':'name'}]");
    const struct api_device some[] = {
        { .id = "cpu:a",
          .backend = "cpu",
          .stack = "cpu",
          .host = "a",
          .is_default = true,
          .online = true },
        { .id = "cpu:a",
          .backend = "cpu",
          .stack = "old",
          .host = "a",
          .online = true,
          .catalogue = has },
    };
    struct problems problems = { .count = 0 };
    struct job job;
    json_t *all = json_of("{'survey':true}");
    json_t *lacking = json_of("{'workloads':['ctc'],'stacks':['old']}");

    (void)state;
    assert_int_equal(job_request_expand(all, catalogue, some, 2, &job, &problems),
                     ERR_OK);
    assert_int_equal(job.item_count, 6);
    for (int i = 4; i < 6; i++) {
        assert_string_equal(job.items[i].stack, "old");
        assert_string_equal(job.items[i].key.workload, "wgrad");
    }
    job_release(&job);
    assert_int_equal(job_request_expand(lacking, catalogue, some, 2, &job, &problems),
                     ERR_INVALID);
    assert_string_equal(problems.items[0].pointer, "/workloads/0");
    problems_release(&problems);
    json_decref(has);
    json_decref(all);
    json_decref(lacking);
}

/* An external workload: in a stack that is not the device's first, slow, and not for
 * surveys. */
static void test_a_workload_finds_its_stack(void **state)
{
    static const char entry[] =
        "[{'workload':'own','version':1,'backend':'cpu','title':'t','summary':'s',"
        " 'variants':[{'name':'plain','summary':'s','models':'m','algorithm':'a',"
        "              'claim':null,'control':false}],"
        " 'sizes':[{'name':'small','description':'d'}],'dtypes':['float32'],"
        " 'weight_sum':'w','loss':null,'no_control':'n','external':true,"
        " 'timeout_seconds':600,'survey':false}]";
    static const struct {
        const char *request;
        int items, own, timeout_ms;
    } rows[] = {
        { "{}", 2, 0, 60000 },
        { "{'survey':true}", 2, 0, 60000 },
        { "{'stacks':['external','cpu']}", 2, 0, 60000 },
        { "{'workloads':['own']}", 1, 1, 600000 },
        { "{'workloads':['own','wgrad'],'devices':['cpu:a']}", 3, 1, 600000 },
        { "{'workloads':['own'],'stacks':['external']}", 1, 1, 600000 },
        { "{'workloads':['own'],'survey':true}", 1, 1, 600000 },
        { "{'workloads':['own'],'timeout_seconds':5}", 1, 1, 5000 },
    };
    json_t *has = json_of(entry), *wgrad = json_of("[{'workload':'wgrad'}]");
    struct api_device some[] = {
        { .id = "cpu:a", .backend = "cpu", .stack = "cpu", .is_default = true },
        { .id = "cpu:a", .backend = "cpu", .stack = "external" },
    };
    struct err err;

    (void)state;
    assert_int_equal(catalogue_add(catalogue, has, &err), ERR_OK);
    some[0].host = some[1].host = "a";
    some[0].online = some[1].online = true;
    some[0].catalogue = wgrad;
    some[1].catalogue = has;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *request = json_of(rows[i].request);
        struct problems problems = { .count = 0 };
        struct job job;
        int own = 0;

        assert_int_equal(job_request_expand(request, catalogue, some, 2, &job, &problems),
                         ERR_OK);
        for (int k = 0; k < job.item_count; k++) {
            bool external = strcmp(job.items[k].key.workload, "own") == 0;

            own += external;
            assert_string_equal(job.items[k].stack, external ? "external" : "cpu");
        }
        assert_int_equal(job.item_count, rows[i].items);
        assert_int_equal(own, rows[i].own);
        assert_int_equal(job.timeout_ms, rows[i].timeout_ms);
        job_release(&job);
        json_decref(request);
    }
    json_decref(has);
    json_decref(wgrad);
}

static void test_survey_changes_defaults_only(void **state)
{
    struct job job = expand("{'survey':true}");

    (void)state;
    assert_true(job.survey && job.stop_when_varies);
    assert_int_equal(job.priority, JOB_BACKGROUND);
    assert_int_equal(job.item_count, 6);
    job_release(&job);
    job = expand(
        "{'survey':true,'stop_when_varies':false,'priority':'interactive',"
        "'runs':2,'workloads':['ctc'],'note':'x'}");
    assert_false(job.stop_when_varies);
    assert_int_equal(job.priority, JOB_INTERACTIVE);
    assert_int_equal(job.runs_total, 4);
    job_release(&job);
}

static void test_seeds_keep_all_bits(void **state)
{
    struct job job = expand(
        "{'seeds':['18446744073709551615',7],'workloads':['ctc'],"
        "'variants':['ordered'],'timeout_seconds':0.25}");

    (void)state;
    assert_true(job.items[0].key.seed == UINT64_MAX);
    assert_int_equal(job.items[1].key.seed, 7);
    assert_int_equal(job.timeout_ms, 250);
    assert_non_null(strstr(job.request, "\"18446744073709551615\""));
    job_release(&job);
}

static void expect_options(const char *request, const char *options)
{
    struct job job = expand(request);

    for (int i = 0; i < job.item_count; i++) {
        assert_string_equal(job.items[i].options, options);
    }
    job_release(&job);
}

static void test_circumstances(void **state)
{
    static const char *const wrong[] = { "0", "-1", "65", "1.5", "'4'", "null", "true" };

    (void)state;
    expect_options("{'memory_poison':false,'allocation_jitter':false}", "");
    expect_options("{'memory_poison':true,'contention':64,'allocation_jitter':true}",
                   "{\"allocation-jitter\":\"random\",\"contention\":64,"
                   "\"memory-poison\":\"random\"}");
    expect_options(
        "{'memory_poison':'0badcafe','allocation_jitter':'18446744073709551615'}",
        "{\"allocation-jitter\":\"18446744073709551615\","
        "\"memory-poison\":\"0badcafe\"}");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char text[64];

        snprintf(text, sizeof text, "{'contention':%s}", wrong[i]);
        refuse(text, PROBLEM_INVALID, "/contention", "from 1 to 64");
    }
    refuse("{'memory_poison':'0BADCAFE'}", PROBLEM_INVALID, "/memory_poison", "8 hex");
    refuse("{'memory_poison':'random'}", PROBLEM_INVALID, "/memory_poison", "8 hex");
    refuse("{'memory_poison':1}", PROBLEM_INVALID, "/memory_poison", "true, false or");
    refuse("{'allocation_jitter':7}", PROBLEM_INVALID, "/allocation_jitter", "a seed");
    refuse("{'allocation_jitter':'18446744073709551616'}", PROBLEM_INVALID,
           "/allocation_jitter", "a seed");
    refuse("{'allocation_jitter':'007'}", PROBLEM_INVALID, "/allocation_jitter",
           "without leading zeros");
    refuse("{'contentions':4}", PROBLEM_UNKNOWN_MEMBER, "/contentions", "'contention'?");
}

static void test_probes(void **state)
{
    static const char *const wrong[] = { "0",    "-1", "1.5",          "'1'",
                                         "null", "[]", "1000000000001" };
    static const char *const wrong_steps[] = { "1",      "[]",      "[1]",      "[2,1]",
                                               "[-1,2]", "[1,2,3]", "['1','2']" };
    char text[512];

    (void)state;
    expect_options("{'probes':false}", "");
    expect_options("{'probes':true}", "{\"probes\":1}");
    expect_options("{'probes':10}", "{\"probes\":10}");
    expect_options("{'probes':{}}", "{\"probes\":1}");
    expect_options("{'probes':{'every':2,'names':'conv*','steps':[0,99]},'contention':2}",
                   "{\"contention\":2,\"probe-names\":\"conv*\","
                   "\"probe-steps\":\"0-99\",\"probes\":2}");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        snprintf(text, sizeof text, "{'probes':%s}", wrong[i]);
        refuse(text, PROBLEM_INVALID, "/probes", "true, false, an object or a number");
        if (strcmp(wrong[i], "null") != 0) {
            snprintf(text, sizeof text, "{'probes':{'every':%s}}", wrong[i]);
            refuse(text, PROBLEM_INVALID, "/probes/every", "a number of steps from 1");
        }
    }
    for (size_t i = 0; i < sizeof wrong_steps / sizeof wrong_steps[0]; i++) {
        snprintf(text, sizeof text, "{'probes':{'steps':%s}}", wrong_steps[i]);
        refuse(text, PROBLEM_INVALID, "/probes/steps", "first and the last");
    }
    refuse("{'probes':{'names':''}}", PROBLEM_INVALID, "/probes/names", "glob");
    refuse("{'probes':{'names':'-x'}}", PROBLEM_INVALID, "/probes/names", "begin with");
    refuse("{'probes':{'names':7}}", PROBLEM_INVALID, "/probes/names", "glob");
    snprintf(text, sizeof text, "{'probes':{'names':'%0*d'}}", TRACE_PLACE_MAX + 1, 0);
    refuse(text, PROBLEM_INVALID, "/probes/names", "1 to 128 bytes");
    refuse("{'probes':{'name':'x'}}", PROBLEM_UNKNOWN_MEMBER, "/probes", "'names'?");
    refuse("{'probe':true}", PROBLEM_UNKNOWN_MEMBER, "/probe", "'probes'?");
}

/* What is asked for at most is stored whole. */
static void test_the_longest_options_fit(void **state)
{
    char text[512];
    char names[TRACE_PLACE_MAX + 1];
    json_t *options;
    struct job job;

    (void)state;
    memset(names, 'x', sizeof names);
    names[TRACE_PLACE_MAX] = '\0';
    snprintf(text, sizeof text,
             "{'memory_poison':'0badcafe','allocation_jitter':'18446744073709551615',"
             "'contention':64,'probes':{'every':1000000000000,'names':'%s','steps':"
             "[1000000000000,1000000000000]}}",
             names);
    job = expand(text);
    options = json_loads(job.items[0].options, 0, NULL);
    assert_int_equal(json_object_size(options), 6);
    json_decref(options);
    job_release(&job);
}

static void test_unknown_names_get_the_nearest(void **state)
{
    (void)state;
    refuse("{'workloads':['wgrad','wgrat']}", PROBLEM_UNKNOWN_WORKLOAD, "/workloads/1",
           "'wgrad'?");
    refuse("{'variants':['orderd']}", PROBLEM_UNKNOWN_VARIANT, "/variants/0",
           "'ordered'?");
    refuse("{'workloads':['wgrad'],'variants':['patched']}", PROBLEM_UNKNOWN_VARIANT,
           "/variants/0", "none of the chosen");
    refuse("{'sizes':['smal']}", PROBLEM_UNKNOWN_SIZE, "/sizes/0", "'small'?");
    refuse("{'dtypes':['float16']}", PROBLEM_UNKNOWN_DTYPE, "/dtypes/0", "'float");
    refuse("{'devices':['cpu:c']}", PROBLEM_UNKNOWN_DEVICE, "/devices/0", "'cpu:");
    refuse("{'stacks':['cudnn9','cudnm8']}", PROBLEM_UNKNOWN_STACK, "/stacks/1",
           "'cudnn8'?");
    refuse("{'run':5}", PROBLEM_UNKNOWN_MEMBER, "/run", "'runs'?");
    refuse("{'a/b~c':5}", PROBLEM_UNKNOWN_MEMBER, "/a~1b~0c", "no member");
}

static void test_values_out_of_bounds(void **state)
{
    static const char *const values[] = { "0",    "-1",   "1.5", "'5'",
                                          "null", "true", "[]",  "100001" };

    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        char text[64];

        snprintf(text, sizeof text, "{'runs':%s}", values[i]);
        refuse(text, PROBLEM_INVALID, "/runs", "from 1 to 100000");
    }
    refuse("{'iterations':1001}", PROBLEM_INVALID, "/iterations", "1000");
    refuse("{'timeout_seconds':0}", PROBLEM_INVALID, "/timeout_seconds", "number");
    refuse("{'timeout_seconds':'60'}", PROBLEM_INVALID, "/timeout_seconds", "number");
    refuse("{'priority':'urgent'}", PROBLEM_INVALID, "/priority", "interactive");
    refuse("{'stacks':'cudnn9'}", PROBLEM_INVALID, "/stacks", "\"all\"");
    refuse("{'stacks':7}", PROBLEM_INVALID, "/stacks", "array");
    refuse("{'stacks':[]}", PROBLEM_INVALID, "/stacks", "leave the member out");
    refuse("{'survey':1}", PROBLEM_INVALID, "/survey", "true or false");
    refuse("{'note':7}", PROBLEM_INVALID, "/note", "text");
    refuse("{'seed':-1}", PROBLEM_INVALID, "/seed", "integer");
    refuse("{'seed':'18446744073709551616'}", PROBLEM_INVALID, "/seed", "integer");
    refuse("{'seed':1,'seeds':[2]}", PROBLEM_INVALID, "/seed", "not both");
    refuse("{'seeds':[]}", PROBLEM_INVALID, "/seeds", "1 to");
    refuse("{'workloads':'wgrad'}", PROBLEM_INVALID, "/workloads", "array");
    refuse("{'workloads':[]}", PROBLEM_INVALID, "/workloads", "leave the member out");
    refuse("{'workloads':['wgrad','wgrad']}", PROBLEM_INVALID, "/workloads/1", "twice");
    refuse("{'workloads':[7]}", PROBLEM_INVALID, "/workloads/0", "name");
    refuse("[]", PROBLEM_INVALID, "", "object");
}

static void test_all_problems_at_once(void **state)
{
    json_t *request = json_of("{'workloads':['x','y'],'devices':['z'],'runs':0}");
    struct problems problems = { .count = 0 };
    struct job job;

    (void)state;
    assert_int_equal(
        job_request_expand(request, catalogue, devices, DEVICES, &job, &problems),
        ERR_INVALID);
    assert_int_equal(problems.count, 4);
    assert_int_equal(problems_kind(&problems), PROBLEM_INVALID);
    problems_release(&problems);
    json_decref(request);
}

static void test_limits_of_the_whole(void **state)
{
    struct buf text = BUF_INIT;

    (void)state;
    refuse(
        "{'runs':100000,'iterations':1,'seeds':[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,"
        "17,18,19,20,21,22,23]}",
        PROBLEM_INVALID, "/runs", "10000000");
    buf_puts(&text,
             "{'devices':['cpu:a','cpu:b'],'workloads':['wgrad'],"
             "'dtypes':['float32','float64'],'sizes':['small','large'],'seeds':[0");
    for (int i = 1; i < 700; i++) {
        buf_printf(&text, ",%d", i);
    }
    buf_puts(&text, "]}");
    refuse(text.data, PROBLEM_INVALID, "", "11200 items");
    buf_release(&text);
}

static void test_backend_without_the_workload(void **state)
{
    (void)state;
    refuse("{'workloads':['ctc'],'devices':['GPU-1']}", PROBLEM_INVALID, "/workloads/0",
           "no implementation");
    refuse("{'workloads':['wgrad'],'sizes':['small'],'devices':['GPU-1']}",
           PROBLEM_INVALID, "", "nothing is left");
    refuse("{'devices':['cpu:a'],'stacks':['cudnn9']}", PROBLEM_INVALID, "", "no device");
}

static void test_no_device_online(void **state)
{
    json_t *request = json_of("{}");
    struct problems problems = { .count = 0 };
    struct job job;

    (void)state;
    assert_int_equal(
        job_request_expand(request, catalogue, devices + 1, 1, &job, &problems),
        ERR_BUSY);
    assert_int_equal(problems_kind(&problems), PROBLEM_NO_DEVICE);
    problems_release(&problems);
    json_decref(request);
}

static void test_localise(void **state)
{
    static const char one[] =
        "{'workloads':['wgrad'],'variants':['unordered'],'devices':['cpu:a'],"
        "'localise':true%s}";
    char text[512];
    struct job job;

    (void)state;
    snprintf(text, sizeof text, one, "");
    job = expand(text);
    assert_int_equal(job.localise_runs, 5);
    assert_int_equal(job.item_count, 2);
    assert_int_equal(job.iterations, 1);
    assert_int_equal(job.runs_total, 400);
    assert_string_equal(job.items[0].options, "{\"probes\":1}");
    assert_string_equal(job.items[1].options, "");
    assert_int_equal(job.items[1].seq, 1);
    assert_string_equal(job.items[1].key.variant, "unordered");
    job_release(&job);
    snprintf(text, sizeof text, one, ",'runs':2,'runs_max':7,'iterations':3");
    job = expand(text);
    assert_int_equal(job.localise_runs, 2);
    assert_int_equal(job.iterations, 3);
    assert_int_equal(job.items[1].runs_wanted, 7);
    job_release(&job);
    snprintf(text, sizeof text, one, ",'contention':2");
    job = expand(text);
    assert_string_equal(job.items[0].options, "{\"contention\":2,\"probes\":1}");
    assert_string_equal(job.items[1].options, "{\"contention\":2}");
    job_release(&job);
    snprintf(text, sizeof text, one, ",'runs':1");
    refuse(text, PROBLEM_INVALID, "/runs", "2 to runs_max");
    snprintf(text, sizeof text, one, ",'runs':9,'runs_max':8");
    refuse(text, PROBLEM_INVALID, "/runs", "runs_max (8)");
    snprintf(text, sizeof text, one, ",'stop_when_varies':true");
    refuse(text, PROBLEM_INVALID, "/stop_when_varies", "localise");
    snprintf(text, sizeof text, one, ",'probes':false");
    refuse(text, PROBLEM_INVALID, "/probes", "has probes");
    snprintf(text, sizeof text, one, ",'probes':{'every':10,'names':'conv*'}");
    job = expand(text);
    assert_string_equal(job.items[0].options,
                        "{\"probe-names\":\"conv*\",\"probes\":10}");
    assert_string_equal(job.items[1].options, "");
    job_release(&job);
    snprintf(text, sizeof text, one, ",'seeds':[1,2,3]");
    refuse(text, PROBLEM_INVALID, "/seeds", "name one of '1', '2', '3'");
    refuse("{'workloads':['wgrad'],'devices':['cpu:a'],'localise':true}", PROBLEM_INVALID,
           "/variants", "'unordered', 'ordered'");
    refuse(
        "{'workloads':['wgrad'],'variants':['unordered'],'devices':['GPU-1'],"
        "'stacks':'all','localise':true}",
        PROBLEM_INVALID, "/stacks", "'cudnn9', 'cudnn8'");
    refuse("{'runs_max':7}", PROBLEM_INVALID, "/runs_max", "localise");
    refuse("{'localise':1}", PROBLEM_INVALID, "/localise", "true or false");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_variants_of_a_case_are_adjacent),
        cmocka_unit_test(test_a_variant_applies_to_those_that_have_it),
        cmocka_unit_test(test_a_named_device_may_be_offline),
        cmocka_unit_test(test_stacks_of_a_device),
        cmocka_unit_test(test_named_stacks_narrow_the_devices),
        cmocka_unit_test(test_a_stack_runs_what_its_worker_has),
        cmocka_unit_test(test_a_workload_finds_its_stack),
        cmocka_unit_test(test_survey_changes_defaults_only),
        cmocka_unit_test(test_seeds_keep_all_bits),
        cmocka_unit_test(test_circumstances),
        cmocka_unit_test(test_probes),
        cmocka_unit_test(test_the_longest_options_fit),
        cmocka_unit_test(test_unknown_names_get_the_nearest),
        cmocka_unit_test(test_values_out_of_bounds),
        cmocka_unit_test(test_all_problems_at_once),
        cmocka_unit_test(test_limits_of_the_whole),
        cmocka_unit_test(test_backend_without_the_workload),
        cmocka_unit_test(test_no_device_online),
        cmocka_unit_test(test_localise),
    };

    return cmocka_run_group_tests(tests, make_catalogue, free_catalogue);
}
