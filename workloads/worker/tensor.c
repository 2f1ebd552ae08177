/* What is known of every dtype, and the size of a tensor (workloads/workload.h). */
#include "workloads/workload.h"

static const struct {
    const char *name;
    size_t bytes;
} dtypes[DTYPE_COUNT] = {
    [DTYPE_FLOAT32] = { "float32", 4 }, [DTYPE_FLOAT64] = { "float64", 8 },
    [DTYPE_FLOAT16] = { "float16", 2 }, [DTYPE_BFLOAT16] = { "bfloat16", 2 },
    [DTYPE_INT32] = { "int32", 4 },     [DTYPE_INT64] = { "int64", 8 },
    [DTYPE_UINT8] = { "uint8", 1 },
};

const char *dtype_name(enum dtype dtype)
{
    return dtypes[dtype].name;
}

size_t dtype_bytes(enum dtype dtype)
{
    return dtypes[dtype].bytes;
}

int64_t tensor_elements(const struct tensor *tensor)
{
    int64_t elements = 1;

    for (int i = 0; i < tensor->rank; i++) {
        elements *= tensor->shape[i];
    }
    return elements;
}
