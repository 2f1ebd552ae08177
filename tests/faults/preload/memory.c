/* malloc and its relatives, as the n-th of which fails; and the clock.  The C library's
 * own names for them serve, since dlsym allocates. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "tests/faults/preload/fault.h"

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);

void *malloc(size_t size)
{
    enum fault_what what = fault_begin(FAULT_malloc, -1, NULL);
    void *memory = what == FAULT_FAIL ? NULL : __libc_malloc(size);

    fault_end(what);
    return memory;
}

void *calloc(size_t count, size_t size)
{
    enum fault_what what = fault_begin(FAULT_malloc, -1, NULL);
    void *memory = what == FAULT_FAIL ? NULL : __libc_calloc(count, size);

    fault_end(what);
    return memory;
}

void *realloc(void *old, size_t size)
{
    enum fault_what what = fault_begin(FAULT_malloc, -1, NULL);
    void *memory = what == FAULT_FAIL ? NULL : __libc_realloc(old, size);

    fault_end(what);
    return memory;
}

/* Somebody sets the system's clock. */
int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
    enum { SECOND = 1000000000 };
    int64_t ahead = clock == CLOCK_REALTIME ? fault_wall_ahead_ns() : 0;
    int result;
    REAL(clock_gettime);

    result = real(clock, ret_time);
    if (result == 0 && ahead) {
        int64_t ns = (int64_t)ret_time->tv_sec * SECOND + ret_time->tv_nsec + ahead;

        ret_time->tv_sec = ns / SECOND;
        ret_time->tv_nsec = ns % SECOND;
    }
    return result;
}
