#include "daemon/evidence/matrix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"

void matrix_init(struct matrix *matrix, const struct profile_table *table,
                 const struct catalogue *catalogue, int64_t as_of_ms, bool historic,
                 int64_t stale_after_ms)
{
    *matrix = (struct matrix){ .table = table,
                               .as_of_ms = as_of_ms,
                               .historic = historic,
                               .stale_after_ms = stale_after_ms,
                               .only = SUBJECT_COUNT,
                               .valid_until_ms = INT64_MAX };
    relations_init(&matrix->relations, catalogue);
}

void matrix_release(struct matrix *matrix)
{
    relations_release(&matrix->relations);
    free(matrix->environment_json);
    json_decref(matrix->facts);
    free(matrix->variants);
    free(matrix->bases);
    free(matrix->timed);
    free(matrix->bits);
    free(matrix->solutions);
    *matrix = (struct matrix){ .table = NULL };
}

/* The history keeps no time of the last run, so there a verdict counts from when it, or
 * the number of digests, last changed: too early, but never too fresh. */
static int64_t last_evidence_ms(const struct matrix *m, const struct cell *cell)
{
    return m->historic ? cell->changed_ms : cell->evidence.last_completed_ms;
}

static enum verdict verdict_of(struct matrix *m, const struct cell *cell)
{
    int64_t last_ms = last_evidence_ms(m, cell);
    int64_t oldest_ms = cell->vouched_ms < last_ms ? cell->vouched_ms : last_ms;
    enum verdict verdict = verdict_at(cell->verdict, last_ms, cell->vouched_ms,
                                      m->as_of_ms, m->stale_after_ms);

    if (verdict == VERDICT_REPRODUCIBLE && m->stale_after_ms > 0 && !m->historic &&
        oldest_ms + m->stale_after_ms < m->valid_until_ms) {
        m->valid_until_ms = oldest_ms + m->stale_after_ms;
    }
    return verdict;
}

/* What those earned that agree, as of now. */
static struct agreeing agreeing_of(struct matrix *m, const struct cell *cell)
{
    struct cell alone = *cell;
    struct agreeing agreeing = cell->agreeing;

    alone.verdict = cell->agreeing.verdict;
    agreeing.verdict = verdict_of(m, &alone);
    return agreeing;
}

static bool is_of(const struct matrix_variant *v, const struct cell *cell)
{
    return strcmp(v->key.workload, cell->key.workload) == 0 &&
           strcmp(v->key.variant, cell->key.variant) == 0;
}

static struct matrix_variant *begin_variant(struct matrix *m, const struct cell *cell)
{
    struct matrix_variant *v;

    m->variants = xgrow(m->variants, m->variant_count, sizeof *m->variants);
    v = &m->variants[m->variant_count++];
    *v = (struct matrix_variant){ .known = VARIANT_KNOWLEDGE_INIT, .key = cell->key };
    return v;
}

static void carry(struct matrix_variant *v, const struct cell *cell)
{
    int64_t timed = cell->times.runs;

    v->cell = cell->id;
    v->key = cell->key;
    v->is_control = cell->is_control;
    v->subject = cell->subject;
    copy_text(v->subject_name, sizeof v->subject_name, cell->subject_name);
    v->distinct_digests = cell->evidence.distinct_digests;
    v->claimed = cell->evidence.claimed;
    v->warned = cell->evidence.warned;
    v->departs = departures_of(cell, &v->departures);
    v->mean_ns = timed > 0 ? cell->median_ns_sum / timed : 0;
    v->times = cell->times;
    copy_text(v->digest, sizeof v->digest, cell->digest);
}

static void add_times(struct matrix *m, const struct cell *cell)
{
    const struct matrix_base times = { cell->key, cell->subject, cell->times };

    if (cell->times.runs < TIMES_COST_RUNS) {
        return;
    }
    if (!cell->is_control) {
        m->timed = xgrow(m->timed, m->timed_count, sizeof *m->timed);
        m->timed[m->timed_count++] = times;
    } else if (cell->evidence.checks.failed == 0) {
        m->bases = xgrow(m->bases, m->base_count, sizeof *m->bases);
        m->bases[m->base_count++] = times;
    }
}

