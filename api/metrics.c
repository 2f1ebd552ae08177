/* GET /metrics: figures for Prometheus, in its text format.  All come from cells and open
 * jobs, never from runs, so a scrape costs the same however many there are.  While the
 * database fails, what is known without it is told. */
#include <inttypes.h>
#include <stdlib.h>

#include "api/http/handlers.h"
#include "api/http/reply.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "db/cells.h"
#include "db/dissent/device_list.h"
#include "db/events.h"
#include "db/fleet.h"
#include "db/jobs.h"
#include "db/screening/screenings.h"

enum { ENVIRONMENTS_MAX = 1000, DISSENTERS_MAX = 50 };

struct figures {
    char (*environments)[DIGEST_TEXT_SIZE];
    int environment_count;
    int64_t now_ms, stale_after_ms;
    int64_t runs[OUTCOME_COUNT];
    int64_t cells[VERDICT_COUNT];
    int64_t iterations;
    int64_t jobs[JOB_CANCELLED + 1], runs_waiting;
    int64_t last_event;
    int devices_foreign;                               /* that others use */
    int devices_online, devices, streams, connections; /* as the loop knew them */
    int64_t made_room, overdue, joined, refused;
    char causes[HEALTH_CONDITIONS][HEALTH_CAUSE_SIZE]; /* "": it does not apply */
    bool ready;
    uint64_t generation;
    int64_t dissenting;
    struct screening_figures screenings;
    struct {
        char device[CASE_TITLE_SIZE];
        int64_t cells;
    } worst[DISSENTERS_MAX];
    int worst_count;
};

static void figures_free(void *state)
{
    struct figures *f = state;

    free(f->environments);
    free(f);
}

static void take_environment(void *arg, const struct environment *e)
{
    struct figures *f = arg;

    copy_text(f->environments[f->environment_count++], DIGEST_TEXT_SIZE, e->id);
}

static void take_cell(void *arg, const struct cell *cell)
{
    struct figures *f = arg;

    for (int i = 0; i < OUTCOME_COUNT; i++) {
        f->runs[i] += cell->evidence.runs[i];
    }
    f->iterations += cell->evidence.iterations;
    f->cells[verdict_at(cell->verdict, cell->evidence.last_completed_ms, cell->vouched_ms,
                        f->now_ms, f->stale_after_ms)]++;
}

static void take_dissenter(void *arg, const char *device, int64_t cells)
{
    struct figures *f = arg;

    copy_text(f->worst[f->worst_count].device, CASE_TITLE_SIZE, device);
    f->worst[f->worst_count++].cells = cells;
}

static void take_job(void *arg, const struct job *job)
{
    struct figures *f = arg;

    f->jobs[job->state]++;
    f->runs_waiting += job->runs_total - job->runs_done;
}

static enum err_code collect(struct tx *tx, struct figures *f, struct err *err)
{
    f->environments = xcalloc(ENVIRONMENTS_MAX, sizeof *f->environments);
    if (environments_each(tx, 0, 0, ENVIRONMENTS_MAX, take_environment, f, err) !=
            ERR_OK ||
        jobs_each_open(tx, take_job, f, err) != ERR_OK ||
        events_last(tx, &f->last_event, err) != ERR_OK ||
        dissenters_count(tx, &f->dissenting, err) != ERR_OK ||
        screenings_count(tx, &f->screenings, err) != ERR_OK ||
        dissenters_worst(tx, DISSENTERS_MAX, take_dissenter, f, err) != ERR_OK) {
        return err->code;
    }
    for (int i = 0; i < f->environment_count; i++) {
        if (cells_each(tx, f->environments[i], 0, take_cell, f, err) != ERR_OK) {
            return err->code;
        }
    }
    return ERR_OK;
}

