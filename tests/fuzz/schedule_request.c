/* The body of POST /v1/schedules. */
#include <string.h>

#include "api/http/params.h"
#include "daemon/jobs/expand.h"
#include "daemon/jobs/schedule_request.h"
#include "tests/fuzz/fuzz.h"

static const int64_t now_ms = 1795518000123; /* some time in 2026 */

static const struct device_stack devices[] = { { .id = "cpu:a",
                                                 .backend = "cpu",
                                                 .stack = "cpu",
                                                 .host = "a",
                                                 .is_default = true,
                                                 .online = true } };

static void check_job(const json_t *given, const struct schedule *s)
{
    json_t *request = schedule_request_job(given, s->name);
    struct problems problems = { .count = 0 };
    struct job job;

    FUZZ_CHECK(json_is_object(request) && json_object_get(request, "priority"));
    FUZZ_CHECK(json_object_get(request, "note"));
    if (job_request_expand(request, fuzz_catalogue(), devices, 1, &job, &problems) ==
        ERR_OK) {
        FUZZ_CHECK(job.item_count > 0 && job.request);
        job_release(&job);
    } else {
        FUZZ_CHECK(problems.count > 0);
    }
    problems_release(&problems);
    json_decref(request);
}

static void run(const uint8_t *data, size_t size)
{
    char detail[BODY_DETAIL_SIZE];
    json_t *body = body_parse((const char *)data, size, detail);
    struct problems problems = { .count = 0 };
    struct schedule s = { .id = "" };
    const json_t *job = NULL;

    if (body && schedule_request_read(body, now_ms, &s, &job, &problems) == ERR_OK) {
        FUZZ_CHECK(problems.count == 0 && s.name[0]);
        FUZZ_CHECK(!s.every_seconds == (s.calendar_text[0] != '\0'));
        FUZZ_CHECK(s.every_seconds <= SCHEDULE_MOST_SECONDS && s.next_ms > now_ms);
        FUZZ_CHECK(s.spread_seconds >= -1 &&
                   s.spread_seconds <= SCHEDULE_SPREAD_MOST_SECONDS);
        check_job(job, &s);
    } else {
        FUZZ_CHECK(!body || problems.count > 0);
    }
    problems_release(&problems);
    json_decref(body);
}

FUZZ_TARGET("schedule_request", run);