/* Keeps the digest of CELL if it is its only one, a relation names its variant, and the
 * numbers are right: that wrong ones are equal, or are not, says nothing of two variants.
 */
static void add_bits(struct matrix *m, const struct cell *cell)
{
    const struct checks *checks = &cell->evidence.checks;
    struct matrix_bits *bits;

    if (checks->has_reference && (checks->passed == 0 || checks->failed > 0)) {
        return;
    }
    if (cell->evidence.distinct_digests != 1 || !cell->digest[0] ||
        !relations_involve(&m->relations, cell->key.workload, cell->key.variant)) {
        return;
    }
    m->bits = xgrow(m->bits, m->bits_count, sizeof *m->bits);
    bits = &m->bits[m->bits_count++];
    bits->key = cell->key;
    copy_text(bits->digest, sizeof bits->digest, cell->digest);
}

void matrix_add(struct matrix *m, const struct cell *cell)
{
    struct matrix_variant *v =
        m->variant_count > 0 ? &m->variants[m->variant_count - 1] : NULL;
    struct variant_knowledge before;
    char stale[VERDICT_REASON_SIZE];
    enum verdict verdict = verdict_of(m, cell);

    if (verdict == VERDICT_STALE) {
        verdict_stale_reason(cell->reason, last_evidence_ms(m, cell), m->as_of_ms,
                             m->stale_after_ms, stale);
    }
    add_times(m, cell);
    add_bits(m, cell);
    if (!v || !is_of(v, cell)) {
        v = begin_variant(m, cell);
    } else if (cell->key.version > v->key.version) {
        m->variant_count--;
        v = begin_variant(m, cell);
    } else if (cell->key.version < v->key.version) {
        return;
    }
    before = v->known;
    if (verdict == VERDICT_DEVICES_DISAGREE) {
        struct agreeing agreeing = agreeing_of(m, cell);

        variant_knowledge_dissent(&v->known, &agreeing, cell->reason, &cell->evidence);
    } else {
        variant_knowledge_join(&v->known, verdict,
                               verdict == VERDICT_STALE ? stale : cell->reason,
                               &cell->evidence);
    }
    if (v->known.verdict != before.verdict ||
        (v->known.cases > before.cases &&
         (before.cases == 0 || v->known.weakest_runs < before.weakest_runs))) {
        carry(v, cell);
    }
}

/* Of each workload only the newest version counts, whichever variant brought it; of the
 * subjects, those that are shown. */
static void drop_superseded(struct matrix *m)
{
    int kept = 0;

    for (int i = 0; i < m->variant_count;) {
        int end = i;
        int newest = 0;

        while (end < m->variant_count &&
               strcmp(m->variants[end].key.workload, m->variants[i].key.workload) == 0) {
            newest = m->variants[end].key.version > newest ? m->variants[end].key.version
                                                           : newest;
            end++;
        }
        for (; i < end; i++) {
            if (m->variants[i].key.version == newest &&
                (m->only == SUBJECT_COUNT || m->only == m->variants[i].subject)) {
                m->variants[kept++] = m->variants[i];
            }
        }
    }
    m->variant_count = kept;
}

/* As cells_get_control does: the first control by name that has enough runs and is of the
 * same subject.  What determinism costs in our loops says nothing of a library. */
static const struct matrix_base *
find_base(const struct matrix *m, const struct case_key *key, enum subject subject)
{
    for (int i = 0; i < m->base_count; i++) {
        if (subject == m->bases[i].subject && case_siblings(key, &m->bases[i].key)) {
            return &m->bases[i];
        }
    }
    return NULL;
}

/* Whether it is V's case but for its size. */
static bool is_in_another_size(const struct matrix_base *timed,
                               const struct matrix_variant *v)
{
    struct case_key key = timed->key;

    memcpy(key.size, v->key.size, sizeof key.size);
    return case_siblings(&key, &v->key) && strcmp(key.variant, v->key.variant) == 0 &&
           timed->subject == v->subject;
}

