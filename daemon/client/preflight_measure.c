#include "daemon/client/preflight_measure.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/id.h"
#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"
#include "daemon/client/answers.h"
#include "daemon/client/asked.h"
#include "daemon/client/baseline.h"
#include "daemon/client/local.h"
#include "daemon/client/preflight_judge.h"
#include "daemon/client/preflight_watch.h"

/* Convolutions, products of matrices, exponentials, scattered sums and a training: each
 * in a fixed order, which has to give the same bits, and in none, which is the control.
 */
static const char WORKLOADS[] =
    "conv_wgrad,conv_dgrad,matmul_batched,softmax_xent,segment_sum,train_cnn";
static const char VARIANTS[] = "ordered,unordered";
/* Nothing but what is asked for. */
static const char CONFIG[] =
    "{\"background\":{\"budget_percent\":0},\"backup_every_hours\":0,\"grace_ms\":500}\n";

enum { RUNS = 2, ROUNDS_MAX = 3, POLL_MS = 100, RUN_SECONDS_MIN = 5 };

struct measure {
    const struct preflight_asked *asked;
    int fd;
    struct server own;
    json_t *devices, *items, *runs, *cells, *used, *baseline;
    const char *baseline_error, *failure;
    char error[300];
};

static json_t *get(const struct measure *m, const char *path)
{
    int code;

    return client_ask(&m->own, "GET", path, NULL, NULL, &code);
}

static json_t *report(struct measure *m)
{
    const struct preflight_seen seen = { .devices = m->devices,
                                         .items = m->items,
                                         .runs = m->runs,
                                         .cells = m->cells,
                                         .used = m->used,
                                         .baseline = m->baseline,
                                         .baseline_error = m->baseline_error,
                                         .failure = m->failure,
                                         .gpus = m->asked->gpus_expected };
    json_t *said = preflight_judge(&seen);

    watch_report(m->fd, said);
    return said;
}

/* A machine with NVIDIA's driver has GPUs. */
static bool has_driver(void)
{
    const char *file = getenv("DRIVER_VERSION_FILE"); /* as of check-host */

    return access(file ? file : "/proc/driver/nvidia/version", R_OK) == 0;
}

/* A machine is one host: what others have says nothing of it. */
static bool is_one_host(const struct measure *m)
{
    json_t *hosts = get(m, "/v1/hosts");
    bool one = json_array_size(json_object_get(hosts, "items")) == 1;

    json_decref(hosts);
    return one;
}

/* The GPUs that are there; where there is none, or that is asked for, the CPU too.  A CPU
 * does not stand for GPUs that cannot be measured. */
static bool choose_devices(struct measure *m)
{
    json_t *list = get(m, "/v1/devices?limit=1000"), *device;
    bool has_gpu = false;
    size_t i;

    json_array_foreach(json_object_get(list, "items"), i, device)
    {
        has_gpu |= json_is_true(json_object_get(device, "online")) &&
                   strcmp(in_text_or_empty(device, "backend"), "cpu") != 0;
    }
    if (!has_gpu && !m->asked->cpu && has_driver()) {
        m->failure = "NVIDIA's driver is here, and no GPU can be measured";
        json_decref(list);
        return false;
    }
    json_array_foreach(json_object_get(list, "items"), i, device)
    {
        bool is_cpu = strcmp(in_text_or_empty(device, "backend"), "cpu") == 0;

        if (json_is_true(json_object_get(device, "online")) &&
            (!is_cpu || !has_gpu || m->asked->cpu)) {
            json_array_append(m->devices, device);
        }
    }
    json_decref(list);
    return json_array_size(m->devices) > 0;
}

/* A device that does not answer has to be found out before the deadline. */
static int64_t run_seconds(const struct measure *m)
{
    int64_t seconds = (m->asked->until_ms - clock_monotonic_ms()) / 1000 / 2;

    return seconds > RUN_SECONDS_MIN ? seconds : RUN_SECONDS_MIN;
}

