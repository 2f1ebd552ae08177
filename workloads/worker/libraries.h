/* What is mapped into this process: the executable and its shared libraries, by the GNU
 * build-id that the linker gave each (ELF note NT_GNU_BUILD_ID). */
#ifndef WORKLOADS_WORKER_LIBRARIES_H
#define WORKLOADS_WORKER_LIBRARIES_H

#include <stdbool.h>

#include "workloads/worker/emit.h"

enum { BUILD_ID_SIZE = 2 * 64 + 8, LIBRARY_PATH_SIZE = 512, LIBRARIES_CAUSE_SIZE = 1024 };

/* The build of the worker: its build-id in hex or, if it was linked without one,
 * "digest:" and the digest of its file.  Borrowed: valid until the process ends. */
const char *libraries_worker_build(void);

/* The file name of the OpenMP run-time library, with the version that its real path shows
 * ("libgomp.so.1.0.0"); "none" when there is none. */
void libraries_openmp(char ret_name[LIBRARY_PATH_SIZE]);

/* How many shared libraries are mapped. */
int libraries_count(void);

/* Calls VISIT(arg, path) for each, by the path that the dynamic linker has, in its order.
 */
void libraries_each(void (*visit)(void *arg, const char *path), void *arg);

/* Adds "libraries":[{"path":…,"build_id":…}], in the order of the dynamic linker. */
void libraries_emit(struct emit *emit);

/* Whether files of one library are mapped from more than one directory; ret_cause names
 * two of them.  Some libraries are several files, of which one loads the next by name:
 * where an installation lacks one, the dynamic linker takes it from another installation,
 * of another version, without a word.  Bits from such a mixture belong to no version. */
bool libraries_mixed(char ret_cause[LIBRARIES_CAUSE_SIZE]);

#endif
