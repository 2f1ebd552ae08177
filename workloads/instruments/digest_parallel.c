#include "workloads/instruments/digest.h"

/* Below this many blocks a thread (1 MiB) handing out work costs more than it saves. */
enum { BLOCKS_WORTH_A_THREAD = 128 };

static struct digest_partial blocks_parallel(const void *data, uint64_t bytes,
                                             int threads)
{
    uint64_t blocks = bytes / DIGEST_BLOCK_BYTES + (bytes % DIGEST_BLOCK_BYTES != 0);
    if (threads <= 1 || blocks < 2 * BLOCKS_WORTH_A_THREAD)
        return digest_blocks(data, bytes, 0, blocks);
    uint64_t a = 0, b = 0;
    uint64_t chunk = (blocks + (uint64_t)threads - 1) / (uint64_t)threads;
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
    for (int i = 0; i < rank; i++)
        bytes *= (uint64_t)shape[i];
    return digest_finish(blocks_parallel(data, bytes, threads), bytes, dtype, rank,
                         shape);
}
