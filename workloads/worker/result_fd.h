/* The descriptor of the run protocol (workloads/PROTOCOL.md). */
#ifndef WORKLOADS_WORKER_RESULT_FD_H
#define WORKLOADS_WORKER_RESULT_FD_H

#include <stdio.h>

/* The number in REPROD_RESULT_FD, or 3, closed on exec from here on (but for 0 to 2).
 * -1, after one line to LOG, when it is no number or not open for writing.  Must be
 * called before anything opens a file, which could be given the same number. */
int result_fd(FILE *log);

#endif
