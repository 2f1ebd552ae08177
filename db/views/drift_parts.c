#include "db/views/drift_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "db/case_keys.h"
#include "db/fleet.h"
#include "db/tx.h"

/* The devices that are named in some case of the environment. */
static enum err_code read_suspects(struct tx *tx, struct drift_end *end, struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT DISTINCT x.device FROM cell c"
                " CROSS JOIN cell_dissenter x ON x.cell = c.id"
                " JOIN case_key k ON k.number = c.case_key"
                " WHERE c.environment = ? AND NOT k.challenge ORDER BY x.device",
                end->environment.number);
    while (query_step(&q)) {
        end->suspect_names =
            xgrow(end->suspect_names, end->suspect_count, sizeof *end->suspect_names);
        query_take_text(&q, end->suspect_names[end->suspect_count++], CASE_TITLE_SIZE);
    }
    end->suspects = xcalloc((size_t)end->suspect_count + 1, sizeof(const char *));
    for (int i = 0; i < end->suspect_count; i++) {
        end->suspects[i] = end->suspect_names[i];
    }
    return query_end(&q, err);
}

static bool is_suspect(const struct drift_end *end, const char *device)
{
    for (int i = 0; i < end->suspect_count; i++) {
        if (strcmp(end->suspects[i], device) == 0) {
            return true;
        }
    }
    return false;
}

enum err_code drift_read_facts(struct tx *tx, const char *id, struct drift_end *end,
                               struct err *err)
{
    return environments_get(tx, id, &end->environment, &end->json, err) == ERR_OK
               ? read_suspects(tx, end, err)
               : err->code;
}

enum err_code drift_read_end(struct tx *tx, const char *id, struct drift_end *end,
                             struct err *err)
{
    struct query q;

    if (drift_read_facts(tx, id, end, err) != ERR_OK) {
        return err->code;
    }
    query_begin(&q, tx,
                "SELECT x.device, x.stack FROM device_environment x"
                " JOIN device_stack_environment n ON n.device = x.device"
                " AND n.stack = x.stack AND n.environment = x.environment"
                " WHERE x.environment = ? ORDER BY x.device, x.stack",
                end->environment.number);
    while (query_step(&q)) {
        struct drift_place *place;

        end->places = xgrow(end->places, end->place_count, sizeof *end->places);
        place = &end->places[end->place_count++];
        query_take(&q, place->device, place->stack);
        place->suspect = is_suspect(end, place->device);
    }
    return query_end(&q, err);
}

void drift_add_cell(struct drift *drift, const struct class_cell *cell, bool to)
{
    struct drift_case *x;
    struct drift_side *side;

    drift->cases = xgrow(drift->cases, drift->case_count, sizeof *drift->cases);
    x = &drift->cases[drift->case_count++];
    memset(x, 0, sizeof *x);
    x->key = cell->key;
    x->is_control = cell->is_control;
    x->subject = cell->subject;
    copy_text(x->subject_name, sizeof x->subject_name, cell->subject_name);
    side = to ? &x->to : &x->from;
    side->cell = cell->id;
    side->verdict = cell->verdict;
    side->damaged = cell->damaged;
    side->runs = cell->runs;
    side->distinct_digests = cell->distinct_digests;
}

void drift_name_algorithms(struct drift_side *side)
{
    if (side->algorithms > 1) {
        snprintf(side->algorithm, sizeof side->algorithm, "%d, chosen in each run",
                 side->algorithms);
    }
}

enum err_code drift_read_contested(struct tx *tx, struct drift_case *x, struct err *err)
{
    int64_t siblings = 0;
    struct inputs inputs;

    if (tx_fetch_int(tx, &siblings, err,
                     "SELECT k.siblings FROM cell c JOIN case_key k"
                     " ON k.number = c.case_key WHERE c.id = ?",
                     x->to.cell ? x->to.cell : x->from.cell) != ERR_OK ||
        case_inputs_load(tx, siblings, &inputs, err) != ERR_OK) {
        return err->code;
    }
    x->from.contested = x->to.contested = inputs.contested;
    return ERR_OK;
}
