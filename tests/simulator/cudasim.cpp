/* The happy path: for each block, in some order, its shared memory is poisoned and its
 * threads take turns until all have returned.  A turn ends at a barrier, in a collective
 * whose lanes are not all there, sometimes at an atomic, or with the thread. */
#include "tests/simulator/cudasim.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <utility>
#include <vector>

#include "tests/simulator/fiber.h"
#include "tests/simulator/wrong.h"

/* The linker's bounds of all __shared__ variables. */
extern char __start_cudasim_shared[] __attribute__((weak));
extern char __stop_cudasim_shared[] __attribute__((weak));

namespace
{
enum state { READY, AT_BARRIER, IN_COLLECTIVE, RETURNED };

enum { POISON = 0xAA, LANES = 32, STEP_ASIDE = 4 /* at one in so many atomics */ };

struct thread {
    enum state state;
    struct fiber *fiber; /* NULL until its first turn */
    int barrier_line;
    const char *collective;
    unsigned mask;
    uint64_t value;
    uint64_t values[LANES]; /* of the last collective */
};

struct simulation {
    const char *kernel;
    const std::function<void()> *body;
    std::vector<thread> threads; /* of the block */
    unsigned current, waiting, returned;
    std::vector<char> dynamic;
    bool permuted;
    uint64_t random;
};

simulation sim;
} // namespace

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
    va_list arguments;
    fprintf(stderr,
            "cudasim: kernel %s, block (%u,%u,%u), thread (%u,%u,%u): ", sim.kernel,
            blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    abort();
}