static char *job_body(const struct measure *m)
{
    const struct preflight_asked *a = m->asked;
    const char *variants = a->variants ? a->variants : a->workloads ? NULL : VARIANTS;
    json_t *devices = json_array(), *body, *device;
    char *text;
    size_t i;

    json_array_foreach(m->devices, i, device)
    {
        json_array_append(devices, json_object_get(device, "id"));
    }
    body =
        json_pack("{s:o, s:o, s:o, s:I}", "workloads",
                  asked_list(a->workloads ? a->workloads : WORKLOADS), "devices", devices,
                  "runs", a->runs ? asked_number(a->runs) : json_integer(RUNS),
                  "timeout_seconds", (json_int_t)run_seconds(m));
    if (variants) {
        json_object_set_new(body, "variants", asked_list(variants));
    }
    if (a->sizes) {
        json_object_set_new(body, "sizes", asked_list(a->sizes));
    }
    if (a->iterations) {
        json_object_set_new(body, "iterations", asked_number(a->iterations));
    }
    text = json_dumps(body, JSON_COMPACT);
    json_decref(body);
    return text;
}

static bool is_over(const json_t *job)
{
    const char *state = in_text_or_empty(job, "state");

    return strcmp(state, "finished") == 0 || strcmp(state, "cancelled") == 0;
}

/* The job at PATH when it is over, or, cancelled, when the time is; NULL: there is none.
 */
static json_t *wait_for(const struct measure *m, const char *path)
{
    const struct timespec pause = { 0, POLL_MS * 1000000L };
    json_t *job = get(m, path);
    int code;

    while (job && !is_over(job) && clock_monotonic_ms() < m->asked->until_ms) {
        nanosleep(&pause, NULL);
        json_decref(job);
        job = get(m, path);
    }
    if (job && !is_over(job)) {
        json_decref(client_ask(&m->own, "DELETE", path, NULL, NULL, &code));
    }
    return job;
}

static bool has_cell(const json_t *cells, int64_t id)
{
    json_t *cell;
    size_t i;

    json_array_foreach(cells, i, cell)
    {
        if (in_int(cell, "id") == id) {
            return true;
        }
    }
    return false;
}

/* With all of its devices. */
static void read_cell(struct measure *m, int64_t id)
{
    char *path = xasprintf("/v1/cells/%" PRId64, id);
    char *more = xasprintf("/v1/cells/%" PRId64 "/devices?limit=1000", id);
    json_t *cell = get(m, path), *shown = get(m, more);

    if (cell && shown) {
        json_object_set(cell, "devices", json_object_get(shown, "items"));
        json_array_append(m->cells, cell);
    }
    json_decref(cell);
    json_decref(shown);
    free(path);
    free(more);
}

static void read_runs(struct measure *m, const char *job)
{
    char *next = xstrdup("");
    json_t *page, *run;
    size_t i;

    do {
        char *path = xasprintf("/v1/runs?job=%s&limit=1000%s%s", job,
                               next[0] ? "&cursor=" : "", next);

        page = get(m, path);
        json_array_extend(m->runs, json_object_get(page, "items"));
        free(next);
        free(path);
        next = url_escape(in_text_or_empty(page, "next"));
        json_decref(page);
    } while (next[0]);
    free(next);
    json_array_clear(m->cells);
    json_array_foreach(m->runs, i, run)
    {
        if (in_int(run, "cell") && !has_cell(m->cells, in_int(run, "cell"))) {
            read_cell(m, in_int(run, "cell"));
        }
    }
}

/* Which of the devices are left alone, because others use them. */
static void read_used(struct measure *m)
{
    json_t *list = get(m, "/v1/devices?limit=1000"), *device;
    size_t i;

    json_array_clear(m->used);
    json_array_foreach(json_object_get(list, "items"), i, device)
    {
        const json_t *foreign = json_object_get(device, "foreign");

        if (json_is_true(json_object_get(foreign, "waits"))) {
            json_array_append(m->used, json_object_get(device, "id"));
        }
    }
    json_decref(list);
}

static void take_job(struct measure *m, json_t *job)
{
    json_t *item;
    size_t i;

    json_array_foreach(json_object_get(job, "items"), i, item)
    {
        json_object_set(item, "job", json_object_get(job, "id"));
        json_array_append(m->items, item);
    }
    read_used(m);
    read_runs(m, in_text_or_empty(job, "id"));
}

/* Whether it was measured to the end. */
static bool measure_once(struct measure *m)
{
    char key[ID_SIZE], *body = job_body(m), *path;
    bool finished = false;
    int code;
    json_t *job;

    id_new(clock_wall_ms(), key);
    job = client_ask(&m->own, "POST", "/v1/jobs", body, key, &code);
    free(body);
    if (!job) {
        m->failure = "its own service refused the job";
        return false;
    }
    path = xasprintf("/v1/jobs/%s", in_text_or_empty(job, "id"));
    json_decref(job);
    job = wait_for(m, path);
    free(path);
    if (job) {
        finished = is_over(job);
        take_job(m, job);
    }
    json_decref(job);
    return finished;
}

