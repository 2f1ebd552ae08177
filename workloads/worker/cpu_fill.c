#include "workloads/worker/cpu_fill.h"

#include "workloads/worker/fill_block.h"

/* Below this many elements handing out work costs more than it saves. */
enum { WORTH_A_TEAM = 1 << 14 };

void cpu_fill(struct run *run, struct tensor *tensor, const struct filling *filling)
{
    int64_t n = tensor_elements(tensor);
    int64_t blocks = fill_blocks(tensor, filling, n);
#pragma omp parallel for schedule(static) num_threads(run->threads) if (n >= WORTH_A_TEAM)
    for (int64_t block = 0; block < blocks; block++) {
        fill_block(tensor, filling, block, n);
    }
}
