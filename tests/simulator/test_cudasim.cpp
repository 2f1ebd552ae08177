/* The CUDA backend on the simulator against the instruments of the CPU: the same fill,
 * digest and exact sum, for every dtype, odd lengths and awkward values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

extern "C" {
#include <cmocka.h>
}

#include "cuda/kernels/layout.h"
#include "cuda/worker/device.h"
#include "cuda/worker/digest.h"
#include "cuda/worker/exact_sum.h"
#include "cuda/worker/fill.h"
#include "workloads/instruments/bits.h"
#include "workloads/instruments/exact_sum.h"
#include "workloads/worker/circumstances.h"
#include "workloads/worker/fill_block.h"

static const int64_t lengths[] = { 1,    2,    3,    31,    63,    255,
                                   1023, 1024, 1025, 16384, 16385, 100003 };

extern "C" const struct backend *backend_linked(FILE *log); /* registry.h */

static struct run run;

static struct tensor tensor_new(enum dtype dtype, int64_t length)
{
    struct tensor t = { "t", dtype, 1, { length }, NULL };
    size_t bytes = (size_t)length * dtype_bytes(dtype);
    assert_int_equal(cudaMalloc(&t.data, bytes), cudaSuccess);
    return t;
}

/* Random bits: NaNs, infinities and subnormals among them. */
static void fill_with_bits(struct tensor *t, uint64_t salt)
{
    size_t bytes = (size_t)tensor_elements(t) * dtype_bytes(t->dtype);
    for (size_t i = 0; i < bytes; i++) {
        ((unsigned char *)t->data)[i] = (unsigned char)mix64(salt + i);
    }
}

static void expect_same(const struct tensor *t)
{
    size_t bytes = dtype_bytes(t->dtype);
    struct digest expected =
        digest_tensor(t->data, (int)t->dtype, bytes, t->rank, t->shape, 1);
    assert_true(digest_equal(digest_device(&run, t), expected));
    struct exact_sum sum;
    exact_sum_init(&sum);
    exact_sum_add(&sum, (int)t->dtype, t->data, tensor_elements(t));
    assert_true(f64_bits(exact_sum_device(&run, t)) == f64_bits(exact_sum_round(&sum)));
}

static void each_tensor(void (*test)(struct tensor *t))
{
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        for (int i = 0; i < COUNT_OF(lengths); i++) {
            struct tensor t = tensor_new((enum dtype)dtype, lengths[i]);
            test(&t);
            cudaFree(t.data);
        }
    }
}

static void check_bits(struct tensor *t)
{
    fill_with_bits(t, (uint64_t)tensor_elements(t));
    expect_same(t);
}

static void test_random_bits(void **)
{
    each_tensor(check_bits);
}

static bool is_integer(enum dtype dtype)
{
    return dtype == DTYPE_INT32 || dtype == DTYPE_INT64 || dtype == DTYPE_UINT8;
}

static void check_fill(struct tensor *t)
{
    struct tensor host = *t;
    size_t bytes = (size_t)tensor_elements(t) * dtype_bytes(t->dtype);
    host.data = malloc(bytes);
    for (int fill = FILL_UNIFORM; fill <= FILL_INDEX; fill++) {
        struct filling filling = { (enum fill)fill, 7, 0x123456789abcdefu, 200 };
        if (is_integer(t->dtype) && fill != FILL_INDEX) {
            continue;
        }
        fill_tensor(&run, t, &filling);
        for (int64_t i = 0; i < fill_blocks(&host, &filling, tensor_elements(&host));
             i++) {
            fill_block(&host, &filling, i, tensor_elements(&host));
        }
        assert_memory_equal(t->data, host.data, bytes);
        expect_same(t);
    }
    free(host.data);
}

static void test_fills(void **)
{
    each_tensor(check_fill);
}

/* Each value is a bit pattern of float32, which float64 and the others take as theirs. */
static void expect_sum_of(enum dtype dtype, const uint64_t *bits, int64_t length)
{
    struct tensor t = tensor_new(dtype, length);
    size_t size = dtype_bytes(dtype);
    for (int64_t i = 0; i < length; i++) {
        memcpy((char *)t.data + (size_t)i * size, &bits[i], size);
    }
    expect_same(&t);
    cudaFree(t.data);
}

