#include "tests/ptx/schedule.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/ptx/shadow.h"
#include "tests/simulator/fiber.h"

enum {
    RESIDENT_MAX = 4,   /* blocks at one time */
    STEP_ASIDE = 4,     /* a turn ends before one in so many atomics */
    POISON = 0xdb,      /* what shared memory holds at first */
    ORDER_MAX = 1 << 22 /* blocks of a larger grid are not permuted */
};

enum state { READY, AT_BARRIER, IN_WARP, RETURNED };

struct worker {               /* one thread of a resident block */
    struct ptx_thread thread; /* the first: a thread is its worker */
    struct resident *resident;
    struct fiber *fiber; /* NULL until its first turn */
    enum state state;
    const char *operation; /* of the warp, or where the barrier is */
    uint32_t mask, value, values[PTX_LANES];
};

struct resident {
    struct ptx_block block;
    struct worker workers[PTX_THREADS_MAX];
    uint32_t count, waiting, returned;
    _Alignas(256) char shared[PTX_SHARED_MAX + 16];
};

static struct {
    const struct ptx_launch *launch;
    struct resident *residents; /* RESIDENT_MAX of them */
    struct worker
        *current; /* whose turn it is; NULL where threads run straight through */
    struct worker *order[RESIDENT_MAX * PTX_THREADS_MAX];
    bool permuted;
    uint64_t random;
} schedule;

void ptx_fault(const struct ptx_thread *thread, const char *where, const char *format,
               ...)
{
    const uint32_t *block = thread->block->ctaid, *tid = thread->tid;
    va_list arguments;

    fprintf(stderr, "ptx: kernel %s, block (%u,%u,%u), thread (%u,%u,%u), %s: ",
            schedule.launch->kernel->name, block[0], block[1], block[2], tid[0], tid[1],
            tid[2], where);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    abort();
}

