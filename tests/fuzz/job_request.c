/* The body of POST /v1/jobs. */
#include <string.h>

#include "api/http/params.h"
#include "daemon/jobs/expand.h"
#include "daemon/jobs/request.h"
#include "tests/fuzz/fuzz.h"

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

static enum err_code expand(const json_t *request, struct job *ret_job)
{
    struct problems problems = { .count = 0 };
    enum err_code code =
        job_request_expand(request, fuzz_catalogue(), devices,
                           sizeof devices / sizeof *devices, ret_job, &problems);

    FUZZ_CHECK((code == ERR_OK) == (problems.count == 0));
    problems_release(&problems);
    return code;
}

/* What is stored of a request asks for the same job again: POST /v1/jobs/{id}/rerun. */
static void check_stored(const struct job *job)
{
    json_t *stored = json_loads(job->request, 0, NULL);
    struct job again;

    FUZZ_CHECK(stored);
    FUZZ_CHECK(expand(stored, &again) == ERR_OK);
    FUZZ_CHECK(strcmp(again.request, job->request) == 0);
    FUZZ_CHECK(again.item_count == job->item_count);
    FUZZ_CHECK(again.runs_total == job->runs_total);
    for (int i = 0; i < job->item_count; i++) {
        FUZZ_CHECK(memcmp(&again.items[i], &job->items[i], sizeof *job->items) == 0);
    }
    job_release(&again);
    json_decref(stored);
}

static void run(const uint8_t *data, size_t size)
{
    char detail[BODY_DETAIL_SIZE];
    json_t *request = body_parse((const char *)data, size, detail);
    struct job job;

    if (request && expand(request, &job) == ERR_OK) {
        FUZZ_CHECK(job.item_count > 0 && job.item_count <= JOB_ITEMS_MAX);
        FUZZ_CHECK(job.runs_total > 0 && job.runs_total <= JOB_RUNS_TOTAL_MAX);
        check_stored(&job);
        job_release(&job);
    }
    json_decref(request);
}

FUZZ_TARGET("job_request", run);
