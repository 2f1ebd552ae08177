#include "cuda/nvml/telemetry.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cuda/nvml/reader.h"
#include "cuda/nvml/session.h"

const char *nvml_throttle_name(int bit)
{
    static const char *const names[] = {
        "idle",
        "application_clocks",
        "software_power_cap",
        "hardware_slowdown",
        "sync_boost",
        "software_thermal",
        "hardware_thermal",
        "hardware_power_brake",
        "display_clocks",
    };

    return bit < (int)(sizeof names / sizeof *names) ? names[bit] : NULL;
}

/* Sensors belong to the whole GPU, also where UUID names an instance on it. */
static int find_gpu(const struct nvml_api *api, const char *uuid,
                    struct nvml_handle **ret_gpu)
{
    char other[FACT_TEXT_SIZE];
    struct nvml_handle *gpu;
    int code = NVML_CALL(api, DeviceGetHandleByUUID, uuid, ret_gpu);

    if (code != NVML_OK && strncmp(uuid, "GPU-", 4) == 0) {
        snprintf(other, sizeof other, "MIG-%.90s", uuid + 4);
        if (NVML_CALL(api, DeviceGetHandleByUUID, other, ret_gpu) != NVML_OK) {
            return code;
        }
        code = NVML_OK;
    }
    if (code == NVML_OK && NVML_CALL(api, DeviceGetDeviceHandleFromMigDeviceHandle,
                                     *ret_gpu, &gpu) == NVML_OK) {
        *ret_gpu = gpu;
    }
    return code;
}

static struct fact clock_of(struct reader *r, int clock)
{
    unsigned mhz = UINT_MAX;
    int code = NVML_CALL(r->api, DeviceGetClockInfo, r->handle, clock, &mhz);

    return reader_fact(reader_ok(r, code) ? mhz : UINT_MAX);
}

static struct fact temperature_of(struct reader *r)
{
    unsigned celsius = UINT_MAX;
    int code = NVML_CALL(r->api, DeviceGetTemperature, r->handle, NVML_TEMPERATURE_GPU,
                         &celsius);

    return reader_fact(reader_ok(r, code) ? celsius : UINT_MAX);
}

static struct fact throttle_of(struct reader *r)
{
    unsigned long long bits = ULLONG_MAX;
    int code = NVML_CALL(r->api, DeviceGetCurrentClocksEventReasons, r->handle, &bits);

    if (code == NVML_FUNCTION_NOT_FOUND) { /* its name before driver 535 */
        code = NVML_CALL(r->api, DeviceGetCurrentClocksThrottleReasons, r->handle, &bits);
    }
    return reader_fact_long(reader_ok(r, code) ? bits : ULLONG_MAX);
}

static void read_rows(struct reader *r, struct nvml_telemetry *t)
{
    unsigned rows[2];
    unsigned pending = UINT_MAX;
    unsigned failure = UINT_MAX;

    if (reader_ok(r, NVML_CALL(r->api, DeviceGetRemappedRows, r->handle, &rows[0],
                               &rows[1], &pending, &failure))) {
        t->remap_pending = reader_fact(pending);
        t->remap_failure = reader_fact(failure);
    }
}

static void read_sample(const struct nvml_api *api, void *record)
{
    struct nvml_telemetry *t = record;
    struct reader r = { .api = api, .cause = t->cause };
    int code = find_gpu(api, t->uuid, &r.handle);

    if (code != NVML_OK) {
        nvml_describe(code, t->cause);
        return;
    }
    t->sm_mhz = clock_of(&r, NVML_CLOCK_SM);
    t->memory_mhz = clock_of(&r, NVML_CLOCK_MEMORY);
    t->celsius = temperature_of(&r);
    t->milliwatts = reader_number(&r, api->DeviceGetPowerUsage);
    t->throttle = throttle_of(&r);
    t->since_load = reader_ecc(&r, NVML_VOLATILE);
    t->in_life = reader_ecc(&r, NVML_AGGREGATE);
    read_rows(&r, t);
}

void nvml_telemetry_read(const char *uuid, int deadline_ms,
                         struct nvml_telemetry *ret_telemetry)
{
    char cause[NVML_CAUSE_SIZE];

    memset(ret_telemetry, 0, sizeof *ret_telemetry);
    snprintf(ret_telemetry->uuid, sizeof ret_telemetry->uuid, "%s", uuid);
    if (!nvml_session_read(read_sample, ret_telemetry, sizeof *ret_telemetry, deadline_ms,
                           cause)) {
        memcpy(ret_telemetry->cause, cause, sizeof cause);
    }
}
