#include "workloads/ranks/collective.h"

#include <string.h>

static const float *part_before(const struct rank *rank, const float *parts,
                                int64_t stride)
{
    return parts + (rank->number + rank->count - 1) % rank->count * stride;
}

/* OWN takes the values of CHUNK, one of RANKS, from BEFORE: adds its own, or not. */
static void chunk_take(float *own, const float *before, const struct span *span,
                       int chunk, int ranks, bool add)
{
    int64_t begin = span->first + (chunk * span->count + ranks - 1) / ranks;
    int64_t end = span->first + ((chunk + 1) * span->count + ranks - 1) / ranks;

    for (int64_t i = begin; i < end; i++) {
        own[i] = add ? before[i] + own[i] : before[i];
    }
}

/* Nobody overwrites what is yet to be read: before a rank gets the sum of a chunk, what
 * the next rank took of that chunk has gone all the way round. */
void ring_reduce(const struct rank *rank, float *parts, int64_t stride,
                 const struct span *spans, int64_t span_count)
{
    int ranks = rank->count, last = 2 * (ranks - 1) - 1;
    float *own = parts + rank->number * stride;
    const float *before = part_before(rank, parts, stride);

    rank_pass(rank);
    for (int step = 0; step <= last; step++) {
        int chunk = (rank->number + 2 * ranks - 2 - step) % ranks;

        rank_await(rank);
        for (int64_t i = 0; i < span_count; i++) {
            chunk_take(own, before, &spans[i], chunk, ranks, step < ranks - 1);
        }
        if (step < last) {
            rank_pass(rank);
        }
    }
}

void root_reduce(const struct rank *rank, float *parts, int64_t stride, int64_t count)
{
    float *own = parts + rank->number * stride;

    /* From rank 1 round to rank 0: the values of all are there. */
    if (rank->number != 1) {
        rank_await(rank);
    }
    if (rank->number != 0) {
        rank_pass(rank);
        rank_await(rank);
        memcpy(own, part_before(rank, parts, stride), (size_t)count * sizeof(float));
    }
    for (int other = 1; other < rank->count && rank->number == 0; other++) {
        for (int64_t i = 0; i < count; i++) {
            own[i] += parts[other * stride + i];
        }
    }
    if (rank->number != rank->count - 1) {
        rank_pass(rank);
    }
}