/* SplitMix64 (Steele, Lea, Flood 2014). */
static uint64_t draw()
{
    uint64_t z = sim.random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void read_seed()
{
    static bool read;
    const char *seed = read ? nullptr : getenv("REPROD_CUDASIM_SEED");
    read = true;
    if (seed) {
        sim.random = strtoull(seed, nullptr, 10);
        sim.permuted = sim.random != 0;
    }
}

static void permute(std::vector<uint32_t> &order)
{
    for (size_t i = order.size(); sim.permuted && i > 1; i--) {
        std::swap(order[i - 1], order[draw() % i]);
    }
}

static std::vector<uint32_t> numbers(size_t count)
{
    std::vector<uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    permute(order);
    return order;
}

static void select_thread(unsigned number)
{
    sim.current = number;
    threadIdx.x = number % blockDim.x;
    threadIdx.y = number / blockDim.x % blockDim.y;
    threadIdx.z = number / (blockDim.x * blockDim.y);
}

static thread &self()
{
    return sim.threads[sim.current];
}

static void thread_main()
{
    (*sim.body)();
}

static void release_barrier()
{
    int line = self().barrier_line;
    for (thread &t : sim.threads) {
        if (t.state == AT_BARRIER && t.barrier_line != line) {
            die("threads meet at different __syncthreads (lines %d and %d)", line,
                t.barrier_line);
        }
        t.state = READY;
    }
    sim.waiting = 0;
}

static void check_barrier()
{
    if (sim.waiting == 0 || sim.waiting + sim.returned < sim.threads.size()) {
        return;
    }
    if (sim.returned) {
        die("divergent barrier: %u threads wait at __syncthreads, %u have returned",
            sim.waiting, sim.returned);
    }
    release_barrier();
}

static void take_turn(unsigned number)
{
    thread &t = sim.threads[number];
    select_thread(number);
    if (!t.fiber) {
        t.fiber = fiber_start(thread_main);
    }
    if (!fiber_resume(t.fiber)) {
        t.state = RETURNED;
        sim.returned++;
    }
    check_barrier();
}

static void poison_shared()
{
    if (__start_cudasim_shared) {
        memset(__start_cudasim_shared, POISON,
               (size_t)(__stop_cudasim_shared - __start_cudasim_shared));
    }
    std::fill(sim.dynamic.begin(), sim.dynamic.end(), (char)POISON);
}

static void report_deadlock()
{
    for (unsigned i = 0; i < sim.threads.size(); i++) {
        const thread &t = sim.threads[i];
        select_thread(i);
        if (t.state == IN_COLLECTIVE) {
            die("deadlock: waits in %s for lanes of mask %08x that do not come",
                t.collective, t.mask);
        }
    }
    die("deadlock");
}

static void run_block()
{
    unsigned count = blockDim.x * blockDim.y * blockDim.z;
    sim.threads.resize(count);
    for (thread &t : sim.threads) { /* what collectives left is never looked at */
        t.state = READY;
        t.fiber = nullptr;
    }
    sim.waiting = sim.returned = 0;
    poison_shared();
    std::vector<uint32_t> order = numbers(count);
    while (sim.returned < count) {
        bool progress = false;
        for (uint32_t number : order) {
            if (sim.threads[number].state != READY) {
                continue;
            }
            progress = true;
            take_turn(number);
        }
        if (!progress) {
            report_deadlock();
        }
        permute(order);
    }
}

static bool is_within(dim3 d, unsigned x, unsigned y, unsigned z)
{
    return d.x >= 1 && d.x <= x && d.y >= 1 && d.y <= y && d.z >= 1 && d.z <= z;
}

void cudasim::launch(const char *kernel, dim3 grid, dim3 block, size_t shared_bytes,
                     const std::function<void()> &body)
{
    enum { THREADS_MAX = 1024, SHARED_MAX = 48 * 1024 };
    std::lock_guard<std::mutex> lock(turn);
    if (!device_takes_kernel(kernel)) {
        return;
    }
    read_seed();
    sim.kernel = kernel;
    sim.body = &body;
    gridDim = grid;
    blockDim = block;
    blockIdx = threadIdx = dim3(0, 0, 0);
    if (!is_within(grid, 0x7fffffff, 65535, 65535) || !is_within(block, 1024, 1024, 64) ||
        block.x * block.y * block.z > THREADS_MAX || shared_bytes > SHARED_MAX) {
        die("launched with a grid (%u,%u,%u), block (%u,%u,%u) or %zu shared bytes that "
            "no device takes",
            grid.x, grid.y, grid.z, block.x, block.y, block.z, shared_bytes);
    }
    sim.dynamic.assign(shared_bytes + 16, 0);
    wrong_write wrong(kernel);
    for (uint32_t number : numbers((size_t)grid.x * grid.y * grid.z)) {
        blockIdx.x = number % grid.x;
        blockIdx.y = number / grid.x % grid.y;
        blockIdx.z = number / (grid.x * grid.y);
        run_block();
    }
    wrong.happen();
}

int64_t cudasim::grid_limit()
{
    enum { LEAST = 24, SPREAD = 24 };
    std::lock_guard<std::mutex> lock(turn);
    read_seed();
    return LEAST + (sim.permuted ? (int64_t)(draw() % SPREAD) : 0);
}

void cudasim::atomic_point()
{
    if (sim.permuted && draw() % STEP_ASIDE == 0) {
        fiber_yield();
    }
}

void cudasim::barrier(int line)
{
    self().state = AT_BARRIER;
    self().barrier_line = line;
    sim.waiting++;
    fiber_yield();
}

static bool lanes_are_there(unsigned first, unsigned mask, const char *name)
{
    for (unsigned i = 0; i < LANES; i++) {
        if (!(mask >> i & 1u)) {
            continue;
        }
        if (first + i >= sim.threads.size() || sim.threads[first + i].state == RETURNED) {
            die("%s: mask %08x names lane %u, which is not there", name, mask, i);
        }
        const thread &t = sim.threads[first + i];
        if (t.state != IN_COLLECTIVE) {
            return false;
        }
        if (t.mask != mask || t.collective != name) {
            die("%s with mask %08x meets %s with mask %08x", name, mask, t.collective,
                t.mask);
        }
    }
    return true;
}

static void release_lanes(unsigned first, unsigned mask)
{
    uint64_t values[LANES];
    memset(values, POISON, sizeof values);
    for (unsigned i = 0; i < LANES; i++) {
        if (mask >> i & 1u) {
            values[i] = sim.threads[first + i].value;
        }
    }
    for (unsigned i = 0; i < LANES; i++) {
        if (mask >> i & 1u) {
            memcpy(sim.threads[first + i].values, values, sizeof values);
            sim.threads[first + i].state = READY;
        }
    }
}

const uint64_t *cudasim::collective(const char *name, unsigned mask, uint64_t value)
{
    unsigned first = sim.current - sim.current % LANES;
    thread &t = self();
    if (!(mask >> (sim.current - first) & 1u)) {
        die("%s: mask %08x lacks the lane that names it", name, mask);
    }
    t.state = IN_COLLECTIVE;
    t.collective = name;
    t.mask = mask;
    t.value = value;
    if (lanes_are_there(first, mask, name)) {
        release_lanes(first, mask);
    } else {
        fiber_yield();
    }
    return t.values;
}

int cudasim::lane()
{
    return (int)(sim.current % LANES);
}

/* On a multiple of 16, as on a device. */
void *cudasim::dynamic_shared()
{
    uintptr_t address = (uintptr_t)sim.dynamic.data();
    return (void *)((address + 15) / 16 * 16);
}
