/* reprod check: submits a job, waits for it, judges what it showed, and says so in its
 * exit status: a gate for a build. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/id.h"
#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"
#include "daemon/base/text.h"
#include "daemon/client/answers.h"
#include "daemon/client/asked.h"
#include "daemon/client/client.h"
#include "daemon/client/gate_report.h"
#include "daemon/client/local.h"
#include "daemon/client/place.h"
#include "daemon/client/wait.h"

enum { PAGES_MAX = 100000 };

/* What is known of the job that is over. */
struct found {
    json_t *job;
    struct gate_runs *runs;
    int run_count;
    struct gate_case *cases;
    int case_count;
};

static json_t *get(const struct asked *asked, const char *path, int *ret_exit)
{
    return client_ask(&asked->server, "GET", path, NULL, NULL, ret_exit);
}

/* A service whose pages do not end is none. */
static bool goes_on(const struct server *server, const char *cursor, const char *next,
                    int pages, int *ret_exit)
{
    struct err err;

    if (strcmp(next, cursor) != 0 && pages < PAGES_MAX) {
        return true;
    }
    err_set(&err, ERR_PROTOCOL, "the runs of the job at http://%s do not end",
            server->authority);
    *ret_exit = client_error(&err);
    return false;
}

/* All runs of the job, page by page. */
static bool read_runs(const struct asked *asked, const char *job, struct found *found,
                      int *ret_exit)
{
    char *next = xstrdup("");
    bool good = true;
    int pages = 0;

    do {
        char *cursor = next;
        char *path = xasprintf("/v1/runs?job=%s&limit=1000%s%s", job,
                               cursor[0] ? "&cursor=" : "", cursor);
        json_t *page = get(asked, path, ret_exit);
        const json_t *run;
        size_t i;

        json_array_foreach(json_object_get(page, "items"), i, run)
        {
            gate_add_run(&found->runs, &found->run_count, run);
        }
        next = url_escape(in_text_or_empty(page, "next"));
        good = page &&
               (!next[0] || goes_on(&asked->server, cursor, next, ++pages, ret_exit));
        free(cursor);
        free(path);
        json_decref(page);
    } while (good && next[0]);
    free(next);
    return good;
}

/* The drift from --against to ENVIRONMENT: NULL and GOOD where these are the same. */
static json_t *read_drift(const struct asked *asked, const char *environment, bool *good,
                          int *ret_exit)
{
    json_t *list, *drift;
    char *from, *path;

    if (!asked->against || !environment[0] || strcmp(asked->against, environment) == 0) {
        return NULL;
    }
    from = url_escape(asked->against);
    path = xasprintf("/v1/drift?from=%s&to=%s", from, environment);
    list = get(asked, path, ret_exit);
    *good = list != NULL;
    drift = json_incref(json_array_get(json_object_get(list, "items"), 0));
    json_decref(list);
    free(from);
    free(path);
    return drift;
}

static bool judge(const struct asked *asked, const json_t *item,
                  const struct gate_runs *runs, struct found *found, int *ret_exit)
{
    struct gate_limits limits = asked->limits;
    bool good = true;
    json_t *cell = NULL, *drift = NULL;

    if (runs && runs->cell) {
        char *path = xasprintf("/v1/cells/%" PRId64, runs->cell);

        cell = get(asked, path, ret_exit);
        good = cell != NULL;
        free(path);
    }
    if (good && runs) {
        drift = read_drift(asked, runs->environment, &good, ret_exit);
        if (asked->against && strcmp(asked->against, runs->environment) == 0) {
            limits.against = NULL; /* the very cell that is compared with */
        }
    }
    if (good) {
        found->cases = xgrow(found->cases, found->case_count, sizeof *found->cases);
        found->cases[found->case_count++] =
            gate_judge(item, runs, cell, gate_drift_case(drift, item), &limits);
    }
    json_decref(drift);
    json_decref(cell);
    return good;
}

static bool judge_all(const struct asked *asked, struct found *found, int *ret_exit)
{
    const json_t *item;
    size_t i;

    json_array_foreach(json_object_get(found->job, "items"), i, item)
    {
        bool has_runs = false;

        for (int k = 0; k < found->run_count; k++) {
            if (found->runs[k].seq == in_int(item, "seq")) {
                has_runs = true;
                if (!judge(asked, item, &found->runs[k], found, ret_exit)) {
                    return false;
                }
            }
        }
        if (!has_runs && !judge(asked, item, NULL, found, ret_exit)) {
            return false;
        }
    }
    return true;
}

enum { LOG_LINES = 12 };

/* The last lines of TEXT; caller frees. */
static char *last_lines(const char *text)
{
    const char *from = text + strlen(text);

    for (int lines = 0; from > text; from--) {
        if (from[-1] == '\n' && from[0] && ++lines == LOG_LINES) {
            break;
        }
    }
    return xstrdup(from);
}

/* What is wrong is most often in what a run printed; the service may keep no log of it.
 */
static void read_logs(const struct asked *asked, struct found *found)
{
    for (int i = 0; i < found->case_count; i++) {
        struct gate_case *one = &found->cases[i];
        char *path = xasprintf("/v1/runs/%s/log.json", one->failed);
        int code;
        json_t *log = one->failed[0] ? get(asked, path, &code) : NULL;

        one->log = log ? last_lines(in_text_or_empty(log, "log")) : NULL;
        json_decref(log);
        free(path);
    }
}

/* A build should hear of one place soon, and not of all after hours. */
enum { LOCALISED_MAX = 3 };

