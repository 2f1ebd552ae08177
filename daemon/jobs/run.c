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
