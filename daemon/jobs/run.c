#include "daemon/jobs/run.h"

#include <stdlib.h>

bool run_is_contended(const struct run_record *run)
{
    struct run_circumstances circumstances;

    run_circumstances_read(run->circumstances, &circumstances);
    return circumstances.contention > 0;
}

void captured_tensor_release(struct captured_tensor *tensor)
{
    free(tensor->shape);
    free(tensor->data);
    tensor->shape = NULL;
    tensor->data = NULL;
}

/* Ten times what the memory of any device gives; a run takes a second at least, so that
 * no clock decides. */
bool run_hashed_too_fast(int64_t bytes, double wall_ms)
{
    static const double bytes_a_ms = 1e11;

    return (double)bytes > (wall_ms > 1000 ? wall_ms : 1000) * bytes_a_ms;
}
