/* A workload that tests the rest: says what its sensors say. */
#include <string.h>
#include <unistd.h>

#include "tests/selftest/selftest.h"
#include "workloads/worker/backend.h"

static const struct {
    const char *variant, *start, *end;
} samples[] = {
    { "ordered",
      "{\"sm_clock_mhz\":1980,\"power_watts\":118.34,\"throttle_reasons\":[\"idle\"]}",
      "{\"sm_clock_mhz\":1755,\"throttle_reasons\":[],\"row_remap_pending\":false}" },
    { "end_only", "null", "{\"cause\":\"the GPU is lost (15)\"}" },
    { "no_object", NULL, "[1980]" },
    { "nested", "{\"gpu\":{\"sm_clock_mhz\":1980}}", NULL },
    { "too_large", NULL, NULL },
};

static const char *too_large(void)
{
    static char text[6000] = "{\"cause\":\"";
    size_t begin = strlen(text);

    memset(text + begin, 'x', 5000);
    memcpy(text + begin + 5000, "\"}", 3);
    return text;
}

static void setup(struct run *run)
{
    selftest_setup(run);
    for (int i = 0; i < COUNT_OF(samples); i++) {
        struct selftest_claims claims;

        if (strcmp(run->variant->name, samples[i].variant) != 0) {
            continue;
        }
        claims = selftest_honest_claims(run);
        selftest_telemetry = samples[i].start;
        selftest_write_start(run, claims.device);
        for (int k = 0; k < run->iterations; k++) {
            selftest_write_iteration(k);
        }
        selftest_telemetry = i == COUNT_OF(samples) - 1 ? too_large() : samples[i].end;
        selftest_write_end(run, &claims);
        _exit(0);
    }
}

static const struct workload_variant variants[] = {
    SELFTEST_CONTROL,
    { SELFTEST_VARIANT("ordered", "telemetry at start and end"),
      .compute = selftest_compute },
    { SELFTEST_VARIANT("end_only", "telemetry at the end"), .compute = selftest_compute },
    { SELFTEST_VARIANT("no_object", "telemetry that is a list"),
      .compute = selftest_compute },
    { SELFTEST_VARIANT("nested", "telemetry with an object in it"),
      .compute = selftest_compute },
    { SELFTEST_VARIANT("too_large", "telemetry of 5 KB"), .compute = selftest_compute },
};
static const struct workload selftest_telemetries = {
    SELFTEST_WORKLOAD(selftest_telemetry, "says what its sensors say", variants),
    .setup = setup,
};
WORKLOAD_REGISTER(selftest_telemetries);
