#include "tests/simulator/fiber.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define FIBER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBER_ASAN 1
#endif
#endif
#ifdef FIBER_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace
{
enum { STACK_BYTES = 256 * 1024, GUARD_BYTES = 4096, COLOUR_BYTES = 1088 };

/* One side of a switch. */
struct side {
#if defined(__x86_64__)
    void *stack_pointer;
#else
    ucontext_t context;
#endif
    const void *stack; /* lowest address; the scheduler's is learnt from ASan */
    size_t stack_bytes;
};
} // namespace

struct fiber {
    struct side side;
    void (*body)();
    bool running; /* the body has not returned */
};

static struct side scheduler;
static struct fiber *current;
/* Outlives static destructors, behind which AddressSanitizer looks for lost memory. */
static std::vector<struct fiber *> &idle = *new std::vector<struct fiber *>();

#if defined(__x86_64__)
/* Saves what the System V ABI lets a function keep, and continues where TO was saved. */
extern "C" void fiber_switch_stack(void **from, void *to);
asm(".text\n"
    ".type fiber_switch_stack,@function\n"
    "fiber_switch_stack:\n"
    " pushq %rbp\n pushq %rbx\n pushq %r12\n pushq %r13\n pushq %r14\n pushq %r15\n"
    " movq %rsp, (%rdi)\n"
    " movq %rsi, %rsp\n"
    " popq %r15\n popq %r14\n popq %r13\n popq %r12\n popq %rbx\n popq %rbp\n"
    " ret\n"
    ".size fiber_switch_stack, .-fiber_switch_stack\n");
#endif

static void switch_sides(struct side *from, struct side *to)
{
#ifdef FIBER_ASAN
    void *fake;
    __sanitizer_start_switch_fiber(&fake, to->stack, to->stack_bytes);
#endif
#if defined(__x86_64__)
    fiber_switch_stack(&from->stack_pointer, to->stack_pointer);
#else
    swapcontext(&from->context, &to->context);
#endif
#ifdef FIBER_ASAN
    const void *left;
    size_t left_bytes;
    __sanitizer_finish_switch_fiber(fake, &left, &left_bytes);
    if (from != &scheduler) { /* threads take turns at being it */
        scheduler.stack = left;
        scheduler.stack_bytes = left_bytes;
    }
#endif
}

/* The bottom of every fiber's stack: one body after the other, for ever. */
static void fiber_main()
{
#ifdef FIBER_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &scheduler.stack, &scheduler.stack_bytes);
#endif
    for (;;) {
        current->body();
        current->running = false;
        fiber_yield();
    }
}

#if defined(__x86_64__)
/* As if fiber_switch_stack had been called by fiber_main's caller: six registers, the
 * address to return to, and one word more, since a function starts 8 bytes off a multiple
 * of 16. */
static void prepare(struct fiber *fiber, char *top)
{
    void **words = (void **)top - 8;
    for (int i = 0; i < 8; i++) {
        words[i] = nullptr;
    }
    words[6] = (void *)fiber_main;
    fiber->side.stack_pointer = words;
}
#else
static void prepare(struct fiber *fiber, char *)
{
    getcontext(&fiber->side.context);
    fiber->side.context.uc_stack.ss_sp = (void *)fiber->side.stack;
    fiber->side.context.uc_stack.ss_size = fiber->side.stack_bytes;
    makecontext(&fiber->side.context, fiber_main, 0);
}
#endif

/* Where a stack begins differs from fiber to fiber: in the same lines of a cache they
 * would throw each other out at every switch. */
static size_t colour()
{
    static size_t next;
    next = (next + COLOUR_BYTES) % (STACK_BYTES / 4);
    return next;
}

static struct fiber *fiber_new()
{
    char *stack = (char *)mmap(nullptr, STACK_BYTES, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED || mprotect(stack, GUARD_BYTES, PROT_NONE) != 0) {
        perror("cudasim: no stack for a fiber");
        abort();
    }
    struct fiber *fiber = new struct fiber();
    fiber->side.stack = stack + GUARD_BYTES;
    fiber->side.stack_bytes = STACK_BYTES - GUARD_BYTES;
    prepare(fiber, stack + STACK_BYTES - colour());
    return fiber;
}

struct fiber *fiber_start(void (*body)())
{
    struct fiber *fiber;
    if (idle.empty()) {
        fiber = fiber_new();
    } else {
        fiber = idle.back();
        idle.pop_back();
    }
    fiber->body = body;
    fiber->running = true;
    return fiber;
}

bool fiber_resume(struct fiber *fiber)
{
    current = fiber;
    switch_sides(&scheduler, &fiber->side);
    if (!fiber->running) {
        idle.push_back(fiber);
    }
    return fiber->running;
}

void fiber_yield()
{
    switch_sides(&current->side, &scheduler);
}
