#include "api/render/metrics.h"

#include <inttypes.h>
#include <string.h>

#include "daemon/base/array.h"
#include "daemon/base/text.h"

/* What a cell can be that was reproducible, the worst first. */
static const enum verdict worse[] = { VERDICT_DEVICES_DISAGREE, VERDICT_VARIES,
                                      VERDICT_FAILING, VERDICT_UNSUPPORTED,
                                      VERDICT_INCONCLUSIVE };

static int rank(enum verdict verdict)
{
    int i = 0;

    while (i < COUNT_OF(worse) && worse[i] != verdict) {
        i++;
    }
    return i;
}

static bool is_worse(const struct regressed_cell *a, const struct regressed_cell *b)
{
    int a_rank = rank(a->verdict), b_rank = rank(b->verdict);

    return a_rank < b_rank || (a_rank == b_rank && a->since_ms > b->since_ms);
}

void figures_add_regressed(struct figures *f, const struct regressed_cell *cell)
{
    int at = f->regressed_count;

    f->regressed[cell->verdict]++;
    while (at > 0 && is_worse(cell, &f->regressed_cells[at - 1])) {
        at--;
    }
    if (at == FIGURES_LISTED) {
        return;
    }
    f->regressed_count += f->regressed_count < FIGURES_LISTED;
    memmove(&f->regressed_cells[at + 1], &f->regressed_cells[at],
            (size_t)(f->regressed_count - 1 - at) * sizeof *cell);
    f->regressed_cells[at] = *cell;
}

static int64_t sum_of(const struct host_drift *drift)
{
    int64_t sum = 0;

    for (int k = 0; k < FIGURES_DRIFT_KINDS; k++) {
        sum += drift->kinds[k];
    }
    return sum;
}

static bool is_more(const struct host_drift *a, const struct host_drift *b)
{
    int64_t a_sum = sum_of(a), b_sum = sum_of(b);

    return a_sum > b_sum || (a_sum == b_sum && a->at_ms > b->at_ms);
}

void figures_add_drift(struct figures *f, const struct host_drift *drift)
{
    int at = f->drifted_count;

    for (int k = 0; k < FIGURES_DRIFT_KINDS; k++) {
        f->drift[k] += drift->kinds[k];
    }
    while (at > 0 && is_more(drift, &f->drifted[at - 1])) {
        at--;
    }
    if (at == FIGURES_LISTED || sum_of(drift) == 0) {
        return;
    }
    f->drifted_count += f->drifted_count < FIGURES_LISTED;
    memmove(&f->drifted[at + 1], &f->drifted[at],
            (size_t)(f->drifted_count - 1 - at) * sizeof *drift);
    f->drifted[at] = *drift;
}

/* What is written, and in which of the two formats. */
struct page {
    struct buf *buf;
    bool open;
};

/* The name of a counter is without its ending in OpenMetrics. */
static void head(struct page *page, const char *name, const char *type, const char *help)
{
    static const char total[] = "_total";
    size_t length = strlen(name);

    if (page->open && strcmp(type, "counter") == 0) {
        length -= strlen(total);
    }
    buf_printf(page->buf, "# HELP %.*s %s\n# TYPE %.*s %s\n", (int)length, name, help,
               (int)length, name, type);
}

static void single(struct page *page, const char *name, const char *type,
                   const char *help, int64_t value)
{
    head(page, name, type, help);
    buf_printf(page->buf, "%s %" PRId64 "\n", name, value);
}

static void seconds(struct page *page, const char *name, const char *type,
                    const char *help, int64_t ms)
{
    head(page, name, type, help);
    buf_printf(page->buf, "%s %" PRId64 ".%03d\n", name, ms / 1000, (int)(ms % 1000));
}

/* LEAD is what stands before the label's name, "{" or ",".  What a terminal would act on
 * is left out: spelt, it would be no escape of these formats. */
static void label(struct page *page, const char *lead, const char *name,
                  const char *value)
{
    buf_printf(page->buf, "%s%s=\"", lead, name);
    for (size_t left = strlen(value); left > 0;) {
        size_t length = text_sequence(value, left);

        if (length == 0 || text_control(value, left) >= 0) {
            buf_putc(page->buf, ' ');
            length = length ? length : 1;
        } else {
            if (*value == '\\' || *value == '"') {
                buf_putc(page->buf, '\\');
            }
            buf_add(page->buf, value, length);
        }
        value += length;
        left -= length;
    }
    buf_putc(page->buf, '"');
}

