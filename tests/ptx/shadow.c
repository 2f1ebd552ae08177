#include "tests/ptx/shadow.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { GAP = 512, ALLOCATIONS_MAX = 4096, WARPS_MAX = PTX_THREADS_MAX / PTX_LANES };
#define ARENA_BYTES ((size_t)32 << 30)

/* Of each byte of device memory. */
enum { UNALLOCATED = 0, UNWRITTEN = 1, WRITTEN = 2 };

/* Who accessed a byte last: THREAD is its number and one. */
struct touch {
    uint32_t thread;
    uint64_t epoch, warp_epoch;
};
struct byte {
    struct touch write, read;
    bool atomic;        /* the write was one */
    bool read_by_warps; /* more than one warp read it in that epoch */
    bool read_by_lanes;
    bool written;
};
struct shadow {
    struct byte bytes[PTX_SHARED_MAX];
    uint64_t warp_epochs[WARPS_MAX];
};

static struct {
    bool memory, initialised, races;
    char *arena;
    unsigned char *state; /* of each byte; NULL where nothing is watched */
    struct allocation {
        char *start;
        size_t bytes;
        int device;
    } allocations[ALLOCATIONS_MAX]; /* by address */
    size_t count;
    uint64_t epoch;
} shadow;
bool ptx_watched;

static void *reserve(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (memory == MAP_FAILED) {
        perror("ptx: no memory can be reserved");
        exit(1);
    }
    return memory;
}

static bool asks_for(const char *list, const char *name)
{
    return strcmp(list, "all") == 0 || strstr(list, name);
}

static void open_arena(void)
{
    const char *list = getenv("REPROD_PTX_CHECK");

    shadow.arena = reserve(ARENA_BYTES);
    if (!list || !*list) {
        return;
    }
    shadow.memory = asks_for(list, "memory");
    shadow.initialised = asks_for(list, "initialised");
    shadow.races = asks_for(list, "races");
    if (!shadow.memory && !shadow.initialised && !shadow.races) {
        fprintf(
            stderr,
            "ptx: REPROD_PTX_CHECK: '%s': must name memory, initialised, races or all\n",
            list);
        exit(2);
    }
    shadow.state = reserve(ARENA_BYTES);
    ptx_watched = true;
}

static size_t rounded(size_t bytes)
{
    return (bytes + GAP - 1) / GAP * GAP + GAP;
}

/* Bytes that are free before the allocation INDEX. */
static size_t room_before(size_t index, char **ret_start)
{
    struct allocation *before = index ? &shadow.allocations[index - 1] : NULL;
    char *end = index < shadow.count ? shadow.allocations[index].start
                                     : shadow.arena + ARENA_BYTES;

    *ret_start = before ? before->start + rounded(before->bytes) : shadow.arena + GAP;
    return (size_t)(end - *ret_start);
}

void *shadow_allocate(size_t bytes, int device)
{
    char *start = NULL;
    size_t index = 0;

    if (!shadow.arena) {
        open_arena();
    }
    while (index <= shadow.count && room_before(index, &start) < rounded(bytes)) {
        index++;
    }
    if (index > shadow.count || shadow.count == ALLOCATIONS_MAX) {
        return NULL;
    }
    memmove(&shadow.allocations[index + 1], &shadow.allocations[index],
            (shadow.count - index) * sizeof shadow.allocations[0]);
    shadow.allocations[index] = (struct allocation){ start, bytes, device };
    shadow.count++;
    if (shadow.state) {
        memset(shadow.state + (start - shadow.arena), UNWRITTEN, bytes);
    }
    return start;
}

size_t shadow_room(const void *memory, int *ret_device)
{
    for (size_t i = 0; i < shadow.count; i++) {
        const struct allocation *at = &shadow.allocations[i];

        if ((const char *)memory >= at->start &&
            (const char *)memory < at->start + at->bytes) {
            *ret_device = at->device;
            return at->bytes - (size_t)((const char *)memory - at->start);
        }
    }
    *ret_device = -1;
    return 0;
}

void shadow_free(void *memory)
{
    size_t index = 0;
    size_t bytes;

    while (index < shadow.count && shadow.allocations[index].start != memory) {
        index++;
    }
    if (index == shadow.count) {
        return;
    }
    bytes = shadow.allocations[index].bytes;
    madvise(memory, rounded(bytes), MADV_DONTNEED);
    if (shadow.state) {
        memset(shadow.state + ((char *)memory - shadow.arena), UNALLOCATED, bytes);
    }
    shadow.count--;
    memmove(&shadow.allocations[index], &shadow.allocations[index + 1],
            (shadow.count - index) * sizeof shadow.allocations[0]);
}

/* The state of device memory; NULL where MEMORY is none, or nothing is watched. */
static unsigned char *state_of(const void *memory)
{
    size_t offset = (size_t)((const char *)memory - shadow.arena);

    return shadow.state && offset < ARENA_BYTES ? shadow.state + offset : NULL;
}

void shadow_written(const void *memory, size_t bytes)
{
    unsigned char *state = state_of(memory);

    if (state) {
        memset(state, WRITTEN, bytes);
    }
}

void shadow_copied(const void *memory, const void *from, size_t bytes)
{
    unsigned char *state = state_of(memory);

    if (state && state_of(from)) {
        memcpy(state, state_of(from), bytes);
    } else {
        shadow_written(memory, bytes);
    }
}