/* Whether another round may prove what this one did not: a control that did not vary. */
static bool is_worth_another(const json_t *said)
{
    const json_t *devices = json_object_get(said, "devices"), *device;
    bool worth = false;
    size_t i;

    json_array_foreach(devices, i, device)
    {
        const json_t *cases = json_object_get(device, "cases");

        worth |= in_int(cases, "unverified") > in_int(cases, "alone");
    }
    return worth && strcmp(in_text_or_empty(said, "verdict"), "unverified") == 0;
}

static void measure_rounds(struct measure *m)
{
    for (int round = 0; round < ROUNDS_MAX; round++) {
        int64_t begun_ms = clock_monotonic_ms(), took_ms;
        bool finished = measure_once(m), again;
        json_t *said = report(m);

        took_ms = clock_monotonic_ms() - begun_ms;
        again = finished && is_worth_another(said) &&
                clock_monotonic_ms() + 2 * took_ms < m->asked->until_ms;
        json_decref(said);
        if (!again) {
            return;
        }
    }
}

/* After all else: a service that does not answer then takes nothing away. */
static void ask_baseline(struct measure *m)
{
    json_t *environments = json_array(), *workloads = json_array(), *cell;
    struct err err = { .code = ERR_OK };
    size_t i;

    watch_phase(m->fd, "asking for the baseline");
    json_array_foreach(m->cells, i, cell)
    {
        if (!baseline_lists(environments, in_text_or_empty(cell, "environment"))) {
            json_array_append(environments, json_object_get(cell, "environment"));
        }
        if (!baseline_lists(workloads, in_text_or_empty(cell, "workload"))) {
            json_array_append(workloads, json_object_get(cell, "workload"));
        }
    }
    m->baseline = baseline_ask(&m->asked->server, workloads, environments, &err);
    copy_text(m->error, sizeof m->error, err.message);
    m->baseline_error = m->baseline ? NULL : m->error;
    json_decref(environments);
    json_decref(workloads);
    json_decref(report(m));
}

static void measure_all(struct measure *m)
{
    watch_phase(m->fd, "listing the devices");
    if (!is_one_host(m)) {
        m->failure = "the configuration is of several hosts, and a preflight is of one";
    }
    if (m->failure || !choose_devices(m)) {
        json_decref(report(m));
        return;
    }
    watch_phase(m->fd, "measuring");
    json_decref(report(m));
    measure_rounds(m);
    if (m->asked->url) {
        ask_baseline(m);
    }
}

/* The configuration of the service: that which was given, or a new one. */
static char *config_of(const struct preflight_asked *asked, const char *folder)
{
    char *path;
    FILE *file;
    bool good;

    if (asked->config) {
        return xstrdup(asked->config);
    }
    path = xasprintf("%s/reprod.json", folder);
    file = fopen(path, "we");
    good = file && fputs(CONFIG, file) >= 0;
    if (!file || fclose(file) != 0 || !good) {
        free(path);
        return NULL;
    }
    return path;
}

void preflight_measure(void *arg, const char *folder, int fd)
{
    const struct preflight_asked *asked = arg;
    struct measure m = { .asked = asked,
                         .fd = fd,
                         .devices = json_array(),
                         .items = json_array(),
                         .runs = json_array(),
                         .cells = json_array(),
                         .used = json_array(),
                         .baseline = json_incref(asked->baseline),
                         .baseline_error =
                             asked->url ? "there was no time to ask for it" : NULL };
    char *config = config_of(asked, folder), *data = xasprintf("%s/data", folder);
    struct err err = { .code = ERR_OK };
    struct local local = { .pid = 0 };

    watch_phase(fd, "starting a service: the probe of a stack did not end");
    if (!config) {
        watch_phase(fd, "its folder cannot be written");
    } else if (local_start(config, data, &local, &m.own, &err) == ERR_OK) {
        measure_all(&m);
    } else {
        watch_phase(fd, err.message);
    }
    local_stop(&local);
    free(config);
    free(data);
    json_decref(m.devices);
    json_decref(m.items);
    json_decref(m.runs);
    json_decref(m.cells);
    json_decref(m.used);
    json_decref(m.baseline);
}
