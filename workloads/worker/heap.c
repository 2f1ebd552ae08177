/* The C library's heap under the circumstances of the run: what malloc gives and what
 * free takes is filled with the pattern, and sizes are jittered.  These definitions take
 * the place of libc's for the whole process, libraries that the run loads included; libc
 * leaves its own under other names.  M_PERTURB would not do: what a thread's cache holds
 * is not filled, and that is where small blocks come from.
 *
 * Without circumstances nothing changes but one comparison.  Not in the builds for
 * sanitizers, which have a heap of their own. */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/worker/circumstances.h"

#if defined(__GLIBC__) && defined(REPROD_HEAP)

enum { ALIGNMENT = 16, JITTER_MAX = 4096 };

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *memory);

static bool is_plain(void)
{
    const struct circumstances *now = circumstances_now();

    return !now->is_poisoned && !now->is_jittered;
}

static size_t jittered(size_t bytes)
{
    static uint64_t count;
    size_t more = 0;

    if (circumstances_now()->is_jittered) {
        more = circumstances_jitter(__atomic_fetch_add(&count, 1, __ATOMIC_RELAXED),
                                    ALIGNMENT, JITTER_MAX);
    }
    return bytes < SIZE_MAX / 2 ? bytes + more : bytes;
}

/* Fills what lies behind the first KEEP bytes of MEMORY. */
static void *poisoned(void *memory, size_t keep)
{
    const struct circumstances *now = circumstances_now();

    if (memory && now->is_poisoned) {
        size_t size = malloc_usable_size(memory);
        unsigned char *bytes = memory;

        for (size_t i = keep; i < size; i++) {
            bytes[i] = (unsigned char)(now->pattern >> (8 * (i % sizeof now->pattern)));
        }
    }
    return memory;
}

void *malloc(size_t bytes)
{
    return is_plain() ? __libc_malloc(bytes)
                      : poisoned(__libc_malloc(jittered(bytes)), 0);
}

void *calloc(size_t count, size_t bytes)
{
    return __libc_calloc(count, bytes);
}

void free(void *memory)
{
    __libc_free(poisoned(memory, 0));
}

void *realloc(void *memory, size_t bytes)
{
    size_t size;
    void *moved;

    if (is_plain() || !memory || bytes == 0) {
        return memory || is_plain() ? __libc_realloc(memory, bytes) : malloc(bytes);
    }
    /* libc's would move the block and leave the old one as it was. */
    size = malloc_usable_size(memory);
    moved = malloc(bytes);
    if (moved) {
        memcpy(moved, memory, size < bytes ? size : bytes);
        free(memory);
    }
    return moved;
}

void *memalign(size_t alignment, size_t bytes)
{
    return poisoned(__libc_memalign(alignment, jittered(bytes)), 0);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return memalign(alignment, bytes);
}

int posix_memalign(void **ret_memory, size_t alignment, size_t bytes)
{
    int error;
    void *memory;

    if (alignment % sizeof(void *) != 0 || alignment == 0 ||
        (alignment & (alignment - 1)) != 0) {
        return EINVAL;
    }
    error = errno;
    memory = memalign(alignment, bytes);
    errno = error;
    if (!memory) {
        return ENOMEM;
    }
    *ret_memory = memory;
    return 0;
}
#endif
