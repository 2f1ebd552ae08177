#include "workloads/worker/circumstances.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "workloads/instruments/bits.h"

static struct circumstances now;

void circumstances_set(const struct circumstances *circumstances)
{
    now = *circumstances;
}

const struct circumstances *circumstances_now(void)
{
    return &now;
}

uint64_t circumstances_random(void)
{
    uint64_t value;
    struct timespec time;

    if (getrandom(&value, sizeof value, 0) == sizeof value) {
        return value;
    }
    clock_gettime(CLOCK_MONOTONIC, &time);
    return mix64(((uint64_t)getpid() << 32) ^ (uint64_t)time.tv_nsec);
}

size_t circumstances_jitter(uint64_t count, size_t alignment, size_t limit)
{
    if (!now.is_jittered) {
        return 0;
    }
    return mix64(now.jitter ^ mix64(count)) % (limit / alignment) * alignment;
}

void circumstances_emit(struct emit *emit)
{
    char text[24];

    if (now.contention == 0 && !now.is_poisoned && !now.is_jittered) {
        return;
    }
    emit_object(emit, "circumstances");
    if (now.is_jittered) {
        snprintf(text, sizeof text, "%" PRIu64, now.jitter);
        emit_string(emit, "allocation_jitter", text);
    }
    if (now.contention) {
        emit_int(emit, "contention", now.contention);
    }
    if (now.is_poisoned) {
        snprintf(text, sizeof text, "%08" PRIx32, now.pattern);
        emit_string(emit, "memory_poison", text);
    }
    emit_object_end(emit);
}