static void head(struct buf *buf, const char *name, const char *type, const char *help)
{
    buf_printf(buf, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void single(struct buf *buf, const char *name, const char *type, const char *help,
                   int64_t value)
{
    head(buf, name, type, help);
    buf_printf(buf, "%s %" PRId64 "\n", name, value);
}

/* As the text format wants a label's value (a text shows no control characters). */
static void add_label(struct buf *buf, const char *value)
{
    for (; *value; value++) {
        if (*value == '\\' || *value == '"') {
            buf_putc(buf, '\\');
        }
        buf_putc(buf, *value == '\n' ? ' ' : *value);
    }
}

static void render_evidence(const struct figures *f, struct buf *buf)
{
    head(buf, "reprod_runs_total", "counter",
         "Finished runs that reported their environment, by outcome.");
    for (int i = 0; i < OUTCOME_COUNT; i++) {
        buf_printf(buf, "reprod_runs_total{outcome=\"%s\"} %" PRId64 "\n",
                   outcome_name((enum outcome)i), f->runs[i]);
    }
    single(buf, "reprod_iterations_total", "counter", "Iterations of completed runs.",
           f->iterations);
    head(buf, "reprod_cells", "gauge",
         "Cells (case and environment) by verdict, as of now.");
    for (int i = 0; i < VERDICT_COUNT; i++) {
        buf_printf(buf, "reprod_cells{verdict=\"%s\"} %" PRId64 "\n",
                   verdict_name((enum verdict)i), f->cells[i]);
    }
}

/* Only the worst devices have a figure of their own: names are not bounded. */
static void render_dissent(const struct figures *f, struct buf *buf)
{
    single(buf, "reprod_devices_dissenting", "gauge",
           "Devices that give other bits than their equals in at least one cell.",
           f->dissenting);
    head(buf, "reprod_device_dissents", "gauge",
         "Cells in which a device dissents; of at most 50 devices, the worst first.");
    for (int i = 0; i < f->worst_count; i++) {
        buf_puts(buf, "reprod_device_dissents{device=\"");
        for (const char *c = f->worst[i].device; *c; c++) {
            if (*c == '"' || *c == '\\') {
                buf_putc(buf, '\\');
            }
            buf_putc(buf, *c == '\n' ? ' ' : *c);
        }
        buf_printf(buf, "\"} %" PRId64 "\n", f->worst[i].cells);
    }
}

/* Each device by its newest screening. */
static void render_screenings(const struct figures *f, struct buf *buf)
{
    const struct screening_figures *s = &f->screenings;

    head(buf, "reprod_devices_screened", "gauge",
         "Devices by their screening: due, measuring, or what came of it.");
    buf_printf(buf, "reprod_devices_screened{state=\"due\"} %" PRId64 "\n", s->due);
    buf_printf(buf, "reprod_devices_screened{state=\"measuring\"} %" PRId64 "\n",
               s->measuring);
    for (int i = 0; i <= SCREENING_INCONCLUSIVE; i++) {
        buf_printf(buf, "reprod_devices_screened{state=\"%s\"} %" PRId64 "\n",
                   screening_outcome_name((enum screening_outcome)i), s->outcomes[i]);
    }
}

/* What the loop knows without the database. */
static void render_service(const struct figures *f, const char *version, struct buf *buf)
{
    head(buf, "reprod_build_info", "gauge", "1, labelled with the version.");
    buf_printf(buf, "reprod_build_info{version=\"%s\"} 1\n", version);
    single(buf, "reprod_ready", "gauge", "1 if /readyz says so.", f->ready);
    head(buf, "reprod_condition", "gauge", "1 for what is wrong with the service now.");
    for (int i = 0; i < HEALTH_CONDITIONS; i++) {
        buf_printf(buf, "reprod_condition{name=\"%s\"} %d\n",
                   health_name((enum health_condition)i), f->causes[i][0] != '\0');
    }
    head(buf, "reprod_condition_info", "gauge", "1, labelled with what is wrong now.");
    for (int i = 0; i < HEALTH_CONDITIONS; i++) {
        if (f->causes[i][0]) {
            buf_printf(buf, "reprod_condition_info{name=\"%s\",cause=\"",
                       health_name((enum health_condition)i));
            add_label(buf, f->causes[i]);
            buf_puts(buf, "\"} 1\n");
        }
    }
    single(buf, "reprod_devices", "gauge", "Devices known.", f->devices);
    single(buf, "reprod_devices_foreign", "gauge",
           "Devices that processes of others use.", f->devices_foreign);
    single(buf, "reprod_devices_online", "gauge", "Devices whose agent is connected.",
           f->devices_online);
    single(buf, "reprod_store_generation", "gauge",
           "Grows with every commit that changes something.", (int64_t)f->generation);
    single(buf, "reprod_http_connections", "gauge", "Open HTTP connections.",
           f->connections);
    single(buf, "reprod_http_connections_ended_total", "counter",
           "HTTP connections that were ended to make room for others.", f->made_room);
    single(buf, "reprod_http_connections_overdue_total", "counter",
           "HTTP connections that were ended at their deadlines.", f->overdue);
    single(buf, "reprod_reads_joined_total", "counter",
           "Requests that got the reply of another one for the same.", f->joined);
    single(buf, "reprod_reads_refused_total", "counter",
           "Requests that were refused because too many others were waiting.",
           f->refused);
    single(buf, "reprod_event_streams", "gauge", "Listeners of /v1/events.", f->streams);
}

static void render(const struct figures *f, const char *version, struct buf *buf)
{
    render_service(f, version, buf);
    render_evidence(f, buf);
    render_screenings(f, buf);
    render_dissent(f, buf);
    head(buf, "reprod_jobs_open", "gauge", "Jobs that are not finished, by state.");
    buf_printf(buf, "reprod_jobs_open{state=\"queued\"} %" PRId64 "\n",
               f->jobs[JOB_QUEUED]);
    buf_printf(buf, "reprod_jobs_open{state=\"running\"} %" PRId64 "\n",
               f->jobs[JOB_RUNNING]);
    single(buf, "reprod_runs_waiting", "gauge", "Runs that open jobs still need.",
           f->runs_waiting);
    single(buf, "reprod_events_last_id", "counter", "Id of the newest event.",
           f->last_event);
}

static void reply_figures(struct request *r, struct buf *buf)
{
    reply_text(r, buf);
    r->reply.content_type = "text/plain; version=0.0.4; charset=utf-8";
}

static enum err_code read_figures(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct figures *f = r->state;
    struct buf buf = BUF_INIT;

    if (collect(tx, f, err) != ERR_OK) {
        return err->code;
    }
    render(f, r->api->options.version, &buf);
    reply_figures(r, &buf);
    return ERR_OK;
}

static void take_health(struct figures *f, const struct health *health)
{
    f->ready = health_ready(health);
    for (int i = 0; i < HEALTH_CONDITIONS; i++) {
        copy_text(f->causes[i], HEALTH_CAUSE_SIZE, health->conditions[i].cause);
    }
}

static void reply_service(struct request *r)
{
    struct buf buf = BUF_INIT;

    render_service(r->state, r->api->options.version, &buf);
    reply_figures(r, &buf);
}

/* The conditions may say by now what made the read fail. */
static void reply_service_instead(struct request *r, const struct err *why)
{
    log_error("api: GET /metrics: %s", why->message);
    take_health(r->state, r->api->hooks.health(r->api->hooks.arg));
    reply_service(r);
}

void metrics_get(struct request *r)
{
    struct api *api = r->api;
    struct figures *f = xcalloc(1, sizeof *f);
    const struct device_stack *devices;
    json_t *foreign;
    int entries;

    request_keep(r, f, figures_free);
    f->now_ms = clock_wall_ms();
    f->stale_after_ms = api->stale_after_ms;
    entries = api->hooks.devices(api->hooks.arg, &devices);
    for (int i = 0; i < entries; i++) {
        f->devices += devices[i].is_default;
        f->devices_online += devices[i].is_default && devices[i].online;
    }
    foreign = r->api->hooks.foreign(r->api->hooks.arg);
    for (size_t i = 0; i < json_array_size(foreign); i++) {
        f->devices_foreign +=
            json_array_size(json_object_get(json_array_get(foreign, i), "processes")) > 0;
    }
    json_decref(foreign);
    take_health(f, api->hooks.health(api->hooks.arg));
    f->streams = api->streams.count;
    f->made_room = api->connections.made_room;
    f->overdue = api->connections.overdue;
    f->joined = api->joined;
    f->refused = api->refused;
    f->connections =
        (int)MHD_get_daemon_info(api->mhd, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)
            ->num_connections;
    f->generation = store_generation(api->store);
    if (f->causes[HEALTH_STORAGE][0]) {
        reply_service(r);
        return;
    }
    r->failed = reply_service_instead;
    request_read(r, read_figures, NULL);
}
