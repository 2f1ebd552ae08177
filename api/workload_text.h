/* A workload for a terminal. */
#ifndef API_WORKLOAD_TEXT_H
#define API_WORKLOAD_TEXT_H

#include "daemon/base/buf.h"
#include "workloads/evidence/catalogue.h"

/* Appends what the catalogue says of WORKLOAD: variants, sizes, sources. */
void workload_text(const struct catalogue_workload *workload, struct buf *buf);

#endif