static void set_cost(struct matrix_variant *v, const struct cost *cost,
                     const struct matrix_base *base)
{
    v->cost = *cost;
    copy_text(v->cost_against, sizeof v->cost_against, base->key.variant);
    copy_text(v->cost_size, sizeof v->cost_size, base->key.size);
}

/* Both times of a cost are of one size, always. */
static void tell_cost_elsewhere(const struct matrix *m, int64_t least_ns,
                                struct matrix_variant *v)
{
    int64_t fastest = INT64_MAX;

    for (int i = 0; i < m->timed_count; i++) {
        const struct matrix_base *timed = &m->timed[i];
        const struct matrix_base *base =
            is_in_another_size(timed, v) ? find_base(m, &timed->key, v->subject) : NULL;
        struct cost cost = { .known = false };

        if (base) {
            cost = times_cost(&timed->times, &base->times, least_ns);
        }
        if (cost.known && base->times.median_ns < fastest) {
            fastest = base->times.median_ns;
            set_cost(v, &cost, base);
        }
    }
}

static void tell_cost(const struct matrix *m, int64_t least_ns, struct matrix_variant *v)
{
    const struct matrix_base *base =
        v->is_control ? NULL : find_base(m, &v->key, v->subject);
    struct cost cost;

    if (!base) {
        return;
    }
    cost = times_cost(&v->times, &base->times, least_ns);
    set_cost(v, &cost, base);
    if (cost.too_short) {
        tell_cost_elsewhere(m, least_ns, v);
    }
}

static void compare_in_case(const struct matrix *m, const struct matrix_bits *own,
                            struct matrix_variant *v)
{
    enum relation_seen expected =
        v->relation->equal ? RELATION_EQUAL : RELATION_DIFFERENT;

    for (int i = 0; i < m->bits_count; i++) {
        const struct matrix_bits *other = &m->bits[i];

        if (strcmp(other->key.variant, v->relation->other) == 0 &&
            case_siblings(&own->key, &other->key)) {
            enum relation_seen seen = strcmp(own->digest, other->digest) == 0
                                          ? RELATION_EQUAL
                                          : RELATION_DIFFERENT;

            if (v->seen == RELATION_UNKNOWN || seen != expected) {
                v->seen = seen;
                v->seen_in = &own->key;
            }
        }
    }
}

/* Sets the relation of V and what is seen of it. */
static void tell_relation(const struct matrix *m, struct matrix_variant *v)
{
    v->relation = relations_find(&m->relations, v->key.workload, v->key.variant);
    for (int i = 0; v->relation && i < m->bits_count; i++) {
        const struct case_key *key = &m->bits[i].key;

        if (key->version == v->key.version &&
            strcmp(key->workload, v->key.workload) == 0 &&
            strcmp(key->variant, v->key.variant) == 0) {
            compare_in_case(m, &m->bits[i], v);
        }
    }
}

const struct matrix_variant *matrix_find(const struct matrix *m, const char *workload,
                                         const char *variant, enum subject subject)
{
    for (int i = 0; i < m->variant_count; i++) {
        if (m->variants[i].subject == subject &&
            strcmp(m->variants[i].key.workload, workload) == 0 &&
            strcmp(m->variants[i].key.variant, variant) == 0) {
            return &m->variants[i];
        }
    }
    return NULL;
}

const struct matrix_variant *matrix_chosen(const struct matrix *m,
                                           const struct profile_row *row,
                                           const struct profile_choice *choice)
{
    const struct matrix_variant *v =
        choice->variant ? matrix_find(m, row->workload, choice->variant, row->subject)
                        : NULL;

    return v && (!row->subject_name || strcmp(v->subject_name, row->subject_name) == 0)
               ? v
               : NULL;
}

/* What a framework computes itself is of its installed versions, not of a column's. */
#define OPERATIONS_HREF                                                                  \
    "/v1/operations?table=%.64s has what installed versions compute themselves"

/* Says why nothing of ROW was measured where that is not the runs' doing, and takes back
 * what no library that is known by its version earned.  What the command of a framework
 * declares is taken as declared. */
