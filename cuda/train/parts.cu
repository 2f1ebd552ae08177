#include "cuda/train/parts.h"

#include "cuda/kernels/kernel.h"
#include "cuda/kernels/tree.h"

enum { ELEMENTS = 32, MEMBERS = 8 /* threads of a tree */ };

/* Where registers hold a whole tree. */
template <int COUNT>
__global__ static void thread_kernel(const float *parts, int64_t stride, int64_t elements,
                                     float *gradient)
{
    KERNEL_FOR(i, elements)
    {
        gradient[i] = tree_sum_in_thread<COUNT>(parts + i, stride);
    }
}

/* threadIdx.x is the element: neighbours read neighbours. */
__global__ static void block_kernel(float *parts, int64_t count, int64_t stride,
                                    int64_t elements, float *gradient)
{
    int64_t i = (int64_t)blockIdx.x * ELEMENTS + threadIdx.x;

    tree_sum_in_block(parts + i, count, stride, i < elements ? threadIdx.y : count,
                      MEMBERS);
    if (i < elements && threadIdx.y == 0) {
        gradient[i] = parts[i];
    }
}

void parts_join(float *parts, int64_t count, int64_t stride, int64_t elements,
                float *gradient)
{
    switch (count) {
    case 32:
        LAUNCH_ITEMS(thread_kernel<32>, elements, parts, stride, elements, gradient);
        return;
    case 64:
        LAUNCH_ITEMS(thread_kernel<64>, elements, parts, stride, elements, gradient);
        return;
    case 128:
        LAUNCH_ITEMS(thread_kernel<128>, elements, parts, stride, elements, gradient);
        return;
    default:
        LAUNCH(block_kernel, (unsigned)ceil_div(elements, ELEMENTS),
               dim3(ELEMENTS, MEMBERS), 0, 0, parts, count, stride, elements, gradient);
    }
}
