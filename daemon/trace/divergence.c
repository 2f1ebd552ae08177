#include <stdlib.h>

#include "daemon/base/mem.h"
#include "daemon/trace/divergence_tree.h"
#include "daemon/trace/trace_reads.h"

struct divergence *divergence_new(void)
{
    struct divergence *d = xcalloc(1, sizeof *d);

    trace_init(&d->names);
    d->root = d->first = d->parting = DIVERGENCE_NONE;
    return d;
}

void divergence_free(struct divergence *d)
{
    if (!d) {
        return;
    }
    for (int i = 0; i < d->segment_count; i++) {
        free(d->segments[i].positions);
    }
    trace_release(&d->names);
    free(d->values);
    free(d);
}

/* Segments that lie behind the root serve no more: no run gets there. */
static int find_free_segment(struct divergence *d)
{
    if (d->segment_count < DIVERGENCE_STRUCTURES_MAX) {
        return d->segment_count++;
    }
    for (int i = 1; i < d->segment_count && d->root != DIVERGENCE_NONE; i++) {
        if (d->segments[i].from > d->root) {
            return i;
        }
    }
    return DIVERGENCE_NONE;
}

static int add_segment(struct divergence *d, int parent, int64_t from)
{
    int index = find_free_segment(d);

    if (index != DIVERGENCE_NONE) {
        struct divergence_segment *s = &d->segments[index];

        s->parent = parent;
        s->from = from;
        s->count = 0;
    }
    return index;
}

/* NULL where it has no record at that position. */
static struct divergence_position *segment_at(const struct divergence_segment *s,
                                              int64_t at)
{
    int64_t i = at - s->from;

    return s->positions && i >= 0 && i < s->count ? &s->positions[i] : NULL;
}

static void append(struct divergence_segment *s,
                   const struct divergence_position *position)
{
    if (!s->positions || s->count == s->capacity) {
        s->capacity = s->capacity ? 2 * s->capacity : 64;
        s->positions = xrealloc(s->positions, (size_t)s->capacity * sizeof *s->positions);
    }
    s->positions[s->count++] = *position;
}

static void note_parting(struct divergence *d, int64_t at,
                         const struct divergence_position *known,
                         const struct divergence_position *here)
{
    static const struct divergence_position end = { .place = DIVERGENCE_NONE };

    if (d->parting == DIVERGENCE_NONE || at < d->parting) {
        d->parting = at;
        d->parted[0] = known ? *known : end;
        d->parted[1] = here ? *here : end;
    }
}

/* Where a run is on its way through the tree. */
struct walk {
    int segment;
    int32_t run;
    bool alone; /* on a stretch that no run went before: it is being recorded */
};

/* The branch of W's segment at AT that goes on with HERE, or DIVERGENCE_NONE. */
static int find_branch(const struct divergence *d, const struct walk *w, int64_t at,
                       const struct divergence_position *here)
{
    for (int i = 0; i < d->segment_count; i++) {
        const struct divergence_segment *s = &d->segments[i];
        const struct divergence_position *first =
            s->from == at ? segment_at(s, at) : NULL;

        if (first && s->parent == w->segment && divergence_same_place(first, here)) {
            return i;
        }
    }
    return DIVERGENCE_NONE;
}

/* Moves W to where HERE, the record at AT, has its place, made if need be.  NULL where
 * the bounds leave none. */
static struct divergence_position *find_position(struct divergence *d, struct walk *w,
                                                 int64_t at,
                                                 const struct divergence_position *here)
{
    struct divergence_segment *s = &d->segments[w->segment];
    struct divergence_position *known = segment_at(s, at);
    int branch;

    if (known && divergence_same_place(known, here)) {
        return known;
    }
    if (w->alone) {
        append(s, here);
        return &s->positions[s->count - 1];
    }
    note_parting(d, at, known, here);
    branch = find_branch(d, w, at, here);
    if (branch == DIVERGENCE_NONE) {
        branch = add_segment(d, w->segment, at);
        if (branch == DIVERGENCE_NONE) {
            return NULL;
        }
        w->alone = true;
        append(&d->segments[branch], here);
    }
    w->segment = branch;
    return d->segments[branch].positions;
}

static void drop_behind(struct divergence *d, int64_t position)
{
    for (int i = 0; i < d->segment_count; i++) {
        struct divergence_segment *s = &d->segments[i];
        int64_t keep = position + 1 - s->from;

        if (s->count > keep) {
            s->count = keep > 0 ? keep : 0;
        }
    }
}

