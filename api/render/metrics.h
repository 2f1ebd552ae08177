/* The figures of GET /metrics, in Prometheus' text format or as OpenMetrics.  Pure.
 *
 * A series whose value is known is there from the start, with a zero; one whose value is
 * not known is left out.  What has names of devices, hosts or cases is a list of at most
 * FIGURES_LISTED, the worst first, beside a sum that counts all. */
#ifndef API_RENDER_METRICS_H
#define API_RENDER_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/buf.h"
#include "daemon/base/health.h"
#include "daemon/evidence/drift.h"
#include "daemon/jobs/job.h"
#include "db/screening/screenings.h"
#include "db/views/figures.h"
#include "db/webhooks/webhooks.h"

enum { FIGURES_LISTED = 50 };

/* The kinds of drift that are worth an alert: those before it. */
enum { FIGURES_DRIFT_KINDS = DRIFT_BITS + 1 };

struct figures {
    /* What the loop knows without the database. */
    bool ready;
    char causes[HEALTH_CONDITIONS][HEALTH_CAUSE_SIZE]; /* "": it does not apply */
    int64_t devices, devices_online, devices_foreign, devices_released, devices_withheld;
    int64_t hosts, hosts_online, hosts_waiting;
    int64_t streams, connections, made_room, overdue, joined, refused;
    uint64_t generation;
    double weakest_bound; /* these as in struct api_figures */
    int64_t background_spent_ms, backup_ms, backup_every_ms;
    /* What it holds. */
    struct cell_figures cells;
    struct screening_figures screenings;
    int64_t jobs[JOB_CANCELLED + 1], runs_waiting, events;
    int64_t dissenting;
    struct {
        char device[CASE_TITLE_SIZE];
        int64_t cells;
    } dissenters[FIGURES_LISTED];
    int dissenter_count;
    /* Cells that regressed, in environments that are in use: by what they are now. */
    int64_t regressed[VERDICT_COUNT];
    struct regressed_cell regressed_cells[FIGURES_LISTED];
    int regressed_count;
    /* What the newest reported change of each host did. */
    int64_t changes_seen, changes_measuring, drift[FIGURES_DRIFT_KINDS];
    struct host_drift {
        char host[CASE_TITLE_SIZE];
        int64_t at_ms, kinds[FIGURES_DRIFT_KINDS];
    } drifted[FIGURES_LISTED];
    int drifted_count;
    struct case_drift {
        char host[CASE_TITLE_SIZE], from[DIGEST_TEXT_SIZE], to[DIGEST_TEXT_SIZE];
        enum drift_kind kind;
        struct case_key key;
    } drifted_cases[FIGURES_LISTED];
    int drifted_case_count;
    struct webhook_figures webhooks;
};

/* Into its place among those that are listed; of equals the newer one comes first. */
void figures_add_regressed(struct figures *figures, const struct regressed_cell *cell);
void figures_add_drift(struct figures *figures, const struct host_drift *drift);

/* WHOLE: with what the database holds.  OPEN: as OpenMetrics. */
void metrics_text(const struct figures *figures, const char *version, bool whole,
                  bool open, struct buf *buf);

#endif