static void localise(const struct asked *asked, struct found *found)
{
    const json_t *request = json_object_get(found->job, "request");
    int count = 0;

    for (int i = 0; i < found->case_count && asked->localise_runs > 0; i++) {
        struct gate_case *one = &found->cases[i];
        char *body;

        if (!one->diverges || one->is_control) {
            continue;
        }
        if (count++ == LOCALISED_MAX) {
            one->place = xasprintf("where it diverges was looked for in the first %d",
                                   LOCALISED_MAX);
            continue;
        }
        body = place_request(request, one->item, asked->localise_runs);
        one->place = place_find(&asked->server, body);
        free(body);
    }
}

static bool write_file(const char *path, const char *mode, const struct buf *text)
{
    FILE *file = fopen(path, mode);
    bool good =
        file && (text->length == 0 || fwrite(text->data, text->length, 1, file) == 1);

    good = file && fclose(file) == 0 && good;
    if (!good) {
        text_print(stderr, "reprod: %s: %s", path, strerror(errno));
    }
    return good;
}

/* To the end: an error at the exit would be nobody's. */
static bool print(const struct buf *text)
{
    bool good = (text->length == 0 || fwrite(text->data, text->length, 1, stdout) == 1) &&
                fflush(stdout) == 0;

    if (!good) {
        text_print(stderr, "reprod: standard output: %s", strerror(errno));
    }
    return good;
}

typedef void format_fn(const struct gate_report *report, struct buf *buf);

static bool write_as(format_fn *format, const struct gate_report *report,
                     const char *path, const char *mode)
{
    struct buf text = BUF_INIT;
    bool good;

    format(report, &text);
    good = path ? write_file(path, mode, &text) : print(&text);
    buf_release(&text);
    return good;
}

/* A report that could not be written is read by nobody: then nothing passes. */
static bool report(const struct asked *asked, const struct found *found)
{
    char *server =
        asked->local ? xstrdup("") : xasprintf("http://%s", asked->server.authority);
    struct gate_report r = { .cases = found->cases,
                             .count = found->case_count,
                             .job = in_text_or_empty(found->job, "id"),
                             .server = server };
    const char *actions = getenv("GITHUB_ACTIONS");
    const char *summary = getenv("GITHUB_STEP_SUMMARY");
    bool good = write_as(gate_text, &r, NULL, NULL);

    if (asked->junit) {
        good &= write_as(gate_junit, &r, asked->junit, "we");
    }
    if (asked->markdown) {
        good &= write_as(gate_markdown, &r, asked->markdown, "we");
    }
    if (actions && strcmp(actions, "true") == 0) {
        good &= write_as(gate_annotations, &r, NULL, NULL);
        good &= !summary || !summary[0] || write_as(gate_markdown, &r, summary, "ae");
    }
    free(server);
    return good;
}

static void found_release(struct found *found)
{
    for (int i = 0; i < found->case_count; i++) {
        gate_case_release(&found->cases[i]);
    }
    free(found->cases);
    free(found->runs);
    json_decref(found->job);
}

/* Submits BODY and waits: the job that is over, or NULL. */
static json_t *carry_out(const struct asked *asked, const char *body, int *ret_exit)
{
    char key[ID_SIZE], *id;
    json_t *job;

    id_new(clock_wall_ms(), key);
    job = client_ask(&asked->server, "POST", "/v1/jobs", body, key, ret_exit);
    if (!job) {
        *ret_exit = *ret_exit == CLIENT_UNREACHABLE ? CLIENT_UNREACHABLE : CLIENT_USAGE;
        return NULL;
    }
    id = url_escape(in_text_or_empty(job, "id"));
    json_decref(job);
    job = client_wait(&asked->server, id, ret_exit);
    free(id);
    return job;
}

/* The exit status of the check of BODY at the service that ASKED has. */
static int check(const struct asked *asked, const char *body)
{
    struct found found = { .job = NULL };
    int code = CLIENT_UNREACHABLE;
    struct gate_counts counts;

    found.job = carry_out(asked, body, &code);
    if (found.job && read_runs(asked, in_text_or_empty(found.job, "id"), &found, &code) &&
        judge_all(asked, &found, &code)) {
        read_logs(asked, &found);
        localise(asked, &found);
        counts = gate_count(found.cases, found.case_count, NULL);
        code = (int)gate_conclude(&counts);
        code = report(asked, &found) || code == GATE_DIFFERENT ? code : GATE_UNVERIFIED;
    } else if (code == CLIENT_FAILED) {
        code =
            GATE_UNVERIFIED; /* what the service refuses to show differs from nothing */
    }
    found_release(&found);
    return code;
}

struct own_service {
    struct asked *asked;
    const char *body;
};

/* With the database in FOLDER. */
static int check_in(void *arg, const char *folder)
{
    struct own_service *own = arg;
    struct err err = { .code = ERR_OK };
    struct local local;
    int code = CLIENT_UNREACHABLE;

    if (local_start(own->asked->config, folder, &local, &own->asked->server, &err) ==
        ERR_OK) {
        code = check(own->asked, own->body);
    } else {
        client_error(&err);
    }
    local_stop(&local);
    return code;
}

static int check_locally(struct asked *asked, const char *body)
{
    struct own_service own = { asked, body };
    struct err err;
    int code;

    if (asked->data) {
        return check_in(&own, asked->data);
    }
    code = local_in_scratch(check_in, &own, &err);
    return code < 0 ? client_error(&err) : code;
}

int check_main(int argc, char **argv)
{
    struct err err = { .code = ERR_OK };
    struct asked asked;
    char *body;
    int code;

    if (asked_read(argc, argv, &asked, &err) != ERR_OK) {
        return client_error(&err);
    }
    body = asked_body(&asked, &err);
    if (!body) {
        return client_error(&err);
    }
    code = asked.local ? check_locally(&asked, body) : check(&asked, body);
    free(body);
    return code;
}
