/* What both backends of maxpool_bwd share, and oneDNN's pooling with them. */
#ifndef WORKLOADS_MAXPOOL_BWD_H
#define WORKLOADS_MAXPOOL_BWD_H

#include "workloads/shared/window.h"
#include "workloads/workload.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the operation must give, whoever computes it: a `reference` hook. */
void maxpool_bwd_reference(const struct run *run, const struct tensor *inputs,
                           const struct tensor *output, double *ret_expected,
                           double *ret_bound);

#ifdef __cplusplus
}
#endif

#endif
