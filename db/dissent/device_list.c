#include "db/dissent/device_list.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "db/case_keys.h"
#include "db/dissent/cell_devices.h"
#include "db/tx.h"

void device_list_release(struct device_list *list)
{
    for (int i = 0; i < list->count; i++) {
        free(list->devices[i].attributes);
    }
    free(list->devices);
    *list = (struct device_list){ .count = 0 };
}

static enum err_code load_devices(struct tx *tx, int64_t cell, struct device_list *list,
                                  struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT c.device, ifnull(d.host, c.device), ifnull(d.attributes, '{}'),"
                " sum(c.runs), sum(c.iterations), max(c.digest IS NULL),"
                " min(c.first_ms), max(c.last_ms), min(c.first_run), max(c.last_run),"
                " (SELECT count(DISTINCT g.digest) FROM cell_device_digest g"
                " WHERE g.cell = c.cell AND g.device = c.device),"
                " ifnull((SELECT x.since_ms FROM cell_dissenter x WHERE x.cell = c.cell"
                " AND x.device = c.device), 0) AS since FROM cell_device c"
                " LEFT JOIN device d ON d.id = c.device WHERE c.cell = ?1"
                " GROUP BY c.device ORDER BY since = 0, c.device LIMIT ?2",
                cell, CELL_DEVICES_MAX);
    while (query_step(&q)) {
        struct cell_device *d;
        const char *attributes;

        list->devices = xgrow(list->devices, list->count, sizeof *list->devices);
        d = &list->devices[list->count++];
        *d = (struct cell_device){ .mark = DISSENT_AGREES };
        query_take(&q, d->device, d->host, &attributes, &d->runs, &d->iterations,
                   &d->varied, &d->first_ms, &d->last_ms, d->first_run, d->last_run,
                   &d->distinct_digests, &d->since_ms);
        d->attributes = xstrdup(attributes);
    }
    return query_end(&q, err);
}

static enum err_code load_digests(struct tx *tx, int64_t cell, struct cell_device *d,
                                  struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT digest, sum(runs), sum(iterations) FROM cell_device_digest"
                " WHERE cell = ? AND device = ? GROUP BY digest"
                " ORDER BY 2 DESC, 3 DESC, digest LIMIT ?",
                cell, d->device, DEVICE_DIGESTS_MAX);
    while (query_step(&q)) {
        int n = d->digest_count++;

        query_take(&q, d->digests[n].digest, &d->digests[n].runs,
                   &d->digests[n].iterations);
    }
    return query_end(&q, err);
}

static void take_marks(struct device_list *list, const struct cell_devices *judged)
{
    for (int i = 0; i < list->count; i++) {
        for (int j = 0; j < judged->count; j++) {
            if (judged->rows[j].mark > list->devices[i].mark &&
                strcmp(judged->rows[j].device, list->devices[i].device) == 0) {
                list->devices[i].mark = judged->rows[j].mark;
            }
        }
    }
    list->dissent = judged->dissent;
}

enum err_code device_list_load(struct tx *tx, int64_t cell, struct device_list *ret_list,
                               struct err *err)
{
    struct cell_devices judged;
    enum err_code code;

    *ret_list = (struct device_list){ .count = 0 };
    code = load_devices(tx, cell, ret_list, err);
    for (int i = 0; i < ret_list->count && code == ERR_OK; i++) {
        code = load_digests(tx, cell, &ret_list->devices[i], err);
    }
    if (code == ERR_OK) {
        code = cell_devices_load(tx, cell, &judged, err);
    }
    if (code != ERR_OK) {
        device_list_release(ret_list);
        return code;
    }
    if (judged.dissent.state != DISSENT_NONE) {
        take_marks(ret_list, &judged);
    } else {
        ret_list->dissent = judged.dissent;
    }
    cell_devices_release(&judged);
    return ERR_OK;
}

/* What answers a challenge is no measurement of its own. */
#define MEASURED                                                                         \
    " CROSS JOIN cell c ON c.id = x.cell CROSS JOIN case_key k"                          \
    " ON k.number = c.case_key WHERE NOT k.challenge"

