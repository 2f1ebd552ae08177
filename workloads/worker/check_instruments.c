#include "workloads/worker/check_instruments.h"

#include <string.h>

#include "workloads/instruments/exact_sum.h"

struct reading reading_of_device(struct run *run, const struct tensor *tensor)
{
    struct reading reading = {
        .digest = run->backend->digest(run, tensor),
        .sum = run->backend->exact_sum(run, tensor),
    };

    return reading;
}

struct reading reading_of_copy(const struct tensor *tensor, const void *copy)
{
    struct exact_sum sum;

    exact_sum_init(&sum);
    exact_sum_add(&sum, (int)tensor->dtype, copy, tensor_elements(tensor));
    struct reading reading = {
        .digest = digest_tensor(copy, (int)tensor->dtype, dtype_bytes(tensor->dtype),
                                tensor->rank, tensor->shape, 1),
        .sum = exact_sum_round(&sum),
    };
    return reading;
}

static uint64_t bits(double value)
{
    uint64_t word;

    memcpy(&word, &value, sizeof(word));
    return word;
}

bool reading_equal(struct reading a, struct reading b)
{
    return digest_equal(a.digest, b.digest) && bits(a.sum) == bits(b.sum);
}

void reading_emit(struct emit *emit, struct reading device, struct reading copy)
{
    emit_digest(emit, "digest", device.digest);
    emit_digest(emit, "digest_of_copy", copy.digest);
    emit_bits(emit, "weight_sum", device.sum);
    emit_bits(emit, "weight_sum_of_copy", copy.sum);
    emit_bool(emit, "instruments_ok", reading_equal(device, copy));
}
