/* What tests of requests for jobs share: a catalogue, devices, and requests in a line. */
#ifndef TESTS_UNIT_JOBS_EXPAND_FIXTURE_H
#define TESTS_UNIT_JOBS_EXPAND_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/jobs/expand.h"

/* Two workloads: wgrad (cpu and cuda) and ctc (cpu alone, more variants and sizes). */
static const char catalogue_text[] =
    "[{'workload':'wgrad','version':2,'backend':'cpu','title':'t','summary':'s',"
    " 'variants':[{'name':'unordered','summary':'s','models':'m','algorithm':'a',"
    "              'claim':null,'subject':'model','control':true},"
    "             {'name':'ordered','summary':'s','models':'m','algorithm':'a',"
    "              'claim':null,'subject':'model','control':false}],"
    " 'sizes':[{'name':'small','description':'d'},{'name':'large','description':'d'}],"
    " 'dtypes':['float32','float64'],'weight_sum':'w','loss':null,'no_control':null},"
    " {'workload':'wgrad','version':3,'backend':'cuda','title':'t','summary':'s',"
    " 'variants':[{'name':'unordered','summary':'s','models':'m','algorithm':'a',"
    "              'claim':null,'subject':'model','control':true,'kind':'choice'}],"
    " 'sizes':[{'name':'large','description':'d'}],"
    " 'dtypes':['float32'],'weight_sum':'w','loss':null,'no_control':null},"
    " {'workload':'ctc','version':1,'backend':'cpu','title':'t','summary':'s',"
    " 'variants':[{'name':'ordered','summary':'s','models':'m','algorithm':'a',"
    "              'claim':null,'subject':'model','control':false},"
    "             {'name':'patched','summary':'s','models':'m','algorithm':'a',"
    "              'claim':null,'subject':'model','control':false}],"
    " 'sizes':[{'name':'small','description':'d'}],"
    " 'dtypes':['float32'],'weight_sum':'w','loss':null,'no_control':'fixed order'},"
    " {'workload':'quiet','version':1,'backend':'cpu','title':'t','summary':'s',"
    " 'variants':[{'name':'only','summary':'s','models':'m','algorithm':'a',"
    "              'claim':null,'subject':'model','control':false}],"
    " 'sizes':[{'name':'small','description':'d'}],'survey':false,"
    " 'circumstances':['contention'],"
    " 'dtypes':['float32'],'weight_sum':'w','loss':null,'no_control':'fixed order'}]";

static const struct device_stack devices[] = {
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

static inline json_t *json_of(const char *text)
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

static inline int make_catalogue(void **state)
{
    json_t *array = json_of(catalogue_text);
    struct err err;

    (void)state;
    catalogue = catalogue_new();
    assert_int_equal(catalogue_add(catalogue, array, &err), ERR_OK);
    json_decref(array);
    return 0;
}

static inline int free_catalogue(void **state)
{
    (void)state;
    catalogue_free(catalogue);
    return 0;
}

static inline struct job expand(const char *text)
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
static inline void refuse(const char *text, enum problem_kind kind, const char *pointer,
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

#endif