static void end(struct page *page, int64_t value)
{
    buf_printf(page->buf, "} %" PRId64 "\n", value);
}

static void one_of(struct page *page, const char *name, const char *label_name,
                   const char *label_value, int64_t value)
{
    buf_puts(page->buf, name);
    label(page, "{", label_name, label_value);
    end(page, value);
}

static void case_labels(struct page *page, const struct case_key *key)
{
    label(page, ",", "workload", key->workload);
    label(page, ",", "variant", key->variant);
    label(page, ",", "size", key->size);
    label(page, ",", "dtype", key->dtype);
    buf_printf(page->buf, ",seed=\"%" PRIu64 "\"", key->seed);
}

static void conditions(const struct figures *f, struct page *page)
{
    head(page, "reprod_condition", "gauge", "1 for what is wrong with the service now.");
    for (int i = 0; i < HEALTH_CONDITIONS; i++) {
        one_of(page, "reprod_condition", "name", health_name((enum health_condition)i),
               f->causes[i][0] != '\0');
    }
    head(page, "reprod_condition_info", "gauge", "1, labelled with what is wrong now.");
    for (int i = 0; i < HEALTH_CONDITIONS; i++) {
        if (f->causes[i][0]) {
            buf_puts(page->buf, "reprod_condition_info");
            label(page, "{", "name", health_name((enum health_condition)i));
            label(page, ",", "cause", f->causes[i]);
            end(page, 1);
        }
    }
}

static void backups(const struct figures *f, struct page *page)
{
    seconds(page, "reprod_backup_interval_seconds", "gauge",
            "How often the service makes a backup; 0: it makes none.",
            f->backup_every_ms);
    head(page, "reprod_backup_timestamp_seconds", "gauge",
         "When the newest backup beside the database was made; absent: there is none.");
    if (f->backup_ms) {
        buf_printf(page->buf, "reprod_backup_timestamp_seconds %" PRId64 "\n",
                   f->backup_ms / 1000);
    }
}

static void background(const struct figures *f, struct page *page)
{
    seconds(page, "reprod_background_seconds_total", "counter",
            "Time of devices that background evidence used.", f->background_spent_ms);
    head(page, "reprod_background_weakest_bound_ratio", "gauge",
         "The weakest bound of background evidence: at most this ratio of runs differs "
         "(95 % confidence); absent: it looked at no cell yet.");
    if (f->weakest_bound > 0) {
        buf_printf(page->buf, "reprod_background_weakest_bound_ratio %.6g\n",
                   f->weakest_bound);
    }
}

static void connections(const struct figures *f, struct page *page)
{
    single(page, "reprod_http_connections", "gauge", "Open HTTP connections.",
           f->connections);
    single(page, "reprod_http_connections_ended_total", "counter",
           "HTTP connections that were ended to make room for others.", f->made_room);
    single(page, "reprod_http_connections_overdue_total", "counter",
           "HTTP connections that were ended at their deadlines.", f->overdue);
    single(page, "reprod_reads_joined_total", "counter",
           "Requests that got the reply of another one for the same.", f->joined);
    single(page, "reprod_reads_refused_total", "counter",
           "Requests that were refused because too many others were waiting.",
           f->refused);
    single(page, "reprod_event_streams", "gauge", "Listeners of /v1/events.", f->streams);
}

