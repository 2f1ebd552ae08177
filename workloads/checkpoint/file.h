/* A checkpoint file: the state of a training, saved by one process for another.
 *
 * It is a header (what it is, the version of the format, how long the state is, and its
 * digest), and then the state as it lies in memory: whoever loads it is the same program
 * on the same machine.  A file that is cut off, longer than it says, changed or of
 * another version is refused; nothing goes on from half a state.
 *
 * Where a function fails it writes one line for people to ret_cause. */
#ifndef WORKLOADS_CHECKPOINT_FILE_H
#define WORKLOADS_CHECKPOINT_FILE_H

#include <stdbool.h>
#include <stddef.h>

enum { CHECKPOINT_CAUSE_SIZE = 512 };

/* Creates an empty file in the folder $TMPDIR, or /tmp where that is not set.  Its name
 * is taken away at once: however a run ends, it leaves no file.  Returns a descriptor,
 * open for reading and writing, which the caller closes; -1 if that fails. */
int checkpoint_create(char ret_cause[CHECKPOINT_CAUSE_SIZE]);

/* Replaces what FILE holds by BYTES of STATE. */
bool checkpoint_save(int file, const void *state, size_t bytes,
                     char ret_cause[CHECKPOINT_CAUSE_SIZE]);

/* Reads what checkpoint_save has written; a state of another length than BYTES is
 * refused.  What ret_state holds after a failure is not defined. */
bool checkpoint_load(int file, void *ret_state, size_t bytes,
                     char ret_cause[CHECKPOINT_CAUSE_SIZE]);

#endif