/* "4 bytes after an allocation of 400 bytes" */
static void describe(const char *at, char *ret_text, size_t size)
{
    snprintf(ret_text, size, "in no allocation");
    for (size_t i = 0; i < shadow.count; i++) {
        struct allocation *each = &shadow.allocations[i];

        if (each->start <= at) {
            snprintf(ret_text, size,
                     "%zu bytes after the start of an allocation of %zu bytes",
                     (size_t)(at - each->start), each->bytes);
        }
    }
}

static const char *const verbs[] = { "read", "write", "atomic access" };

void ptx_watch(struct ptx_thread *thread, uint64_t address, unsigned bytes,
               enum ptx_access access, const char *where)
{
    const char *at = (const char *)(uintptr_t)address;
    unsigned char *state = state_of(at);
    char text[128];

    for (unsigned i = 0; shadow.memory && i < bytes; i++) {
        if (!state || state[i] == UNALLOCATED) {
            describe(at, text, sizeof text);
            ptx_fault(thread, where, "%s of %u bytes out of bounds, %s", verbs[access],
                      bytes, text);
        }
    }
    if (!state) {
        return;
    }
    for (unsigned i = 0; shadow.initialised && access != PTX_WRITE && i < bytes; i++) {
        if (state[i] != WRITTEN) {
            describe(at, text, sizeof text);
            ptx_fault(thread, where, "%s of %u bytes that nobody wrote, %s",
                      verbs[access], bytes, text);
        }
    }
    if (access != PTX_READ) {
        memset(state, WRITTEN, bytes);
    }
}

/* -- Shared memory
 * ---------------------------------------------------------------------------- */

struct shadow *shadow_shared_new(void)
{
    return reserve(sizeof(struct shadow));
}

uint64_t shadow_epoch(void)
{
    return ++shadow.epoch;
}

void shadow_shared_begin(struct ptx_block *block)
{
    block->epoch = shadow_epoch();
    for (uint32_t i = 0; i < block->shared_bytes; i++) {
        block->shadow->bytes[i].written = false;
    }
}

void shadow_warp_met(struct ptx_thread *thread)
{
    thread->block->shadow->warp_epochs[thread->warp] = shadow_epoch();
}

/* What TOUCH did is ordered before what THREAD does now. */
static bool is_ordered(const struct touch *touch, const struct ptx_thread *thread)
{
    return touch->thread == 0 || touch->epoch != thread->block->epoch ||
           touch->thread - 1 == thread->linear ||
           ((touch->thread - 1) / PTX_LANES == thread->warp &&
            touch->warp_epoch != thread->block->shadow->warp_epochs[thread->warp]);
}

static bool reads_are_ordered(const struct byte *byte, const struct ptx_thread *thread)
{
    const struct touch *read = &byte->read;

    if (read->thread == 0 || read->epoch != thread->block->epoch) {
        return true;
    }
    if (byte->read_by_warps) {
        return false;
    }
    if (byte->read_by_lanes && (read->thread - 1) / PTX_LANES == thread->warp) {
        return read->warp_epoch != thread->block->shadow->warp_epochs[thread->warp];
    }
    return is_ordered(read, thread);
}

static void note_read(struct byte *byte, const struct ptx_thread *thread,
                      struct touch now)
{
    const struct touch *before = &byte->read;
    bool same = before->thread != 0 && before->epoch == now.epoch;

    byte->read_by_warps =
        same && (byte->read_by_warps || (before->thread - 1) / PTX_LANES != thread->warp);
    byte->read_by_lanes = same && before->warp_epoch == now.warp_epoch &&
                          (byte->read_by_lanes || before->thread != now.thread);
    byte->read = now;
}

static void check_race(struct ptx_thread *thread, struct byte *byte, uint32_t offset,
                       enum ptx_access access, const char *where)
{
    bool both = byte->atomic && access == PTX_ATOMIC;

    if (!both && !is_ordered(&byte->write, thread)) {
        ptx_fault(
            thread, where,
            "race: %s of byte %u of shared memory, which thread %u wrote, and no barrier "
            "between them",
            verbs[access], offset, byte->write.thread - 1);
    }
    if (access != PTX_READ && !reads_are_ordered(byte, thread)) {
        ptx_fault(
            thread, where,
            "race: %s of byte %u of shared memory, which thread %u read, and no barrier "
            "between them",
            verbs[access], offset, byte->read.thread - 1);
    }
}

void ptx_watch_shared(struct ptx_thread *thread, uint32_t offset, unsigned bytes,
                      enum ptx_access access, const char *where)
{
    struct shadow *own = thread->block->shadow;
    struct touch now = { thread->linear + 1, thread->block->epoch,
                         own->warp_epochs[thread->warp] };

    for (uint32_t i = offset; i < offset + bytes; i++) {
        struct byte *byte = &own->bytes[i];

        if (shadow.races) {
            check_race(thread, byte, i, access, where);
        }
        if (shadow.initialised && access != PTX_WRITE && !byte->written) {
            ptx_fault(thread, where, "%s of byte %u of shared memory, which nobody wrote",
                      verbs[access], i);
        }
        if (access == PTX_READ) {
            note_read(byte, thread, now);
        } else {
            byte->write = now;
            byte->atomic = access == PTX_ATOMIC;
            byte->written = true;
        }
    }
}
