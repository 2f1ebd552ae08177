#include "workloads/worker/cpu_fill.h"

#include "workloads/worker/fill_element.h"

/* Below this many elements handing out work costs more than it saves. */
enum { WORTH_A_TEAM = 1 << 14 };

void cpu_fill(struct run *run, struct tensor *tensor, const struct filling *filling)
{
    int64_t n = tensor_elements(tensor);
#pragma omp parallel for schedule(static) num_threads(run->threads) if (n >= WORTH_A_TEAM)
    for (int64_t i = 0; i < n; i++) {
        fill_element(tensor, filling, i);
    }
}
