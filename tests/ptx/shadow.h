/* What compute-sanitizer looks for, in shadow memory; on where REPROD_PTX_CHECK names it:
 * "memory", "initialised", "races", with commas between them, or "all".
 *
 *   memory       an access to what is not allocated: at the end of an allocation, after
 * it, freed initialised  a read of what nobody wrote, neither the host nor a kernel races
 * two threads of a block access the same byte of shared memory, one of them to write it,
 * and no barrier lies between the two; of a warp, no operation of the warp
 *
 * Alignment, and the size of shared memory, are always checked (ptx.h). */
#ifndef TESTS_PTX_SHADOW_H
#define TESTS_PTX_SHADOW_H

#include "tests/ptx/ptx.h"

/* Device memory: it lies in one reserved range, with a gap between allocations. */
void *shadow_allocate(size_t bytes, int device); /* NULL where there is none left */
/* Bytes from MEMORY to the end of its allocation, and the device it is of; 0 and -1 where
 * it is of none. */
size_t shadow_room(const void *memory, int *ret_device);
void shadow_free(void *memory);
/* The host wrote BYTES, or copied them from FROM. */
void shadow_written(const void *memory, size_t bytes);
void shadow_copied(const void *memory, const void *from, size_t bytes);

/* Shared memory of a block that begins: nobody has written it. */
struct shadow *shadow_shared_new(void);
void shadow_shared_begin(struct ptx_block *block);
/* A number that no interval between two barriers had before. */
uint64_t shadow_epoch(void);
/* The lanes of THREAD's warp met: what they did before is ordered. */
void shadow_warp_met(struct ptx_thread *thread);

#endif
