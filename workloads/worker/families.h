/* Libraries that come as several files, of which one loads the next by name: where an
 * installation lacks one, the dynamic linker takes it from another installation, of
 * another version, without a word.  Bits from such a mixture belong to no version. */
#ifndef WORKLOADS_WORKER_FAMILIES_H
#define WORKLOADS_WORKER_FAMILIES_H

#include <stdbool.h>

enum { FAMILIES_CAUSE_SIZE = 1024 };

/* Whether files of one library are mapped into this process from more than one directory.
 * ret_cause names two of them. */
bool families_mixed(char ret_cause[FAMILIES_CAUSE_SIZE]);

#endif
