#include "daemon/jobs/run.h"

#include <stdlib.h>
#include <string.h>

bool run_is_contended(const struct run_record *run)
{
    return strstr(run->circumstances, "\"contention\":") != NULL;
}

void captured_tensor_release(struct captured_tensor *tensor)
{
    free(tensor->shape);
    free(tensor->data);
    tensor->shape = NULL;
    tensor->data = NULL;
}
