#include "daemon/jobs/schedule_request.h"

#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"
#include "daemon/jobs/job.h"

/* A body's members; texts and JSON are borrowed from it. */
struct posted {
    const char *name, *every, *calendar;
    int spread_seconds;
    bool paused;
    const json_t *job;
};

static void check_every(struct in_reader *r, const json_t *value)
{
    int column;
    int64_t seconds = schedule_parse_every(json_string_value(value), &column);

    if (seconds == 0) {
        in_refuse(r, NULL,
                  "column %d: must be a number with a unit, m, h, d or w: \"90m\", "
                  "\"6h\", \"1d\"",
                  column);
    } else if (seconds > SCHEDULE_MOST_SECONDS) {
        in_refuse(r, NULL, "must be a year at most");
    }
}

static void check_calendar(struct in_reader *r, const json_t *value)
{
    struct calendar ignored;
    struct err err;
    int column;

    if (calendar_parse(json_string_value(value), &ignored, &column, &err) != ERR_OK) {
        in_refuse(r, NULL, "column %d: %s", column, err.message);
    }
}

static const struct in_member posted_members[] = {
    { "name", IN_TEXT, IN_AT(struct posted, name), .least = 1,
      .most = SCHEDULE_NAME_SIZE - 1 },
    { "every", IN_TEXT, IN_AT(struct posted, every), IN_OPTIONAL, .least = 1,
      .most = SCHEDULE_WHEN_SIZE - 1, .check = check_every },
    { "calendar", IN_TEXT, IN_AT(struct posted, calendar), IN_OPTIONAL, .least = 1,
      .most = SCHEDULE_WHEN_SIZE - 1, .check = check_calendar },
    { "spread_seconds", IN_INT, IN_AT(struct posted, spread_seconds), IN_OPTIONAL,
      .least = 0, .most = SCHEDULE_SPREAD_MOST_SECONDS },
    { "paused", IN_BOOL, IN_AT(struct posted, paused), IN_OPTIONAL },
    { "job", IN_OBJECT, IN_AT(struct posted, job) },
};
static const struct in_shape posted_shape =
    IN_SHAPE(posted_members, "a schedule has no member");

static void add_problem(void *problems, const struct in_fault *fault)
{
    problems_add(problems, fault->unknown ? PROBLEM_UNKNOWN_MEMBER : PROBLEM_INVALID,
                 fault->pointer, "%s", fault->reason);
}

static void take_when(const struct posted *posted, struct schedule *s,
                      struct problems *problems)
{
    struct err ignored;
    int column;

    if (!posted->every == !posted->calendar) {
        problems_add(problems, PROBLEM_INVALID, "",
                     "a schedule has either 'every' or 'calendar'");
        return;
    }
    s->every_seconds = posted->every ? schedule_parse_every(posted->every, &column) : 0;
    if (posted->calendar) {
        copy_text(s->calendar_text, sizeof s->calendar_text, posted->calendar);
        calendar_parse(posted->calendar, &s->calendar, &column, &ignored);
    }
    s->next_ms = schedule_next(s, s->created_ms);
    if (s->next_ms == 0) {
        problems_add(problems, PROBLEM_INVALID, "/calendar",
                     "there is no such day: it would never be due");
    }
}

enum err_code schedule_request_read(const json_t *body, int64_t now_ms,
                                    struct schedule *ret_schedule, const json_t **ret_job,
                                    struct problems *problems)
{
    struct posted posted = { .spread_seconds = -1 };

    ret_schedule->created_ms = now_ms;
    if (!json_is_object(body)) {
        problems_add(problems, PROBLEM_INVALID, "", "must be an object");
    } else if (in_read(&posted_shape, body, &posted, add_problem, problems)) {
        take_when(&posted, ret_schedule, problems);
    }
    if (problems->count > 0) {
        return ERR_INVALID;
    }
    copy_text(ret_schedule->name, sizeof ret_schedule->name, posted.name);
    ret_schedule->spread_seconds = posted.spread_seconds;
    ret_schedule->paused = posted.paused;
    *ret_job = posted.job;
    return ERR_OK;
}

json_t *schedule_request_job(const json_t *job, const char *name)
{
    json_t *request = json_copy((json_t *)job);

    if (!json_object_get(request, "priority")) {
        json_object_set_new(request, "priority",
                            json_string(job_priority_name(JOB_SCHEDULED)));
    }
    if (!json_object_get(request, "note")) {
        json_object_set_new(request, "note", json_pack("s+", "schedule ", name));
    }
    return request;
}
