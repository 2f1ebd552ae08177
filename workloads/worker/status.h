/* Exit statuses of the worker. */
#ifndef WORKLOADS_WORKER_STATUS_H
#define WORKLOADS_WORKER_STATUS_H

enum status {
    STATUS_OK = 0,        /* an `end` event was written, or the check passed */
    STATUS_MISMATCH = 1,  /* --check: an output is out of its bound */
    STATUS_USAGE = 2,     /* wrong arguments */
    STATUS_DEFECT = 3,    /* this build has a defective workload or backend */
    STATUS_OUTPUT = 4,    /* what was to be written could not be written */
    STATUS_UNCHECKED = 5, /* --check, --resume: the case cannot be computed here */
};

#endif
