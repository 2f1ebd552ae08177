#include "daemon/trace/divergence.h"

#include <stdlib.h>

#include "daemon/base/mem.h"
#include "daemon/trace/trace_reads.h"

enum { NONE = -1 };

/* What some of the runs showed at a record. */
struct value {
    struct digest in, out; /* all that it reads (trace_reads.h), and what it wrote */
    int32_t runs, first_run;
    int32_t next; /* index in `values`, or NONE */
};

struct position {
    int64_t step;
    int32_t iteration;
    int32_t place; /* index in `names`; NONE: there is no room for it */
    bool says_all; /* in every run */
    struct value value;
};

/* A stretch of records that runs have in common.  Where structures diverge, segments
 * branch: together they are a tree, and each run a path from its root. */
struct segment {
    int parent;   /* NONE for the first */
    int64_t from; /* position of its first record */
    struct position *positions;
    int64_t count;
};

struct divergence {
    struct segment segments[DIVERGENCE_STRUCTURES_MAX];
    int segment_count;
    struct value *values;
    int32_t value_count;
    struct trace names; /* only places: those that were met */
    int64_t traces, records, truncated, unplaced, roots, apart;
    int64_t first_length; /* records of the first trace */
    int root_segment, first_segment;
    int64_t root, first; /* positions, or NONE */
    int64_t branching;   /* position where structures diverge first, or NONE */
    struct position branches[2];
};

/* The value behind V at its record; NULL: V is the last. */
static struct value *next_value(const struct divergence *d, const struct value *v)
{
    return v->next == NONE ? NULL : &d->values[v->next];
}

/* Whether they are the same place at the same step, whatever was read and written. */
static bool same_place(const struct position *a, const struct position *b)
{
    return a->place == b->place && a->step == b->step && a->iteration == b->iteration;
}

struct divergence *divergence_new(void)
{
    struct divergence *d = xcalloc(1, sizeof *d);

    trace_init(&d->names);
    d->root = d->first = d->branching = NONE;
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
    for (int i = 1; i < d->segment_count && d->root != NONE; i++) {
        if (d->segments[i].from > d->root) {
            return i;
        }
    }
    return NONE;
}

static int add_segment(struct divergence *d, int parent, int64_t from)
{
    int index = find_free_segment(d);

    if (index != NONE) {
        struct segment *s = &d->segments[index];

        s->parent = parent;
        s->from = from;
        s->count = 0;
    }
    return index;
}

/* NULL where it has no record at that position, which is not before its first. */
static struct position *segment_at(const struct segment *s, int64_t at)
{
    int64_t i = at - s->from;

    return s->positions && i < s->count ? &s->positions[i] : NULL;
}

static void append(struct segment *s, const struct position *position)
{
    s->positions = xgrow(s->positions, s->count, sizeof *s->positions);
    s->positions[s->count++] = *position;
}

static void note_branching(struct divergence *d, int64_t at, const struct position *known,
                           const struct position *here)
{
    static const struct position end = { .place = NONE };

    if (d->branching == NONE || at < d->branching) {
        d->branching = at;
        d->branches[0] = known ? *known : end;
        d->branches[1] = here ? *here : end;
    }
}

/* Where a run is on its way through the tree. */
struct walk {
    int segment;
    int32_t run;
    bool alone; /* on a stretch that no run went before: it is being recorded */
};

/* The branch of W's segment at AT that goes on with HERE, or NONE. */
static int find_branch(const struct divergence *d, const struct walk *w, int64_t at,
                       const struct position *here)
{
    for (int i = 0; i < d->segment_count; i++) {
        const struct segment *s = &d->segments[i];
        const struct position *first = s->from == at ? segment_at(s, at) : NULL;

        if (first && s->parent == w->segment && same_place(first, here)) {
            return i;
        }
    }
    return NONE;
}

/* Moves W to where HERE, the record at AT, has its place, made if need be.  NULL where
 * the bounds leave none. */
