#include "daemon/jobs/background.h"

#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/evidence/verdict.h"

enum { PPM = 1000000 };

void background_save(struct background_budget *b,
                     const struct background_options *options, int64_t now_ms)
{
    if (b->counted_ms && now_ms > b->counted_ms) {
        b->rest_ppm += (now_ms - b->counted_ms) * options->budget_ppm;
        b->saved_ms += b->rest_ppm / PPM;
        b->rest_ppm %= PPM;
        if (b->saved_ms > BACKGROUND_SAVED_MS) {
            b->saved_ms = BACKGROUND_SAVED_MS;
        }
    }
    b->counted_ms = now_ms;
}

void background_spend(struct background_budget *b, int64_t ms)
{
    b->saved_ms -= ms;
    b->spent_ms += ms;
}

/* From four fifths of the age on: a budget has to get round to all cells in time. */
static double overdue(const struct background_cell *c,
                      const struct background_options *options, int64_t now_ms)
{
    int64_t since =
        c->last_completed_ms < c->vouched_ms ? c->last_completed_ms : c->vouched_ms;
    double age = (double)(now_ms - since) / (double)options->age_ms;

    return age > 0.8 ? 1 + age : 0;
}

double background_need(const struct background_cell *c,
                       const struct background_options *options, int64_t now_ms)
{
    double bound = verdict_difference_bound(c->completed);
    double late = 0;

    if (c->is_control) {
        return 0;
    }
    if (options->age_ms && c->vouched_ms) {
        late = overdue(c, options, now_ms);
    }
    return late > 0 ? late : bound * PPM > options->target_ppm ? bound : 0;
}

void background_stand(const struct background_cell *cells, int count,
                      const struct background_options *options,
                      struct background_standing *standing)
{
    for (int i = 0; i < count; i++) {
        const struct background_cell *c = &cells[i];
        double bound = verdict_difference_bound(c->completed);

        if (c->is_control) {
            continue;
        }
        if (standing->cells == 0 || c->last_completed_ms < standing->oldest_run_ms) {
            standing->oldest_run_ms = c->last_completed_ms;
        }
        if (bound > standing->weakest_bound) {
            standing->weakest_bound = bound;
        }
        standing->below_target += bound * PPM <= options->target_ppm;
        standing->cells++;
    }
}

static const struct background_cell *
find_neediest(const struct background_cell *cells, int count,
              const struct background_options *options, int64_t now_ms)
{
    const struct background_cell *best = NULL;
    double most = 0;

    for (int i = 0; i < count; i++) {
        double need = background_need(&cells[i], options, now_ms);

        if (need > most) {
            most = need;
            best = &cells[i];
        }
    }
    return best;
}

bool background_choose(const struct background_cell *cells, int count,
                       const struct background_options *options, int64_t saved_ms,
                       int64_t now_ms, struct background_pick *ret_pick)
{
    const struct background_cell *best = find_neediest(cells, count, options, now_ms);
    struct background_pick pick = { .variant_count = 0 };
    int64_t round_ms = 0; /* a run of each variant */

    if (!best || saved_ms <= 0) {
        return false;
    }
    pick.key = best->key;
    pick.key.variant[0] = '\0';
    for (int i = 0; i < count && pick.variant_count < BACKGROUND_VARIANTS_MAX; i++) {
        const struct background_cell *c = &cells[i];

        if (case_siblings(&c->key, &best->key) &&
            (c->is_control || background_need(c, options, now_ms) > 0)) {
            copy_text(pick.variants[pick.variant_count++], CASE_NAME_SIZE,
                      c->key.variant);
            round_ms += c->run_ms;
        }
    }
    /* A control of a single run shows no two digests that could differ. */
    if (saved_ms < 2 * round_ms && saved_ms < BACKGROUND_SAVED_MS) {
        return false;
    }
    pick.runs = (int)(saved_ms / round_ms > BACKGROUND_RUNS_MAX ? BACKGROUND_RUNS_MAX
                                                                : saved_ms / round_ms);
    pick.runs = pick.runs < 2 ? 2 : pick.runs;
    pick.cost_ms = pick.runs * round_ms;
    pick.need = background_need(best, options, now_ms);
    *ret_pick = pick;
    return true;
}