static void service(const struct figures *f, const char *version, struct page *page)
{
    head(page, "reprod_build_info", "gauge", "1, labelled with the version.");
    one_of(page, "reprod_build_info", "version", version, 1);
    single(page, "reprod_ready", "gauge", "1 if /readyz says so.", f->ready);
    conditions(f, page);
    single(page, "reprod_hosts", "gauge", "Hosts of the configuration.", f->hosts);
    single(page, "reprod_hosts_online", "gauge", "Hosts whose agent is connected.",
           f->hosts_online);
    single(page, "reprod_hosts_waiting", "gauge",
           "Hosts that wait for room, or whose launch command waits in a queue.",
           f->hosts_waiting);
    single(page, "reprod_devices", "gauge", "Devices known.", f->devices);
    single(page, "reprod_devices_foreign", "gauge",
           "Devices that processes of others use.", f->devices_foreign);
    single(page, "reprod_devices_online", "gauge", "Devices whose agent is connected.",
           f->devices_online);
    single(page, "reprod_devices_released", "gauge",
           "Devices whose agent is started when there is something to do.",
           f->devices_released);
    single(page, "reprod_devices_withheld", "gauge",
           "Devices that are held back, such as those of a drained node.",
           f->devices_withheld);
    single(page, "reprod_store_generation", "gauge",
           "Grows with every commit that changes something.", (int64_t)f->generation);
    backups(f, page);
    background(f, page);
    connections(f, page);
}

static void evidence(const struct figures *f, struct page *page)
{
    head(page, "reprod_runs_total", "counter",
         "Finished runs that reported their environment, by outcome.");
    for (int i = 0; i < OUTCOME_COUNT; i++) {
        one_of(page, "reprod_runs_total", "outcome", outcome_name((enum outcome)i),
               f->cells.runs[i]);
    }
    single(page, "reprod_iterations_total", "counter", "Iterations of completed runs.",
           f->cells.iterations);
    head(page, "reprod_cells", "gauge",
         "Cells (case and environment) by verdict, as of now.");
    for (int i = 0; i < VERDICT_COUNT; i++) {
        one_of(page, "reprod_cells", "verdict", verdict_name((enum verdict)i),
               f->cells.cells[i]);
    }
}

static void regressions(const struct figures *f, struct page *page)
{
    head(page, "reprod_cells_regressed", "gauge",
         "Cells of environments in use that gave the same bits in an earlier job and no "
         "longer do, by their verdict now; no controls.");
    for (int i = 0; i < COUNT_OF(worse); i++) {
        one_of(page, "reprod_cells_regressed", "verdict", verdict_name(worse[i]),
               f->regressed[worse[i]]);
    }
    head(page, "reprod_cell_regressed_timestamp_seconds", "gauge",
         "Since when such a cell has its verdict; of at most 50, the worst first.");
    for (int i = 0; i < f->regressed_count; i++) {
        const struct regressed_cell *c = &f->regressed_cells[i];

        buf_printf(page->buf,
                   "reprod_cell_regressed_timestamp_seconds{cell=\"%" PRId64 "\"",
                   c->cell);
        case_labels(page, &c->key);
        label(page, ",", "environment", c->environment);
        label(page, ",", "verdict", verdict_name(c->verdict));
        buf_printf(page->buf, "} %" PRId64 ".%03d\n", c->since_ms / 1000,
                   (int)(c->since_ms % 1000));
    }
}

static void drifted_hosts(const struct figures *f, struct page *page)
{
    head(page, "reprod_host_drift_cases", "gauge",
         "The same of one host, kinds without cases left out; of at most 50 hosts, those "
         "with most cases first.");
    for (int i = 0; i < f->drifted_count; i++) {
        for (int k = 0; k < FIGURES_DRIFT_KINDS; k++) {
            if (f->drifted[i].kinds[k]) {
                buf_puts(page->buf, "reprod_host_drift_cases");
                label(page, "{", "host", f->drifted[i].host);
                label(page, ",", "kind", drift_kind_name((enum drift_kind)k));
                end(page, f->drifted[i].kinds[k]);
            }
        }
    }
    head(page, "reprod_host_drift_timestamp_seconds", "gauge",
         "When these hosts were seen to have changed.");
    for (int i = 0; i < f->drifted_count; i++) {
        one_of(page, "reprod_host_drift_timestamp_seconds", "host", f->drifted[i].host,
               f->drifted[i].at_ms / 1000);
    }
}