static struct position *find_position(struct divergence *d, struct walk *w, int64_t at,
                                      const struct position *here)
{
    struct segment *s = &d->segments[w->segment];
    struct position *known = segment_at(s, at);
    int branch;

    if (known && same_place(known, here)) {
        return known;
    }
    if (w->alone) {
        append(s, here);
        return &s->positions[s->count - 1];
    }
    note_branching(d, at, known, here);
    branch = find_branch(d, w, at, here);
    if (branch == NONE) {
        branch = add_segment(d, w->segment, at);
        if (branch == NONE) {
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
        struct segment *s = &d->segments[i];
        int64_t keep = position + 1 - s->from;

        if (s->count > keep) {
            s->count = keep > 0 ? keep : 0;
        }
    }
}

static bool add_value(struct divergence *d, struct value *head, const struct value *value)
{
    if (d->value_count == DIVERGENCE_VALUES_MAX) {
        return false;
    }
    d->values = xgrow(d->values, d->value_count, sizeof *d->values);
    d->values[d->value_count] = *value;
    d->values[d->value_count].next = head->next;
    head->next = d->value_count++;
    return true;
}

/* Adds what the run of W shows in HERE to what is KNOWN there.  Returns false where the
 * bounds leave no room. */
static bool compare(struct divergence *d, const struct walk *w, int64_t at,
                    struct position *known, const struct position *here)
{
    const struct value *got = &here->value;
    bool diverges = false;

    known->says_all = known->says_all && here->says_all;
    for (struct value *v = &known->value; v; v = next_value(d, v)) {
        if (digest_equal(v->in, got->in)) {
            if (digest_equal(v->out, got->out)) {
                v->runs++;
                return true;
            }
            diverges = true;
        }
    }
    if (d->first == NONE || at < d->first) {
        d->first = at;
        d->first_segment = w->segment;
    }
    if (diverges && (d->root == NONE || at < d->root)) {
        d->root = at;
        d->root_segment = w->segment;
        d->roots++;
        drop_behind(d, at);
    }
    return add_value(d, &known->value, got);
}

/* The next record of READS.  PLACES: the indices of its places in the names, plus one; 0:
 * not met yet. */
static struct position next_position(struct divergence *d, struct trace_reads *reads,
                                     int32_t *places, int32_t run)
{
    const struct trace_record *record = &reads->trace->records[reads->at];
    int32_t *place = &places[record->place];
    struct digest all = trace_reads_next(reads);

    if (*place == 0) {
        *place = trace_add_place(&d->names, reads->trace->places[record->place]) + 1;
    }
    return (struct position){ .step = record->step,
                              .iteration = record->iteration,
                              .place = *place - 1,
                              .says_all = digest_equal(all, record->in),
                              .value = { .in = all,
                                         .out = record->out,
                                         .runs = 1,
                                         .first_run = run,
                                         .next = NONE } };
}

/* Whether TRACE was followed to its end, or to the root. */
static bool follow(struct divergence *d, const struct trace *trace, struct walk *w)
{
    int32_t *places = xcalloc((size_t)trace->place_count + 1, sizeof *places);
    struct trace_reads reads;
    bool followed = true;

    trace_reads_init(&reads, trace);
    for (int64_t at = 0;
         followed && at < trace->count && (d->root == NONE || at <= d->root); at++) {
        struct position here = next_position(d, &reads, places, w->run);
        struct position *known =
            here.place == NONE ? NULL : find_position(d, w, at, &here);

        followed = known && (w->alone || compare(d, w, at, known, &here));
    }
    trace_reads_release(&reads);
    free(places);
    return followed;
}

/* What is left to see at the end of a trace: whether others went on. */
static void end_walk(struct divergence *d, const struct trace *trace,
                     const struct walk *w)
{
    const struct segment *s = &d->segments[w->segment];
    const struct position *next = segment_at(s, trace->count);

    if (d->root != NONE && trace->count > d->root) {
        d->apart += w->segment != 0;
        return;
    }
    if (!w->alone && next) {
        note_branching(d, trace->count, next, NULL);
    }
    d->apart += w->segment != 0 || trace->count != d->first_length;
}

void divergence_add(struct divergence *d, const struct trace *trace)
{
    struct walk w = { .run = (int32_t)d->traces };

    if (d->traces == 0) {
        add_segment(d, NONE, 0);
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

static const struct position *position_at(const struct divergence *d, int segment,
                                          int64_t at)
{
    while (at < d->segments[segment].from) {
        segment = d->segments[segment].parent;
    }
    return &d->segments[segment].positions[at - d->segments[segment].from];
}

static struct divergence_place describe(const struct divergence *d,
                                        const struct position *p, int64_t at)
{
    return (struct divergence_place){ .position = at,
                                      .iteration = p->iteration,
                                      .step = p->step,
                                      .says_all = p->says_all,
                                      .place = p->place == NONE
                                                   ? ""
                                                   : d->names.places[p->place] };
}

static struct divergence_place describe_at(const struct divergence *d, int segment,
                                           int64_t at)
{
    const struct position *p;
    struct divergence_place place = { .position = NONE, .place = "" };

    if (at == NONE) {
        return place;
    }
    p = position_at(d, segment, at);
    place = describe(d, p, at);
    for (int64_t i = 0; i < at; i++) {
        place.occurrence += same_place(position_at(d, segment, i), p);
    }
    return place;
}

/* The runs of all values that read what V read, and the most frequent of them. */
static int64_t sum_alike(const struct divergence *d, const struct value *head,
                         const struct value *v, const struct value **ret_most)
{
    int64_t runs = 0;

    *ret_most = v;
    for (const struct value *other = head; other; other = next_value(d, other)) {
        if (digest_equal(other->in, v->in)) {
            runs += other->runs;
            if (other->runs > (*ret_most)->runs ||
                (other->runs == (*ret_most)->runs &&
                 other->first_run < (*ret_most)->first_run)) {
                *ret_most = other;
            }
        }
    }
    return runs;
}

static void count_pairs(const struct divergence *d, struct divergence_result *result)
{
    const struct value *head = &position_at(d, d->root_segment, d->root)->value;

    for (const struct value *v = head; v; v = next_value(d, v)) {
        const struct value *most;
        int64_t alike = sum_alike(d, head, v, &most);

        result->pairs += v->runs * (alike - 1);
        result->pairs_diverged += v->runs * (alike - v->runs);
        if (most != v) {
            result->runs_diverged += v->runs;
            result->example[0] = most->first_run;
            result->example[1] = v->first_run;
        }
    }
    result->pairs /= 2;
    result->pairs_diverged /= 2;
}

void divergence_result(const struct divergence *d, struct divergence_result *ret_result)
{
    *ret_result = (struct divergence_result){
        .traces = d->traces,
        .records = d->records,
        .truncated = d->truncated,
        .unplaced = d->unplaced,
        .roots = d->roots,
        .runs_apart = d->apart,
        .example = { NONE, NONE },
        .root = describe_at(d, d->root_segment, d->root),
        .first = describe_at(d, d->first_segment, d->first),
    };
    for (int i = 0; i < 2; i++) {
        ret_result->structure[i] =
            d->branching == NONE
                ? (struct divergence_place){ .position = NONE, .place = "" }
                : describe(d, &d->branches[i], d->branching);
    }
    if (d->root != NONE) {
        count_pairs(d, ret_result);
    }
}