/* SplitMix64 (Steele, Lea, Flood 2014). */
static uint64_t draw(void)
{
    uint64_t z = schedule.random += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void open_schedule(void)
{
    const char *seed = getenv("REPROD_PTX_SEED");

    schedule.residents = calloc(RESIDENT_MAX, sizeof *schedule.residents);
    schedule.random = seed ? strtoull(seed, NULL, 10) : 0;
    schedule.permuted = schedule.random != 0;
    for (int i = 0; ptx_watched && i < RESIDENT_MAX; i++) {
        schedule.residents[i].block.shadow = shadow_shared_new();
    }
}

static struct worker *worker_of(struct ptx_thread *thread)
{
    return (struct worker *)thread;
}

/* -- Turns
 * ------------------------------------------------------------------------------------ */

void ptx_turn(struct ptx_thread *thread, bool spins)
{
    (void)thread;
    if (schedule.current && (schedule.permuted ? draw() % STEP_ASIDE == 0 : spins)) {
        fiber_yield();
    }
}

static void wait_as(struct worker *worker, enum state state)
{
    worker->state = state;
    fiber_yield();
}

static void fiber_body(void)
{
    schedule.launch->kernel->run(&schedule.current->thread);
}

static void release_barrier(struct resident *resident, const char *where)
{
    for (uint32_t i = 0; i < resident->count; i++) {
        struct worker *each = &resident->workers[i];

        if (strcmp(each->operation, where) != 0) {
            ptx_fault(&each->thread, each->operation,
                      "waits at this barrier, others at that of %s", where);
        }
        each->state = READY;
    }
    resident->waiting = 0;
    resident->block.epoch = shadow_epoch();
}

static void check_barrier(struct resident *resident, struct worker *last)
{
    if (resident->waiting == 0 ||
        resident->waiting + resident->returned < resident->count) {
        return;
    }
    if (resident->returned) {
        ptx_fault(&last->thread, last->operation ? last->operation : "its end",
                  "divergent barrier: %u threads wait, %u have returned",
                  resident->waiting, resident->returned);
    }
    release_barrier(resident, last->operation);
}

static void take_turn(struct worker *worker)
{
    schedule.current = worker;
    if (!worker->fiber) {
        worker->fiber = fiber_start(fiber_body);
    }
    if (!fiber_resume(worker->fiber)) {
        worker->state = RETURNED;
        worker->resident->returned++;
    }
    schedule.current = NULL;
    check_barrier(worker->resident, worker);
}

void ptx_barrier(struct ptx_thread *thread, const char *where)
{
    struct worker *worker = worker_of(thread);

    worker->operation = where;
    worker->resident->waiting++;
    wait_as(worker, AT_BARRIER);
}

/* -- Warps
 * ------------------------------------------------------------------------------------ */

static bool lanes_are_there(struct worker *worker, const char *where)
{
    struct resident *resident = worker->resident;
    uint32_t first = worker->thread.warp * PTX_LANES;

    for (uint32_t i = 0; i < PTX_LANES; i++) {
        const struct worker *lane = &resident->workers[first + i];

        if (!(worker->mask >> i & 1)) {
            continue;
        }
        if (first + i >= resident->count || lane->state == RETURNED) {
            ptx_fault(&worker->thread, where,
                      "%s: mask %08x names lane %u, which is not there",
                      worker->operation, worker->mask, i);
        }
        if (lane->state != IN_WARP) {
            return false;
        }
        if (lane->mask != worker->mask ||
            strcmp(lane->operation, worker->operation) != 0) {
            ptx_fault(&worker->thread, where, "%s with mask %08x meets %s with mask %08x",
                      worker->operation, worker->mask, lane->operation, lane->mask);
        }
    }
    return true;
}

static void release_lanes(struct worker *worker)
{
    struct worker *lanes = &worker->resident->workers[worker->thread.warp * PTX_LANES];
    uint32_t values[PTX_LANES];

    memset(values, POISON, sizeof values);
    for (uint32_t i = 0; i < PTX_LANES; i++) {
        if (worker->mask >> i & 1) {
            values[i] = lanes[i].value;
        }
    }
    for (uint32_t i = 0; i < PTX_LANES; i++) {
        if (worker->mask >> i & 1) {
            memcpy(lanes[i].values, values, sizeof values);
            lanes[i].state = READY;
        }
    }
    if (ptx_watched) {
        shadow_warp_met(&worker->thread);
    }
}

const uint32_t *ptx_warp(struct ptx_thread *thread, const char *what, uint32_t mask,
                         uint32_t value, const char *where)
{
    struct worker *worker = worker_of(thread);

    if (!(mask >> thread->lane & 1)) {
        ptx_fault(thread, where, "%s: mask %08x lacks the lane that names it", what,
                  mask);
    }
    worker->operation = what;
    worker->mask = mask;
    worker->value = value;
    worker->state = IN_WARP;
    if (lanes_are_there(worker, where)) {
        release_lanes(worker);
    } else {
        fiber_yield();
    }
    return worker->values;
}

/* PTX ISA, shfl.sync: the last operand holds a bound in its lowest bits and, from bit 8,
 * which bits of the lane name a segment of the warp. */
uint32_t ptx_shuffle(struct ptx_thread *thread, enum ptx_shuffle mode, uint32_t value,
                     uint32_t lane, uint32_t bounds, uint32_t mask, bool *ret_inside,
                     const char *where)
{
    static const char *const names[] = { "shfl.up", "shfl.down", "shfl.bfly",
                                         "shfl.idx" };
    const uint32_t *values = ptx_warp(thread, names[mode], mask, value, where);
    int own = (int)thread->lane, by = (int)(lane & 31);
    int segment = (int)(bounds >> 8 & 31), clamp = (int)(bounds & 31);
    int least = own & segment, most = least | (clamp & ~segment);
    int from = mode == PTX_UP     ? own - by
               : mode == PTX_DOWN ? own + by
               : mode == PTX_BFLY ? (own ^ by)
                                  : (least | (by & ~segment));

    *ret_inside = mode == PTX_UP ? from >= most : from <= most;
    from = *ret_inside ? from : own;
    if (!(mask >> from & 1)) {
        ptx_fault(thread, where, "%s reads lane %d, which mask %08x does not name",
                  names[mode], from, mask);
    }
    return values[from];
}

uint32_t ptx_vote_ballot(struct ptx_thread *thread, bool value, uint32_t mask,
                         const char *where)
{
    const uint32_t *values = ptx_warp(thread, "vote", mask, value, where);
    uint32_t ballot = 0;

    for (uint32_t i = 0; i < PTX_LANES; i++) {
        ballot |= (mask >> i & values[i] & 1) << i;
    }
    return ballot;
}

bool ptx_vote_all(struct ptx_thread *thread, bool value, uint32_t mask, const char *where)
{
    return ptx_vote_ballot(thread, value, mask, where) == mask;
}

bool ptx_vote_any(struct ptx_thread *thread, bool value, uint32_t mask, const char *where)
{
    return ptx_vote_ballot(thread, value, mask, where) != 0;
}

bool ptx_vote_uni(struct ptx_thread *thread, bool value, uint32_t mask, const char *where)
{
    uint32_t ballot = ptx_vote_ballot(thread, value, mask, where);

    return ballot == mask || ballot == 0;
}

/* -- Blocks
 * ----------------------------------------------------------------------------------- */

static void begin_thread(struct resident *resident, uint32_t number)
{
    struct worker *worker = &resident->workers[number];
    const uint32_t *size = resident->block.ntid;

    worker->thread = (struct ptx_thread){
        .tid = { number % size[0], number / size[0] % size[1],
                 number / size[0] / size[1] },
        .lane = number % PTX_LANES,
        .warp = number / PTX_LANES,
        .linear = number,
        .block = &resident->block,
    };
    worker->resident = resident;
    worker->fiber = NULL;
    worker->state = READY;
    worker->operation = NULL;
}

static void begin_block(struct resident *resident, uint64_t number)
{
    const struct ptx_launch *launch = schedule.launch;
    struct ptx_block *block = &resident->block;

    memcpy(block->ntid, launch->block, sizeof block->ntid);
    memcpy(block->nctaid, launch->grid, sizeof block->nctaid);
    block->ctaid[0] = (uint32_t)(number % launch->grid[0]);
    block->ctaid[1] = (uint32_t)(number / launch->grid[0] % launch->grid[1]);
    block->ctaid[2] = (uint32_t)(number / launch->grid[0] / launch->grid[1]);
    block->args = launch->args;
    block->shared = resident->shared;
    block->shared_bytes = launch->shared_bytes;
    memset(resident->shared, POISON, launch->shared_bytes);
    if (ptx_watched) {
        shadow_shared_begin(block);
    }
    resident->count = launch->block[0] * launch->block[1] * launch->block[2];
    resident->waiting = resident->returned = 0;
    for (uint32_t i = 0; i < resident->count; i++) {
        begin_thread(resident, i);
    }
}

static void permute(size_t count)
{
    for (size_t i = count; schedule.permuted && i > 1; i--) {
        size_t other = draw() % i;
        struct worker *swapped = schedule.order[i - 1];

        schedule.order[i - 1] = schedule.order[other];
        schedule.order[other] = swapped;
    }
}

static void run_straight(size_t count)
{
    permute(count);
    for (size_t i = 0; i < count; i++) {
        schedule.launch->kernel->run(&schedule.order[i]->thread);
    }
}

static void report_deadlock(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct worker *worker = schedule.order[i];

        if (worker->state == IN_WARP) {
            ptx_fault(&worker->thread, worker->operation,
                      "deadlock: waits for lanes of mask %08x that do not come",
                      worker->mask);
        }
    }
    ptx_fault(&schedule.order[0]->thread, "some barrier", "deadlock");
}

