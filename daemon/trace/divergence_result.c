#include "daemon/trace/divergence_tree.h"

static const struct divergence_position *position_at(const struct divergence *d,
                                                     int segment, int64_t at)
{
    while (at < d->segments[segment].from) {
        segment = d->segments[segment].parent;
    }
    return &d->segments[segment].positions[at - d->segments[segment].from];
}

static struct divergence_place describe(const struct divergence *d,
                                        const struct divergence_position *p, int64_t at)
{
    return (struct divergence_place){ .position = at,
                                      .iteration = p->iteration,
                                      .step = p->step,
                                      .says_all = p->says_all,
                                      .place = p->place == DIVERGENCE_NONE
                                                   ? ""
                                                   : d->names.places[p->place] };
}

static struct divergence_place describe_at(const struct divergence *d, int segment,
                                           int64_t at)
{
    const struct divergence_position *p;
    struct divergence_place place = { .position = DIVERGENCE_NONE, .place = "" };

    if (at == DIVERGENCE_NONE) {
        return place;
    }
    p = position_at(d, segment, at);
    place = describe(d, p, at);
    for (int64_t i = 0; i < at; i++) {
        place.occurrence += divergence_same_place(position_at(d, segment, i), p);
    }
    return place;
}

/* The runs of all values that read what V read, and the most frequent of them. */
static int64_t sum_alike(const struct divergence *d, const struct divergence_value *head,
                         const struct divergence_value *v,
                         const struct divergence_value **ret_most)
{
    int64_t runs = 0;

    *ret_most = v;
    for (const struct divergence_value *other = head; other;
         other = divergence_next_value(d, other)) {
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
    const struct divergence_value *head =
        &position_at(d, d->root_segment, d->root)->value;

    for (const struct divergence_value *v = head; v; v = divergence_next_value(d, v)) {
        const struct divergence_value *most;
        int64_t alike = sum_alike(d, head, v, &most);

        result->pairs += v->runs * (alike - 1);
        result->pairs_parted += v->runs * (alike - v->runs);
        if (most != v) {
            result->runs_parted += v->runs;
            result->example[0] = most->first_run;
            result->example[1] = v->first_run;
        }
    }
    result->pairs /= 2;
    result->pairs_parted /= 2;
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
        .example = { DIVERGENCE_NONE, DIVERGENCE_NONE },
        .root = describe_at(d, d->root_segment, d->root),
        .first = describe_at(d, d->first_segment, d->first),
    };
    for (int i = 0; i < 2; i++) {
        ret_result->structure[i] =
            d->parting == DIVERGENCE_NONE
                ? (struct divergence_place){ .position = DIVERGENCE_NONE, .place = "" }
                : describe(d, &d->parted[i], d->parting);
    }
    if (d->root != DIVERGENCE_NONE) {
        count_pairs(d, ret_result);
    }
}
