#include "daemon/jobs/case.h"

#include <string.h>

bool case_siblings(const struct case_key *a, const struct case_key *b)
{
    return strcmp(a->workload, b->workload) == 0 && a->version == b->version &&
           strcmp(a->size, b->size) == 0 && strcmp(a->dtype, b->dtype) == 0 &&
           a->seed == b->seed;
}