static void run_in_turns(size_t count)
{
    size_t left = count;

    while (left > 0) {
        bool progress = false;

        permute(count);
        for (size_t i = 0; i < count; i++) {
            struct worker *worker = schedule.order[i];

            if (worker->state == READY) {
                progress = true;
                take_turn(worker);
                left -= worker->state == RETURNED;
            }
        }
        if (!progress) {
            report_deadlock(count);
        }
    }
}

static bool needs_turns(const struct ptx_kernel *kernel)
{
    return kernel->flags & (PTX_MEETS | PTX_SPINS) ||
           (schedule.permuted && kernel->flags & PTX_TURNS);
}

/* The blocks whose numbers these are, at one time. */
static void run_blocks(const uint64_t *numbers, int count)
{
    size_t threads = 0;

    for (int i = 0; i < count; i++) {
        struct resident *resident = &schedule.residents[i];

        begin_block(resident, numbers[i]);
        for (uint32_t t = 0; t < resident->count; t++) {
            schedule.order[threads++] = &resident->workers[t];
        }
    }
    if (needs_turns(schedule.launch->kernel)) {
        run_in_turns(threads);
    } else {
        run_straight(threads);
    }
}

static uint32_t *permuted_numbers(uint64_t blocks)
{
    uint32_t *numbers = malloc(blocks * sizeof *numbers);

    for (uint64_t i = 0; i < blocks; i++) {
        uint64_t other = draw() % (i + 1);

        numbers[i] = numbers[other];
        numbers[other] = (uint32_t)i;
    }
    return numbers;
}

void schedule_run(const struct ptx_launch *launch)
{
    uint64_t blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    uint32_t *numbers = NULL;

    if (!schedule.residents) {
        open_schedule();
    }
    schedule.launch = launch;
    if (schedule.permuted && blocks <= ORDER_MAX) {
        numbers = permuted_numbers(blocks);
    }
    for (uint64_t done = 0; done < blocks;) {
        uint64_t resident[RESIDENT_MAX];
        uint64_t together = schedule.permuted ? 1 + draw() % RESIDENT_MAX : 1;
        int count = 0;

        for (; count < (int)together && done < blocks; count++, done++) {
            resident[count] = numbers ? numbers[done] : done;
        }
        run_blocks(resident, count);
    }
    free(numbers);
}
