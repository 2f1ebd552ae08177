/* What circumstances do to memory: the pattern where nobody wrote, in libc's heap and in
 * the device's memory, and allocations that move and keep their alignment. */
#include "workloads/worker/circumstances.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "workloads/worker/run.h"

enum { BYTES = 1000, ALLOCATIONS = 32 };
static const struct circumstances none;
static const struct circumstances poison = { .is_poisoned = true, .pattern = 0x44332211 };

static struct workload_variant variant = { .name = "v" };
static struct workload workload = { .name = "w", .variants = &variant };

static void init(struct run *run, const struct circumstances *circumstances)
{
    struct args args = { .workload = &workload,
                         .variant = &variant,
                         .threads = 1,
                         .circumstances = *circumstances };
    run_init(run, &args, backend_linked(stderr));
    run->backend->open(run);
}

static void assert_pattern(const volatile unsigned char *bytes, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++) {
        assert_int_equal(bytes[i], 0x11 * (1 + i % 4));
    }
}

static void test_scratch_is_poisoned(void **state)
{
    struct run run;
    unsigned char *plain;
    unsigned char *memory;

    (void)state;
    init(&run, &none);
    plain = run_alloc(&run, BYTES);
    init(&run, &poison);
    memory = run_alloc(&run, BYTES);
    assert_int_equal(plain[BYTES - 1], 0xa5);
    assert_pattern(memory, 0, BYTES);
    free(memory);
    free(plain);
    circumstances_set(&none);
}

/* In the sanitizers' builds the heap is theirs. */
#ifdef REPROD_HEAP
static void *volatile kept; /* so that no allocation is optimised away */

static void test_heap_is_poisoned(void **state)
{
    unsigned char *memory;
    unsigned char *zeros;
    const volatile unsigned char *volatile freed; /* that it is, no compiler can tell */

    (void)state;
    circumstances_set(&poison);
    memory = kept = malloc(BYTES);
    assert_pattern(memory, 0, BYTES);
    memset(memory, 7, BYTES);
    memory = kept = realloc(memory, 2 * BYTES);
    assert_int_equal(memory[0], 7);
    assert_int_equal(memory[BYTES - 1], 7);
    assert_pattern(memory, BYTES + 64, 2 * BYTES);
    zeros = kept = calloc(BYTES, 1);
    assert_int_equal(zeros[0] | zeros[BYTES - 1], 0);
    free(zeros);
    freed = memory;
    kept = malloc(16); /* what is freed is not the end of the heap */
    free(memory);
    assert_pattern(freed, 64, 2 * BYTES);
    free(kept);
    circumstances_set(&none);
}

static void test_heap_keeps_its_promises(void **state)
{
    volatile size_t most = SIZE_MAX - 100;
    void *volatile block;

    (void)state;
    circumstances_set(&(struct circumstances){ .is_jittered = true, .jitter = 3 });
    for (int i = 0; i < ALLOCATIONS; i++) {
        void *memory = NULL;
        assert_int_equal(posix_memalign(&memory, 256, BYTES), 0);
        assert_int_equal((uintptr_t)memory % 256, 0);
        free(memory);
    }
    block = malloc(most); /* an allocation that is not used may be left out */
    assert_null(block);
    assert_int_not_equal(posix_memalign(&(void *){ NULL }, 3, 8), 0);
    circumstances_set(&none);
}
#endif

/* Where the allocations of a run with that seed are, within 64 KiB of the block. */
static void distances(uint64_t seed, size_t ret_distances[ALLOCATIONS])
{
    circumstances_set(&(struct circumstances){ .is_jittered = true, .jitter = seed });
    for (int i = 0; i < ALLOCATIONS; i++) {
        ret_distances[i] = circumstances_jitter((uint64_t)i, 64, 64 << 10);
        assert_int_equal(ret_distances[i] % 64, 0);
        assert_true(ret_distances[i] < 64 << 10);
    }
    circumstances_set(&none);
}

static void test_jitter_is_drawn_from_its_seed(void **state)
{
    size_t one[ALLOCATIONS], again[ALLOCATIONS], other[ALLOCATIONS];

    (void)state;
    distances(1, one);
    distances(1, again);
    distances(2, other);
    assert_memory_equal(one, again, sizeof one);
    assert_memory_not_equal(one, other, sizeof one);
    assert_true(one[0] != one[1] || one[1] != one[2]);
    assert_int_equal(circumstances_jitter(0, 64, 64 << 10), 0);
}

static void test_tensors_move_and_stay_aligned(void **state)
{
    static char *blocks[ALLOCATIONS];
    struct run run;
    size_t pages = 0; /* the leak checker sees them here */
    (void)state;
    init(&run, &(struct circumstances){ .is_jittered = true, .jitter = 1 });
    for (int i = 0; i < ALLOCATIONS; i++) {
        blocks[i] = run_alloc(&run, BYTES);
        assert_int_equal((uintptr_t)blocks[i] % 64, 0);
        memset(blocks[i], 1, BYTES);
        pages += (uintptr_t)blocks[i] % 4096 != (uintptr_t)blocks[0] % 4096;
    }
    assert_true(pages > 0);
    circumstances_set(&none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scratch_is_poisoned),
#ifdef REPROD_HEAP
        cmocka_unit_test(test_heap_is_poisoned),
        cmocka_unit_test(test_heap_keeps_its_promises),
#endif
        cmocka_unit_test(test_jitter_is_drawn_from_its_seed),
        cmocka_unit_test(test_tensors_move_and_stay_aligned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
