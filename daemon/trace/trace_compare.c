#include "daemon/trace/trace_compare.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/trace/trace_reads.h"

const char *trace_kind_name(enum trace_kind kind)
{
    static const char *const names[] = { [TRACE_SAME] = "equal",
                                         [TRACE_ABSORBED] = "absorbed",
                                         [TRACE_INFECTED] = "infected",
                                         [TRACE_ROOT] = "root" };

    return names[kind];
}

/* For each place of B, the index of its name in A, or -1. */
static int32_t *map_places(const struct trace *a, const struct trace *b)
{
    int32_t *map = xcalloc((size_t)b->place_count + 1, sizeof *map);

    for (int i = 0; i < b->place_count; i++) {
        map[i] = trace_find_place(a, b->places[i]);
    }
    return map;
}

static enum trace_kind kind_of(const struct trace_record *x, const struct trace_record *y,
                               bool reads_same)
{
    if (digest_equal(x->out, y->out)) {
        return digest_equal(x->in, y->in) ? TRACE_SAME : TRACE_ABSORBED;
    }
    return reads_same ? TRACE_ROOT : TRACE_INFECTED;
}

static void count(struct trace_comparison *c, int32_t place, enum trace_kind kind)
{
    struct trace_place_comparison *p = &c->places[place];

    c->same += kind == TRACE_SAME;
    c->absorbed += kind == TRACE_ABSORBED;
    c->infected += kind == TRACE_INFECTED;
    c->roots += kind == TRACE_ROOT;
    p->absorbed += kind == TRACE_ABSORBED;
    p->infected += kind == TRACE_INFECTED;
    p->roots += kind == TRACE_ROOT;
    p->compared++;
    if (kind != TRACE_SAME) {
        p->first = p->first < 0 ? c->compared : p->first;
        c->first = c->first < 0 ? c->compared : c->first;
    }
    if (kind == TRACE_ROOT) {
        p->first_root = p->first_root < 0 ? c->compared : p->first_root;
        c->root = c->root < 0 ? c->compared : c->root;
    }
    c->kinds[c->compared++] = (unsigned char)kind;
}

static bool same_step(const struct trace_record *x, const struct trace_record *y)
{
    return x->iteration == y->iteration && x->step == y->step;
}

void trace_compare(const struct trace *a, const struct trace *b,
                   struct trace_comparison *ret_comparison)
{
    struct trace_comparison c = { .first = -1, .root = -1 };
    int64_t both = a->count < b->count ? a->count : b->count;
    int32_t *map = map_places(a, b);
    struct trace_reads reads_a, reads_b;

    trace_reads_init(&reads_a, a);
    trace_reads_init(&reads_b, b);
    c.kinds = xcalloc((size_t)both + 1, sizeof *c.kinds);
    c.places = xcalloc((size_t)a->place_count + 1, sizeof *c.places);
    for (int i = 0; i < a->place_count; i++) {
        c.places[i].first = c.places[i].first_root = -1;
    }
    for (int64_t i = 0; i < both; i++) {
        const struct trace_record *x = &a->records[i];
        const struct trace_record *y = &b->records[i];

        if (!same_step(x, y) || x->place != map[y->place]) {
            c.parting = TRACE_PARTS_IN_RECORDS;
            break;
        }
        c.steps += i == 0 || !same_step(x, x - 1);
        count(&c, x->place,
              kind_of(
                  x, y,
                  digest_equal(trace_reads_next(&reads_a), trace_reads_next(&reads_b))));
    }
    if (c.parting == TRACE_PARTS_NOWHERE && a->count != b->count) {
        c.parting = TRACE_PARTS_IN_LENGTH;
    }
    trace_reads_release(&reads_a);
    trace_reads_release(&reads_b);
    free(map);
    *ret_comparison = c;
}

void trace_comparison_release(struct trace_comparison *comparison)
{
    free(comparison->kinds);
    free(comparison->places);
    memset(comparison, 0, sizeof *comparison);
}

static int compare_digests(const void *a, const void *b)
{
    const struct digest *x = a;
    const struct digest *y = b;

    return x->hi != y->hi ? (x->hi > y->hi) - (x->hi < y->hi)
                          : (x->lo > y->lo) - (x->lo < y->lo);
}

/* Whether X and Y, COUNT each, are the same but for their order.  Sorts both. */
static bool same_set(struct digest *x, struct digest *y, int64_t n)
{
    qsort(x, (size_t)n, sizeof *x, compare_digests);
    qsort(y, (size_t)n, sizeof *y, compare_digests);
    for (int64_t i = 0; i < n; i++) {
        if (!digest_equal(x[i], y[i])) {
            return false;
        }
    }
    return true;
}

struct trace_aspect trace_compare_role(const struct trace *a, const struct trace *b,
                                       const struct trace_comparison *comparison,
                                       enum trace_role role)
{
    struct trace_aspect aspect = { .first = -1 };
    bool *wanted = xcalloc((size_t)a->place_count + 1, sizeof *wanted);
    struct digest *x = xcalloc((size_t)comparison->compared + 1, sizeof *x);
    struct digest *y = xcalloc((size_t)comparison->compared + 1, sizeof *y);

    for (int i = 0; i < a->place_count; i++) {
        wanted[i] = trace_place_role(a->places[i]) == role;
    }
    for (int64_t i = 0; i < comparison->compared; i++) {
        int32_t place = a->records[i].place;

        if (!wanted[place]) {
            continue;
        }
        wanted[place] = role != TRACE_ROLE_VARIABLE;
        x[aspect.compared] = a->records[i].out;
        y[aspect.compared++] = b->records[i].out;
        if (!digest_equal(a->records[i].out, b->records[i].out)) {
            aspect.first = aspect.different++ ? aspect.first : i;
        }
    }
    aspect.reordered = aspect.different > 0 && same_set(x, y, aspect.compared);
    free(wanted);
    free(x);
    free(y);
    return aspect;
}
