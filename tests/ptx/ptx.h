/* What a translated kernel calls (emit.py writes them), and what the stand-in for CUDA's
 * run-time library knows of it.
 *
 * A thread of a kernel is one call of its function: on a fiber where threads meet, or
 * where they are to take turns, and otherwise straight through.  Global and local memory
 * are memory of the process at the same addresses; shared memory has offsets.  Whatever a
 * GPU would not survive ends the process with a sentence that names kernel, block, thread
 * and line of the source. */
#ifndef TESTS_PTX_PTX_H
#define TESTS_PTX_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tests/ptx/arith.h"

enum { PTX_LANES = 32, PTX_THREADS_MAX = 1024, PTX_SHARED_MAX = 48 * 1024 };

struct ptx_block {
    uint32_t ntid[3], ctaid[3], nctaid[3];
    void **args; /* where each parameter lies */
    char *shared;
    uint32_t shared_bytes;
    struct shadow
        *shadow;    /* of shared memory (shadow.h); NULL where nothing is watched */
    uint64_t epoch; /* another one after each barrier, and in each block */
};

struct ptx_thread {
    uint32_t tid[3];
    uint32_t lane, warp, linear;
    struct ptx_block *block;
    char *local; /* where its local variables lie */
    size_t local_bytes;
};

/* What a kernel does, which decides how its threads are run. */
enum {
    PTX_MEETS = 1, /* its threads meet: at barriers, in shuffles */
    PTX_TURNS =
        2, /* it has atomics or volatile accesses, before which others may have a turn */
    PTX_SPINS = 4 /* it may wait for what another thread writes */
};

struct ptx_kernel {
    const char *name; /* NULL ends a table */
    void (*run)(struct ptx_thread *thread);
    int params;
    const int *param_bytes;
    uint32_t shared_bytes; /* without what a launch adds */
    uint32_t threads_max;
    unsigned flags;
};

/* A translated object: which fat binary it is, and what was in it. */
struct ptx_module {
    const char *name; /* NULL ends the table */
    size_t bytes;
    uint32_t crc32; /* of its section .nv_fatbin */
    const struct ptx_kernel *kernels;
};
extern const struct ptx_module ptx_modules[];

/* -- Together (schedule.c)
 * ------------------------------------------------------------------ */

/* Here others may have a turn; where SPINS they must. */
void ptx_turn(struct ptx_thread *thread, bool spins);
void ptx_barrier(struct ptx_thread *thread, const char *where);
/* The values of all lanes of MASK once all are there; WHAT is the operation. */
const uint32_t *ptx_warp(struct ptx_thread *thread, const char *what, uint32_t mask,
                         uint32_t value, const char *where);

enum ptx_shuffle { PTX_UP, PTX_DOWN, PTX_BFLY, PTX_IDX };
uint32_t ptx_shuffle(struct ptx_thread *thread, enum ptx_shuffle mode, uint32_t value,
                     uint32_t lane, uint32_t bounds, uint32_t mask, bool *ret_inside,
                     const char *where);
bool ptx_vote_all(struct ptx_thread *thread, bool value, uint32_t mask,
                  const char *where);
bool ptx_vote_any(struct ptx_thread *thread, bool value, uint32_t mask,
                  const char *where);
bool ptx_vote_uni(struct ptx_thread *thread, bool value, uint32_t mask,
                  const char *where);
uint32_t ptx_vote_ballot(struct ptx_thread *thread, bool value, uint32_t mask,
                         const char *where);

__attribute__((noreturn, format(printf, 3, 4))) void
ptx_fault(const struct ptx_thread *thread, const char *where, const char *format, ...);

/* -- Memory
 * --------------------------------------------------------------------------------- */

enum ptx_access { PTX_READ, PTX_WRITE, PTX_ATOMIC };
extern bool ptx_watched; /* shadow.h */
void ptx_watch(struct ptx_thread *thread, uint64_t address, unsigned bytes,
               enum ptx_access access, const char *where);
void ptx_watch_shared(struct ptx_thread *thread, uint32_t offset, unsigned bytes,
                      enum ptx_access access, const char *where);