enum err_code dissenters_each(struct tx *tx, const char *device, int64_t from, int limit,
                              void (*visit)(void *arg, const struct dissenter *dissenter),
                              void *arg, struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT x.device, ifnull(d.host, ''), x.cell, x.since_ms, e.id,"
                " c.verdict, c.reason, ifnull((SELECT sum(runs) FROM cell_device y"
                " WHERE y.cell = x.cell AND y.device = x.device), 0), " CASE_KEY_COLUMNS
                " FROM cell_dissenter x JOIN cell c ON c.id = x.cell"
                " JOIN case_key k ON k.number = c.case_key"
                " JOIN environment e ON e.number = c.environment"
                " LEFT JOIN device d ON d.id = x.device"
                " WHERE NOT k.challenge AND (?1 IS NULL OR x.device = ?1)"
                " AND (?2 = 0 OR x.cell <= ?2)"
                " ORDER BY x.cell DESC, x.device LIMIT ?3",
                device, from, limit);
    while (query_step(&q)) {
        struct dissenter found = { .cell = 0 };
        char verdict[CASE_NAME_SIZE];

        query_take(&q, found.device, found.host, &found.cell, &found.since_ms,
                   found.environment, verdict, found.reason, &found.runs);
        verdict_parse(verdict, &found.verdict);
        case_keys_take(&q, &found.key);
        visit(arg, &found);
    }
    return query_end(&q, err);
}

/* A cell has a row of each device for each of its conditions and states. */
static enum err_code count_cells(struct tx *tx, struct device_dissents *devices,
                                 int count, struct err *err)
{
    struct query q;
    int64_t last = 0;
    int i = 0;

    query_begin(&q, tx,
                "SELECT c.id, x.device FROM cell c CROSS JOIN case_key k"
                " ON k.number = c.case_key CROSS JOIN cell_device x ON x.cell = c.id"
                " AND x.device BETWEEN ?1 AND ?2 WHERE NOT k.challenge"
                " ORDER BY c.id, x.device",
                devices[0].device, devices[count - 1].device);
    while (query_step(&q)) {
        int64_t cell = query_take_int(&q);
        const char *device = query_borrow_text(&q);
        int order = -1;

        if (cell != last) {
            i = 0;
        }
        last = cell;
        while (i < count && (order = strcmp(devices[i].device, device)) < 0) {
            i++;
        }
        if (order == 0) {
            devices[i++].cells++;
        }
    }
    return query_end(&q, err);
}

static enum err_code count_dissents(struct tx *tx, struct device_dissents *devices,
                                    int count, struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT x.device, count(*) FROM cell_dissenter x" MEASURED
                " AND x.device BETWEEN ?1 AND ?2 GROUP BY x.device ORDER BY x.device",
                devices[0].device, devices[count - 1].device);
    for (int i = 0; query_step(&q);) {
        const char *device = query_borrow_text(&q);
        int64_t dissents = query_take_int(&q);

        while (i < count && strcmp(devices[i].device, device) < 0) {
            i++;
        }
        if (i < count && strcmp(devices[i].device, device) == 0) {
            devices[i].dissents = dissents;
        }
    }
    return query_end(&q, err);
}

enum err_code dissenters_of_devices(struct tx *tx, struct device_dissents *devices,
                                    int count, struct err *err)
{
    for (int i = 0; i < count; i++) {
        devices[i].cells = devices[i].dissents = 0;
    }
    if (count == 0 || count_cells(tx, devices, count, err) != ERR_OK) {
        return count == 0 ? ERR_OK : err->code;
    }
    return count_dissents(tx, devices, count, err);
}

enum err_code dissenters_of_device(struct tx *tx, const char *device, int64_t *ret_cells,
                                   int64_t *ret_dissents, struct err *err)
{
    struct device_dissents one = { .device = device };
    enum err_code code = dissenters_of_devices(tx, &one, 1, err);

    *ret_cells = one.cells;
    *ret_dissents = one.dissents;
    return code;
}

enum err_code dissenters_worst(struct tx *tx, int limit,
                               void (*visit)(void *arg, const char *device,
                                             int64_t cells),
                               void *arg, struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT x.device, count(*) FROM cell_dissenter x" MEASURED
                " GROUP BY x.device ORDER BY 2 DESC, x.device LIMIT ?",
                limit);
    while (query_step(&q)) {
        const char *device = query_borrow_text(&q);

        visit(arg, device, query_take_int(&q));
    }
    return query_end(&q, err);
}
