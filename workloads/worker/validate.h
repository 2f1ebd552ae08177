/* Whether a workload keeps the contract of workloads/workload.h. */
#ifndef WORKLOADS_WORKER_VALIDATE_H
#define WORKLOADS_WORKER_VALIDATE_H

#include <stdio.h>

#include "workloads/workload.h"

enum {
    WORKLOAD_NAME_MAX = 64,   /* characters of a name */
    WORKLOAD_CHOICES_MAX = 64 /* variants, and sizes */
};

/* Writes one line for each defect of WORKLOAD to DEFECTS; returns how many. */
int workload_validate(const struct workload *workload, FILE *defects);

#endif
