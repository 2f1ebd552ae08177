/* The workloads of this worker, and its backend: what the linker gathered, checked and
 * sorted by name.
 *
 * A workload that breaks the contract of workloads/workload.h is a defect of the build,
 * found when the worker starts, before it does anything.
 *
 * A workload of backend "cuda" takes what it leaves empty from the "cpu" workload of its
 * name (workload.h says what).  Its version and its set of variants are its own. */
#ifndef WORKLOADS_WORKER_REGISTRY_H
#define WORKLOADS_WORKER_REGISTRY_H

#include <stdio.h>

#include "workloads/worker/backend.h"
#include "workloads/workload.h"

enum {
    WORKLOAD_NAME_MAX = 64,   /* characters of a name */
    WORKLOAD_CHOICES_MAX = 64 /* variants, and sizes */
};

struct registry {
    const struct workload **workloads; /* sorted by name, then backend */
    int count;
    struct workload *completed; /* copies of those that left something empty, filled in */
    int completed_count;
};

/* Takes the workloads of [begin, end), which may contain NULL (padding).  Writes one line
 * a defect to DEFECTS and returns how many there were; the registry is usable when 0. */
int registry_init(struct registry *registry, const struct workload *const *begin,
                  const struct workload *const *end, FILE *defects);

/* As registry_init, with what WORKLOAD_REGISTER put into this program. */
int registry_init_linked(struct registry *registry, FILE *defects);

void registry_release(struct registry *registry);

/* The workload NAME of BACKEND, or NULL. */
const struct workload *registry_find(const struct registry *registry, const char *name,
                                     const char *backend);

/* The registered name most like NAME; NULL in an empty registry. */
const char *registry_nearest(const struct registry *registry, const char *name);

/* The backend of this worker.  NULL, after one line to DEFECTS, unless there is exactly
 * one. */
const struct backend *backend_linked(FILE *defects);

#endif