static void drift(const struct figures *f, struct page *page)
{
    head(page, "reprod_changes_open", "gauge",
         "Changes of hosts of which no drift was reported yet, by state.");
    one_of(page, "reprod_changes_open", "state", "seen", f->changes_seen);
    one_of(page, "reprod_changes_open", "state", "measuring", f->changes_measuring);
    head(page, "reprod_drift_cases", "gauge",
         "What the newest reported change of each host did to cases, by kind; nothing "
         "where the host went back to an environment that it had before.");
    for (int k = 0; k < FIGURES_DRIFT_KINDS; k++) {
        one_of(page, "reprod_drift_cases", "kind", drift_kind_name((enum drift_kind)k),
               f->drift[k]);
    }
    drifted_hosts(f, page);
    head(page, "reprod_drift_case_info", "gauge",
         "1 for a case of these; of at most 50, a few of each report.");
    for (int i = 0; i < f->drifted_case_count; i++) {
        const struct case_drift *c = &f->drifted_cases[i];

        buf_puts(page->buf, "reprod_drift_case_info");
        label(page, "{", "host", c->host);
        label(page, ",", "from", c->from);
        label(page, ",", "to", c->to);
        label(page, ",", "kind", drift_kind_name(c->kind));
        case_labels(page, &c->key);
        end(page, 1);
    }
}

/* Only the worst devices have a figure of their own: names are not bounded. */
static void dissent(const struct figures *f, struct page *page)
{
    single(page, "reprod_devices_dissenting", "gauge",
           "Devices that give other bits than their equals in at least one cell of an "
           "environment in which they are in use.",
           f->dissenting);
    head(page, "reprod_device_dissents", "gauge",
         "In how many such cells a device dissents; of at most 50, the worst first.");
    for (int i = 0; i < f->dissenter_count; i++) {
        one_of(page, "reprod_device_dissents", "device", f->dissenters[i].device,
               f->dissenters[i].cells);
    }
}

/* Each device by its newest screening. */
static void screenings(const struct figures *f, struct page *page)
{
    static const char name[] = "reprod_devices_screened";
    const struct screening_figures *s = &f->screenings;

    head(page, name, "gauge",
         "Devices by their screening: due, measuring, or what came of it.");
    one_of(page, name, "state", "due", s->due);
    one_of(page, name, "state", "measuring", s->measuring);
    for (int i = 0; i <= SCREENING_INCONCLUSIVE; i++) {
        one_of(page, name, "state", screening_outcome_name((enum screening_outcome)i),
               s->outcomes[i]);
    }
}

static void jobs(const struct figures *f, struct page *page)
{
    head(page, "reprod_jobs_open", "gauge", "Jobs that are not finished, by state.");
    one_of(page, "reprod_jobs_open", "state", "queued", f->jobs[JOB_QUEUED]);
    one_of(page, "reprod_jobs_open", "state", "running", f->jobs[JOB_RUNNING]);
    single(page, "reprod_runs_waiting", "gauge", "Runs that open jobs still need.",
           f->runs_waiting);
    single(page, "reprod_events_total", "counter", "Events so far: the id of the newest.",
           f->events);
}

static void webhooks(const struct webhook_figures *w, struct page *page)
{
    single(page, "reprod_webhooks", "gauge", "Webhooks.", w->webhooks);
    single(page, "reprod_webhooks_failing", "gauge",
           "Webhooks to which nothing got through at the last try.", w->failing);
    single(page, "reprod_webhooks_disabled", "gauge",
           "Webhooks whose receiver said that it is gone.", w->disabled);
    single(page, "reprod_webhook_deliveries_waiting", "gauge",
           "Deliveries that wait for webhooks.", w->waiting);
    single(page, "reprod_webhook_dead_letters", "gauge",
           "Deliveries that were given up, and are kept.", w->dead);
    single(page, "reprod_webhook_deliveries_total", "counter",
           "Deliveries that arrived, of the webhooks that there are.", w->delivered);
    single(page, "reprod_webhook_failures_total", "counter",
           "Tries that failed, of the webhooks that there are.", w->failures);
    single(page, "reprod_webhook_dropped_total", "counter",
           "Dead letters that found no room, of the webhooks that there are.",
           w->dropped);
}

void metrics_text(const struct figures *f, const char *version, bool whole, bool open,
                  struct buf *buf)
{
    struct page page = { buf, open };

    service(f, version, &page);
    if (whole) {
        evidence(f, &page);
        regressions(f, &page);
        drift(f, &page);
        screenings(f, &page);
        dissent(f, &page);
        jobs(f, &page);
        webhooks(&f->webhooks, &page);
    }
    if (open) {
        buf_puts(buf, "# EOF\n");
    }
}
