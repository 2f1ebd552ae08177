#include "cuda/worker/fill.h"

#include "cuda/kernels/kernel.h"
#include "workloads/worker/fill_block.h"

__global__ static void fill_kernel(struct tensor tensor, struct filling filling,
                                   int64_t blocks, int64_t elements)
{
    KERNEL_FOR(block, blocks)
    {
        fill_block(&tensor, &filling, block, elements);
    }
}

void fill_tensor(struct run *run, struct tensor *tensor, const struct filling *filling)
{
    int64_t elements = tensor_elements(tensor);

    int64_t blocks = fill_blocks(tensor, filling, elements);

    (void)run;
    LAUNCH_ITEMS(fill_kernel, blocks, *tensor, *filling, blocks, elements);
}

/* MEMORY is aligned for words; the last one may be cut off. */
__global__ static void poison_kernel(unsigned char *memory, int64_t bytes,
                                     uint32_t pattern)
{
    KERNEL_FOR(word, ceil_div(bytes, 4))
    {
        if (4 * word + 4 <= bytes) {
            ((uint32_t *)memory)[word] = pattern;
            continue;
        }
        for (int64_t i = 4 * word; i < bytes; i++) {
            memory[i] = (unsigned char)(pattern >> (8 * (i % 4)));
        }
    }
}

void fill_poison(struct run *run, void *memory, size_t bytes, uint32_t pattern)
{
    (void)run;
    LAUNCH_ITEMS(poison_kernel, ceil_div((int64_t)bytes, 4), (unsigned char *)memory,
                 (int64_t)bytes, pattern);
}
