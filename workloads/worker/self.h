/* This very program once more, whatever has been installed in its place
 * meanwhile, for what
 * one process cannot do. */
#ifndef WORKLOADS_WORKER_SELF_H
#define WORKLOADS_WORKER_SELF_H

#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Starts one with the command line WORDS, ended by NULL.  FDS[I] becomes its descriptor
 * I, in order of I; -1: as it is here.  One of FDS that is itself below COUNT stands at
 * its own index or before it.  Returns 0 or an error of errno. */
int self_spawn(const char *const *words, const int *fds, int count, pid_t *ret_pid);

/* Begins this very program anew with the same command line, in this process and with the
 * variables that it has set: for what is read once.  Descriptors that are to be closed
 * then are.  Returns only where that fails. */
void self_again(void);

/* To be called first in such a process.  From then on it dies with the process that
 * started it, and has NAME, at most 15 characters, in lists of processes.  A run that
 * ends early ends it with STATUS_UNCHECKED, after one line with the cause to standard
 * output. */
void self_begin(const char *name);

#ifdef __cplusplus
}
#endif

#endif
