/* A workload for a terminal. */
#ifndef API_RENDER_WORKLOAD_TEXT_H
#define API_RENDER_WORKLOAD_TEXT_H

#include "daemon/base/buf.h"
#include "daemon/evidence/catalogue.h"

/* Appends what the catalogue says of WORKLOAD: variants, sizes, sources. */
void workload_text(const struct catalogue_workload *workload, struct buf *buf);

#endif
