/* Two captured tensors: a dtype (the first byte), and as many bytes for each. */
#include <string.h>

#include "daemon/trace/difference.h"
#include "tests/fuzz/fuzz.h"

static const char *const dtypes[] = { "float16", "bfloat16", "float32", "float64",
                                      "int32",   "int64",    "uint8" };
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

static void check(const struct difference *d)
{
    FUZZ_CHECK(d->differ >= 0 && d->differ <= d->elements);
    FUZZ_CHECK((d->first == -1) == (d->differ == 0));
    FUZZ_CHECK(d->first <= d->last && d->last < d->elements);
    FUZZ_CHECK(d->period == 0 || (d->residues > 0 && d->residues < d->period));
}

static void run(const uint8_t *data, size_t size)
{
    const char *dtype = dtypes[size ? data[0] % DTYPES : 0];
    size_t bytes = difference_dtype_bytes(dtype);
    int64_t elements = bytes && size ? (int64_t)((size - 1) / 2 / bytes) : 0;
    const uint8_t *a = size ? data + 1 : data;
    struct difference same, other;

    if (bytes) {
        difference_compute(dtype, elements, a, a, &same);
        FUZZ_CHECK(same.differ == 0 && same.max_ulp == 0);
        difference_compute(dtype, elements, a, a + (size_t)elements * bytes, &other);
        check(&other);
    }
}

FUZZ_TARGET("difference", run);
