/* Sums by bins, as a device makes them, are the sums of exact_sum_add: over every
 * exponent and both signs of each dtype, and for each kind of special value. */
#include "workloads/instruments/exact_sum_bins.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "workloads/instruments/bits.h"
#include "workloads/workload.h"

static uint64_t low[EXACT_SUM_BINS_MAX], high[EXACT_SUM_BINS_MAX];

static uint64_t load(const void *data, int64_t i, size_t bytes)
{
    uint64_t bits = 0;

    memcpy(&bits, (const char *)data + (size_t)i * bytes, bytes);
    return bits;
}

static void add_integer(int dtype, uint64_t bits)
{
    int64_t value = dtype == DTYPE_INT32 ? (int32_t)bits : (int64_t)bits;

    low[0] += (uint64_t)value & 0xffffffffu;
    high[0] += (uint64_t)(value >> 32);
}

/* What a device does. */
static uint64_t sum_by_bins(int dtype, const void *data, int64_t n)
{
    struct exact_sum_format format = exact_sum_format_of(dtype);
    struct exact_sum sum;
    uint32_t seen = 0;

    memset(low, 0, sizeof low);
    memset(high, 0, sizeof high);
    for (int64_t i = 0; i < n; i++) {
        uint64_t bits = load(data, i, dtype_bytes((enum dtype)dtype));

        if (format.exponent_bits == 0) {
            add_integer(dtype, bits);
            seen |= EXACT_SUM_OTHER;
        } else {
            struct exact_sum_parts parts = exact_sum_take_apart(format, bits);

            assert_true(parts.bin < EXACT_SUM_BINS_MAX);
            assert_true(parts.low < (uint64_t)1 << format.split);
            low[parts.bin] += parts.low;
            high[parts.bin] += parts.high;
            seen |= parts.seen;
        }
    }
    exact_sum_init(&sum);
    exact_sum_add_bins(&sum, dtype, low, high, seen);
    return f64_bits(exact_sum_round(&sum));
}

static uint64_t sum_directly(int dtype, const void *data, int64_t n)
{
    struct exact_sum sum;

    exact_sum_init(&sum);
    exact_sum_add(&sum, dtype, data, n);
    return f64_bits(exact_sum_round(&sum));
}

static void assert_same(int dtype, const void *data, int64_t n)
{
    uint64_t expected = sum_directly(dtype, data, n), got = sum_by_bins(dtype, data, n);

    if (got != expected) {
        fail_msg("%s: %016llx instead of %016llx", dtype_name((enum dtype)dtype),
                 (unsigned long long)got, (unsigned long long)expected);
    }
}

static const int dtypes[] = { DTYPE_FLOAT32, DTYPE_FLOAT64, DTYPE_FLOAT16, DTYPE_BFLOAT16,
                              DTYPE_INT32,   DTYPE_INT64,   DTYPE_UINT8 };

static uint64_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state ^ *state >> 29;
}

/* One value alone shows what its bin stands for. */
static void test_each_exponent_and_sign(void **state)
{
    uint64_t random = 1;

    (void)state;
    for (int d = 0; d < COUNT_OF(dtypes); d++) {
        struct exact_sum_format format = exact_sum_format_of(dtypes[d]);
        uint64_t bins = (uint64_t)2 << format.exponent_bits;

        for (uint64_t bin = 0; format.exponent_bits && bin < bins; bin++) {
            uint64_t fraction =
                next(&random) & (((uint64_t)1 << format.fraction_bits) - 1);
            const uint64_t values[] = { bin << format.fraction_bits,
                                        bin << format.fraction_bits | fraction };

            assert_same(dtypes[d], &values[0], 1);
            assert_same(dtypes[d], &values[1], 1);
        }
    }
}

static void test_many(void **state)
{
    enum { VALUES = 5000 };
    static uint64_t words[VALUES];
    uint64_t random = 2;

    (void)state;
    for (int d = 0; d < COUNT_OF(dtypes); d++) {
        struct exact_sum_format format = exact_sum_format_of(dtypes[d]);
        size_t bytes = dtype_bytes((enum dtype)dtypes[d]);

        for (int i = 0; i < VALUES; i++) {
            uint64_t bits = next(&random);

            /* Finite: the lowest bit of the exponent is 0. */
            if (format.exponent_bits) {
                bits &= ~((uint64_t)1 << format.fraction_bits);
            }
            memcpy((char *)words + (size_t)i * bytes, &bits, bytes);
        }
        assert_same(dtypes[d], words, VALUES);
        assert_same(dtypes[d], words, 0);
        assert_same(dtypes[d], words, 1);
    }
}

/* Each alone and any two of them together, with and without a number. */
static void test_special_values(void **state)
{
    (void)state;
    for (int d = 0; d < COUNT_OF(dtypes); d++) {
        struct exact_sum_format format = exact_sum_format_of(dtypes[d]);
        size_t bytes = dtype_bytes((enum dtype)dtypes[d]);
        uint64_t last = ((uint64_t)1 << format.exponent_bits) - 1;
        uint64_t sign = (last + 1) << format.fraction_bits;
        uint64_t infinity = last << format.fraction_bits;
        uint64_t one = (last >> 1) << format.fraction_bits;
        const uint64_t values[] = { 0,           sign,     one,
                                    one | sign,  infinity, infinity | sign,
                                    infinity | 1 };

        for (int i = 0; format.exponent_bits && i < COUNT_OF(values); i++) {
            for (int j = 0; j < COUNT_OF(values); j++) {
                unsigned char pair[16];

                memcpy(pair, &values[i], bytes);
                memcpy(pair + bytes, &values[j], bytes);
                assert_same(dtypes[d], pair, 1);
                assert_same(dtypes[d], pair, 2);
            }
        }
    }
}

static sigjmp_buf before;

static void come_back(int signal)
{
    (void)signal;
    siglongjmp(before, 1);
}

/* Any sum of a type that is none would be a lie: it ends the process. */
static void test_no_sum_of_an_unknown_type(void **state)
{
    static const unsigned char data[16];
    struct sigaction comes_back = { .sa_handler = come_back }, was;

    (void)state;
    assert_int_equal(sigaction(SIGABRT, &comes_back, &was), 0);
    for (int i = 0; i < 4; i++) {
        if (sigsetjmp(before, 1) == 0) {
            if (i % 2) {
                exact_sum_format_of(DTYPE_COUNT + i / 2);
            } else {
                struct exact_sum sum = { 0 };

                exact_sum_add(&sum, DTYPE_COUNT + i / 2, data, 1);
            }
            fail_msg("type %d was summed", DTYPE_COUNT + i / 2);
        }
    }
    sigaction(SIGABRT, &was, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_sum_of_an_unknown_type),
        cmocka_unit_test(test_each_exponent_and_sign),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_special_values),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