static void tell_absence(const struct matrix *m, const struct profile_row *row,
                         const struct profile_cell *cell, struct solution *s)
{
    bool nothing = s->runs == 0 &&
                   (s->state == SOLUTION_UNMEASURED || s->state == SOLUTION_UNSUPPORTED);

    if (row->subject == SUBJECT_MODEL) {
        return;
    }
    if (subject_version(row->subject_name, m->facts)) {
        if (cell->choice_count == 0 && row->operations) {
            snprintf(s->reason, sizeof s->reason, OPERATIONS_HREF, m->table->id);
        } else if (cell->choice_count == 0) {
            snprintf(s->reason, sizeof s->reason, "no workload has %s compute it",
                     row->subject_name);
        }
    } else if (nothing) {
        *s = (struct solution){ .state = SOLUTION_UNMEASURED, .difference_bound = 1 };
        snprintf(s->reason, sizeof s->reason, "no %s in this stack", row->subject_name);
    } else if (row->subject == SUBJECT_LIBRARY && s->state == SOLUTION_MEASURED) {
        *s = (struct solution){ .state = SOLUTION_UNMEASURED, .difference_bound = 1 };
        snprintf(s->reason, sizeof s->reason, "its runs did not say which %s computed",
                 row->subject_name);
    }
}

static struct solution derive(const struct matrix *m, const struct profile_row *row,
                              const struct profile_cell *cell)
{
    static const struct variant_knowledge unknown = VARIANT_KNOWLEDGE_INIT;
    struct variant_knowledge known[PROFILE_RECIPES_MAX];
    struct solution s;

    if (cell->absent) {
        return (struct solution){ .state = SOLUTION_ABSENT, .difference_bound = 1 };
    }
    if (!row->workload) {
        s = (struct solution){ .state = SOLUTION_NO_MODEL, .difference_bound = 1 };
        snprintf(s.reason, sizeof s.reason, "no workload stands for it");
        if (row->operations) {
            snprintf(s.reason, sizeof s.reason,
                     "no model stands for it; " OPERATIONS_HREF, m->table->id);
        }
        return s;
    }
    for (int i = 0; i < cell->choice_count; i++) {
        const struct matrix_variant *v = matrix_chosen(m, row, &cell->choices[i]);

        known[i] = v ? v->known : unknown;
    }
    s = solution_derive(cell->choices, known, cell->choice_count);
    tell_absence(m, row, cell, &s);
    return s;
}

void matrix_settle(struct matrix *m)
{
    const struct profile_table *t = m->table;
    size_t cells = (size_t)t->row_count * (size_t)t->column_count;

    int64_t least_ns = times_least(m->environment_json);

    m->facts = m->environment_json ? json_loads(m->environment_json, 0, NULL) : NULL;
    drop_superseded(m);
    for (int i = 0; i < m->variant_count; i++) {
        tell_cost(m, least_ns, &m->variants[i]);
        tell_relation(m, &m->variants[i]);
    }
    m->solutions = xcalloc(cells + 1, sizeof *m->solutions);
    for (int row = 0; row < t->row_count; row++) {
        for (int column = 0; column < t->column_count; column++) {
            m->solutions[row * t->column_count + column] =
                derive(m, &t->rows[row], &t->rows[row].cells[column]);
        }
    }
}

const struct solution *matrix_solution(const struct matrix *m, int row, int column)
{
    return &m->solutions[row * m->table->column_count + column];
}

int matrix_agrees(const struct matrix *m, int row, int column)
{
    const struct solution *s = matrix_solution(m, row, column);
    const char *documented = m->table->rows[row].cells[column].documented;

    if (s->state != SOLUTION_MEASURED || !documented) {
        return -1;
    }
    return strcmp(s->code, documented) == 0;
}

void matrix_row_subject(const struct matrix *m, int row, char ret_text[SUBJECT_TEXT_SIZE])
{
    const struct profile_row *r = &m->table->rows[row];

    if (!r->workload) {
        copy_text(ret_text, SUBJECT_TEXT_SIZE, "no model");
        return;
    }
    subject_text(r->subject, r->subject_name, m->facts, ret_text);
}

bool matrix_shows_row(const struct matrix *m, int row)
{
    return m->only == SUBJECT_COUNT || m->only == m->table->rows[row].subject;
}