static inline char *ptx_global(struct ptx_thread *thread, uint64_t address,
                               unsigned bytes, enum ptx_access access, const char *where)
{
    if (address % bytes) {
        ptx_fault(thread, where, "misaligned access of %u bytes at %#llx", bytes,
                  (unsigned long long)address);
    }
    if (ptx_watched) {
        ptx_watch(thread, address, bytes, access, where);
    }
    return (char *)(uintptr_t)address;
}
static inline char *ptx_shared(struct ptx_thread *thread, uint32_t offset, unsigned bytes,
                               enum ptx_access access, const char *where)
{
    if (offset % bytes) {
        ptx_fault(thread, where, "misaligned access of %u bytes at %#x of shared memory",
                  bytes, offset);
    }
    if (offset > thread->block->shared_bytes ||
        bytes > thread->block->shared_bytes - offset) {
        ptx_fault(thread, where, "access of %u bytes at %u of %u bytes of shared memory",
                  bytes, offset, thread->block->shared_bytes);
    }
    if (ptx_watched) {
        ptx_watch_shared(thread, offset, bytes, access, where);
    }
    return thread->block->shared + offset;
}
static inline char *ptx_local(struct ptx_thread *thread, uint64_t address, unsigned bytes,
                              enum ptx_access access, const char *where)
{
    uint64_t offset = address - (uint64_t)(uintptr_t)thread->local;

    (void)access;
    if (address % bytes) {
        ptx_fault(thread, where, "misaligned access of %u bytes to local memory", bytes);
    }
    if (offset > thread->local_bytes || bytes > thread->local_bytes - offset) {
        ptx_fault(thread, where,
                  "access of %u bytes at %lld of %zu bytes of local memory", bytes,
                  (long long)offset, thread->local_bytes);
    }
    return (char *)(uintptr_t)address;
}
/* In whatever space the address is. */
static inline char *ptx_generic(struct ptx_thread *thread, uint64_t address,
                                unsigned bytes, enum ptx_access access, const char *where)
{
    uint64_t in_shared = address - (uint64_t)(uintptr_t)thread->block->shared;

    if (in_shared < thread->block->shared_bytes) {
        return ptx_shared(thread, (uint32_t)in_shared, bytes, access, where);
    }
    if (address - (uint64_t)(uintptr_t)thread->local < thread->local_bytes) {
        return ptx_local(thread, address, bytes, access, where);
    }
    return ptx_global(thread, address, bytes, access, where);
}

#define ACCESSORS(N)                                                                     \
    static inline uint##N##_t ptx_read##N(const void *at)                                \
    {                                                                                    \
        uint##N##_t value;                                                               \
        memcpy(&value, at, sizeof value);                                                \
        return value;                                                                    \
    }                                                                                    \
    static inline void ptx_write##N(void *at, uint##N##_t value)                         \
    {                                                                                    \
        memcpy(at, &value, sizeof value);                                                \
    }
ACCESSORS(8)
ACCESSORS(16)
ACCESSORS(32)
ACCESSORS(64)

/* -- Atomics: nobody else has a turn within one
 * ---------------------------------------------- */

#define ATOMIC(name, N, expression)                                                      \
    static inline uint##N##_t atom_##name(char *at, uint##N##_t value)                   \
    {                                                                                    \
        uint##N##_t old = ptx_read##N(at);                                               \
        ptx_write##N(at, expression);                                                    \
        return old;                                                                      \
    }
#define ATOMICS(N)                                                                       \
    ATOMIC(add_u##N, N, add_u##N(old, value))                                            \
    ATOMIC(min_u##N, N, min_u##N(old, value))                                            \
    ATOMIC(max_u##N, N, max_u##N(old, value))                                            \
    ATOMIC(min_s##N, N, min_s##N(old, value))                                            \
    ATOMIC(max_s##N, N, max_s##N(old, value))                                            \
    ATOMIC(and_b##N, N, old &value)                                                      \
    ATOMIC(or_b##N, N, old | value)                                                      \
    ATOMIC(xor_b##N, N, old ^ value)                                                     \
    ATOMIC(exch_b##N, N, value)                                                          \
    static inline uint##N##_t atom_cas_b##N(char *at, uint##N##_t expected,              \
                                            uint##N##_t value)                           \
    {                                                                                    \
        uint##N##_t old = ptx_read##N(at);                                               \
        ptx_write##N(at, old == expected ? value : old);                                 \
        return old;                                                                      \
    }
ATOMICS(32)
ATOMICS(64)
ATOMIC(inc_u32, 32, old >= value ? 0 : old + 1)
ATOMIC(dec_u32, 32, old == 0 || old > value ? value : old - 1)
ATOMIC(add_f32, 32, add_rn_f32(old, value))
ATOMIC(add_f64, 64, add_rn_f64(old, value))
/* In global memory single precision has no subnormal numbers for an atomic. */
ATOMIC(add_f32_flushed, 32,
       bits_f32(flushed(as_f32(bits_f32(flushed(as_f32(old)) + flushed(as_f32(value)))))))

#endif
