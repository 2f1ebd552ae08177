/* Digests of tensors by several threads: the same values as by one. */
#include "workloads/instruments/digest.h"

enum {
    /* Below this many blocks a thread (1 MiB) handing out work costs more than it saves;
     * and half of that where threads take pieces themselves. */
    BLOCKS_WORTH_A_THREAD = 128,
    PIECE_BLOCKS = 16,
    BATCH = 64 /* tensors whose sums are in work at once */
};

static struct digest_partial blocks_parallel(const void *data, uint64_t bytes,
                                             int threads)
{
    uint64_t blocks = bytes / DIGEST_BLOCK_BYTES + (bytes % DIGEST_BLOCK_BYTES != 0);
    uint64_t a, b;
    uint64_t chunk;

    if (threads <= 1 || blocks < 2 * BLOCKS_WORTH_A_THREAD) {
        return digest_blocks(data, bytes, 0, blocks);
    }
    a = 0;
    b = 0;
    chunk = (blocks + (uint64_t)threads - 1) / (uint64_t)threads;
#pragma omp parallel for schedule(static, 1) num_threads(threads) reduction(+ : a, b)
    for (int i = 0; i < threads; i++) {
        struct digest_partial part =
            digest_blocks(data, bytes, (uint64_t)i * chunk, chunk);

        a += part.a;
        b += part.b;
    }
    return (struct digest_partial){ a, b };
}

struct digest digest_tensor(const void *data, int dtype, size_t dtype_bytes, int rank,
                            const int64_t *shape, int threads)
{
    uint64_t bytes = dtype_bytes;

    for (int i = 0; i < rank; i++) {
        bytes *= (uint64_t)shape[i];
    }
    return digest_finish(blocks_parallel(data, bytes, threads), bytes, dtype, rank,
                         shape);
}

static uint64_t source_bytes(const struct digest_source *source)
{
    uint64_t bytes = source->dtype_bytes;

    for (int i = 0; i < source->rank; i++) {
        bytes *= (uint64_t)source->shape[i];
    }
    return bytes;
}

static uint64_t pieces(uint64_t bytes)
{
    uint64_t piece = (uint64_t)PIECE_BLOCKS * DIGEST_BLOCK_BYTES;

    return bytes / piece + (bytes % piece != 0);
}

/* Tensors of a batch, cut into pieces that threads take as they come: sums of blocks are
 * the same in any order. */
struct batch {
    const struct digest_source *sources;
    int count;
    uint64_t end[BATCH]; /* of each tensor's pieces */
    uint64_t a[BATCH], b[BATCH];
    uint64_t next;
};

/* For each thread. */
static void pieces_take(struct batch *batch)
{
    for (int i = 0;;) {
        uint64_t piece = __atomic_fetch_add(&batch->next, 1, __ATOMIC_RELAXED);
        uint64_t first;
        struct digest_partial part;

        while (i < batch->count && piece >= batch->end[i]) {
            i++;
        }
        if (i == batch->count) {
            return;
        }
        first = (piece - (i ? batch->end[i - 1] : 0)) * PIECE_BLOCKS;
        part = digest_blocks(batch->sources[i].data, source_bytes(&batch->sources[i]),
                             first, PIECE_BLOCKS);
        __atomic_fetch_add(&batch->a[i], part.a, __ATOMIC_RELAXED);
        __atomic_fetch_add(&batch->b[i], part.b, __ATOMIC_RELAXED);
    }
}

static void batch_digest(const struct digest_source *sources, int count, int threads,
                         struct digest *ret_digests)
{
    struct batch batch = { .sources = sources, .count = count };
    uint64_t total = 0, bytes = 0;
    uint64_t blocks_a_thread;

    for (int i = 0; i < count; i++) {
        bytes += source_bytes(&sources[i]);
        batch.end[i] = total += pieces(source_bytes(&sources[i]));
    }
    blocks_a_thread = bytes / DIGEST_BLOCK_BYTES / (uint64_t)threads;
#pragma omp parallel num_threads(threads) if (blocks_a_thread >=                         \
                                              BLOCKS_WORTH_A_THREAD / 2)
    pieces_take(&batch);
    for (int i = 0; i < count; i++) {
        struct digest_partial sum = { batch.a[i], batch.b[i] };

        ret_digests[i] = digest_finish(sum, source_bytes(&sources[i]), sources[i].dtype,
                                       sources[i].rank, sources[i].shape);
    }
}

void digest_tensors(const struct digest_source *sources, int count, int threads,
                    struct digest *ret_digests)
{
    for (int first = 0; first < count; first += BATCH) {
        batch_digest(sources + first, count - first < BATCH ? count - first : BATCH,
                     threads, ret_digests + first);
    }
}