static void test_special_values(void **)
{
    static const struct {
        enum dtype dtype;
        uint64_t zero, negative_zero, infinity, negative_infinity, nan, largest, smallest;
    } formats[] = {
        { DTYPE_FLOAT32, 0, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00001, 0x7f7fffff,
          1 },
        { DTYPE_FLOAT64, 0, 0x8000000000000000, 0x7ff0000000000000, 0xfff0000000000000,
          0x7ff8000000000001, 0x7fefffffffffffff, 1 },
        { DTYPE_FLOAT16, 0, 0x8000, 0x7c00, 0xfc00, 0x7e01, 0x7bff, 1 },
        { DTYPE_BFLOAT16, 0, 0x8000, 0x7f80, 0xff80, 0x7fc1, 0x7f7f, 1 },
    };
    for (int i = 0; i < COUNT_OF(formats); i++) {
        uint64_t z = formats[i].zero, nz = formats[i].negative_zero;
        uint64_t inf = formats[i].infinity, ninf = formats[i].negative_infinity;
        uint64_t big = formats[i].largest, tiny = formats[i].smallest;
        const uint64_t lists[][4] = {
            { nz, nz, nz, nz },     { nz, z, nz, nz },     { inf, z, tiny, big },
            { ninf, ninf, z, big }, { inf, ninf, z, z },   { formats[i].nan, inf, z, z },
            { big, big, big, big }, { big, nz, tiny, nz }, { tiny, tiny, tiny, nz },
        };
        for (int list = 0; list < COUNT_OF(lists); list++) {
            for (int64_t length = 1; length <= 4; length++) {
                expect_sum_of(formats[i].dtype, lists[list], length);
            }
        }
    }
}

/* Many equal values: no bin of a chunk, and no count, overflows. */
static void test_many_largest(void **)
{
    static const uint32_t patterns[] = { 0x7f7fffff, 0x00ffffff, 0x007fffff };
    for (int i = 0; i < COUNT_OF(patterns); i++) {
        struct tensor t = tensor_new(DTYPE_FLOAT32, 3000000);
        for (int64_t j = 0; j < tensor_elements(&t); j++) {
            ((uint32_t *)t.data)[j] = patterns[i];
        }
        expect_same(&t);
        cudaFree(t.data);
    }
}

static void check_poison(struct tensor *t)
{
    size_t bytes = (size_t)tensor_elements(t) * dtype_bytes(t->dtype);
    fill_poison(&run, t->data, bytes, 0x04030201u);
    for (size_t i = 0; i < bytes; i++) {
        assert_int_equal(((unsigned char *)t->data)[i], i % 4 + 1);
    }
}

static void test_poison(void **)
{
    each_tensor(check_poison);
}

static int prepare(void **)
{
    device_open(&run);
    digest_device_prepare();
    exact_sum_device_prepare();
    return 0;
}

/* The variants that need another order run with a library only, so this is the one place
 * where it is looked at. */
static void test_layouts(void **)
{
    enum { BATCHES = 3, ROWS = 37, COLUMNS = 70, COUNT = BATCHES * ROWS * COLUMNS };
    struct tensor from = tensor_new(DTYPE_FLOAT32, COUNT);
    struct tensor to = tensor_new(DTYPE_FLOAT32, COUNT);
    float *x = (float *)from.data, *y = (float *)to.data;
    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)i;
    }
    layout_transpose(x, y, BATCHES, ROWS, COLUMNS);
    for (int b = 0; b < BATCHES; b++) {
        for (int r = 0; r < ROWS; r++) {
            for (int c = 0; c < COLUMNS; c++) {
                assert_true(y[(b * COLUMNS + c) * ROWS + r] ==
                            x[(b * ROWS + r) * COLUMNS + c]);
            }
        }
    }
    layout_reverse(x, y, BATCHES, ROWS, COLUMNS);
    for (int b = 0; b < BATCHES; b++) {
        for (int r = 0; r < ROWS; r++) {
            for (int c = 0; c < COLUMNS; c++) {
                assert_true(y[(c * ROWS + r) * BATCHES + b] ==
                            x[(b * ROWS + r) * COLUMNS + c]);
            }
        }
    }
    cudaFree(from.data);
    cudaFree(to.data);
}

/* Libraries rely on cudaMalloc's alignment, so moved allocations keep it. */
static void test_moved_allocations_are_aligned(void **)
{
    struct circumstances jitter = {};
    bool moved = false;

    jitter.is_jittered = true;
    jitter.jitter = 5;
    run.backend = backend_linked(stderr);
    assert_non_null(run.backend);
    circumstances_set(&jitter);
    for (int i = 0; i < 64; i++) {
        uintptr_t at = (uintptr_t)run_alloc(&run, 1000);
        assert_int_equal(at % 256, 0);
        moved = moved || at % 512 != 0;
    }
    jitter.is_jittered = false;
    circumstances_set(&jitter);
    assert_true(moved);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_bits),
        cmocka_unit_test(test_fills),
        cmocka_unit_test(test_special_values),
        cmocka_unit_test(test_many_largest),
        cmocka_unit_test(test_poison),
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_moved_allocations_are_aligned),
    };
    return cmocka_run_group_tests(tests, prepare, NULL);
}