static bool add_value(struct divergence *d, struct divergence_value *head,
                      const struct divergence_value *value)
{
    if (d->value_count == DIVERGENCE_VALUES_MAX) {
        return false;
    }
    if (!d->values || d->value_count == d->value_capacity) {
        d->value_capacity = d->value_capacity ? 2 * d->value_capacity : 64;
        d->values = xrealloc(d->values, (size_t)d->value_capacity * sizeof *d->values);
    }
    d->values[d->value_count] = *value;
    d->values[d->value_count].next = head->next;
    head->next = d->value_count++;
    return true;
}

/* Adds what the run of W shows in HERE to what is KNOWN there.  Returns false where the
 * bounds leave no room. */
static bool compare(struct divergence *d, const struct walk *w, int64_t at,
                    struct divergence_position *known,
                    const struct divergence_position *here)
{
    const struct divergence_value *got = &here->value;
    bool parts = false;

    known->says_all = known->says_all && here->says_all;
    for (struct divergence_value *v = &known->value; v; v = divergence_next_value(d, v)) {
        if (digest_equal(v->in, got->in)) {
            if (digest_equal(v->out, got->out)) {
                v->runs++;
                return true;
            }
            parts = true;
        }
    }
    if (d->first == DIVERGENCE_NONE || at < d->first) {
        d->first = at;
        d->first_segment = w->segment;
    }
    if (parts && (d->root == DIVERGENCE_NONE || at < d->root)) {
        d->root = at;
        d->root_segment = w->segment;
        d->roots++;
        drop_behind(d, at);
    }
    return add_value(d, &known->value, got);
}

/* The next record of READS.  PLACES: the indices of its places in the names, plus one; 0:
 * not met yet. */
static struct divergence_position next_position(struct divergence *d,
                                                struct trace_reads *reads,
                                                int32_t *places, int32_t run)
{
    const struct trace_record *record = &reads->trace->records[reads->at];
    int32_t *place = &places[record->place];
    struct digest all = trace_reads_next(reads);

    if (*place == 0) {
        *place = trace_add_place(&d->names, reads->trace->places[record->place]) + 1;
    }
    return (struct divergence_position){ .step = record->step,
                                         .iteration = record->iteration,
                                         .place = *place - 1,
                                         .says_all = digest_equal(all, record->in),
                                         .value = { .in = all,
                                                    .out = record->out,
                                                    .runs = 1,
                                                    .first_run = run,
                                                    .next = DIVERGENCE_NONE } };
}

/* Whether TRACE was followed to its end, or to the root. */
static bool follow(struct divergence *d, const struct trace *trace, struct walk *w)
{
    int32_t *places = xcalloc((size_t)trace->place_count + 1, sizeof *places);
    struct trace_reads reads;
    bool followed = true;

    trace_reads_init(&reads, trace);
    for (int64_t at = 0;
         followed && at < trace->count && (d->root == DIVERGENCE_NONE || at <= d->root);
         at++) {
        struct divergence_position here = next_position(d, &reads, places, w->run);
        struct divergence_position *known =
            here.place == DIVERGENCE_NONE ? NULL : find_position(d, w, at, &here);

        followed = known && ((w->alone && known->value.first_run == w->run) ||
                             compare(d, w, at, known, &here));
    }
    trace_reads_release(&reads);
    free(places);
    return followed;
}

/* What is left to see at the end of a trace: whether others went on. */
static void end_walk(struct divergence *d, const struct trace *trace,
                     const struct walk *w)
{
    const struct divergence_segment *s = &d->segments[w->segment];
    const struct divergence_position *next = segment_at(s, trace->count);

    if (d->root != DIVERGENCE_NONE && trace->count > d->root) {
        d->apart += w->segment != 0;
        return;
    }
    if (!w->alone && next) {
        note_parting(d, trace->count, next, NULL);
    }
    d->apart += w->segment != 0 || trace->count != d->first_length;
}

void divergence_add(struct divergence *d, const struct trace *trace)
{
    struct walk w = { .run = (int32_t)d->traces };

    if (d->traces == 0) {
        add_segment(d, DIVERGENCE_NONE, 0);
        d->first_length = trace->count;
        w.alone = true;
    }
    if (follow(d, trace, &w)) {
        end_walk(d, trace, &w);
    } else {
        d->unplaced++;
    }
    d->traces++;
    d->truncated += trace->dropped > 0;
    d->records = trace->count > d->records ? trace->count : d->records;
}
