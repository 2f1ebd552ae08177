#include "cuda/nvml/device_facts.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cuda/nvml/reader.h"
#include "cuda/nvml/session.h"
#include "cuda/nvml/telemetry.h"

static void read_identity(struct reader *r, struct nvml_gpu *gpu)
{
    const struct nvml_api *api = r->api;
    struct nvml_pci pci = { .bus_id = "" };

    reader_text(r, api->DeviceGetUUID, &gpu->uuid);
    reader_text(r, api->DeviceGetSerial, &gpu->serial);
    reader_text(r, api->DeviceGetName, &gpu->name);
    reader_text(r, api->DeviceGetVbiosVersion, &gpu->vbios);
    if (reader_ok(r, NVML_CALL(api, DeviceGetPciInfo_v3, r->handle, &pci))) {
        gpu->pci_bus_id = reader_fact_text(pci.bus_id, sizeof pci.bus_id);
    }
    gpu->persistence = reader_number(r, api->DeviceGetPersistenceMode);
}

static void read_modes(struct reader *r, struct nvml_gpu *gpu)
{
    unsigned current = UINT_MAX;
    unsigned pending = UINT_MAX;

    if (reader_ok(r,
                  NVML_CALL(r->api, DeviceGetEccMode, r->handle, &current, &pending))) {
        gpu->ecc_mode = reader_fact(current);
        gpu->ecc_pending = reader_fact(pending);
    }
    current = pending = UINT_MAX;
    if (reader_ok(r,
                  NVML_CALL(r->api, DeviceGetMigMode, r->handle, &current, &pending))) {
        gpu->mig_mode = reader_fact(current);
        gpu->mig_pending = reader_fact(pending);
    }
}

static void read_rows(struct reader *r, struct nvml_gpu *gpu)
{
    unsigned correctable = UINT_MAX;
    unsigned uncorrectable = UINT_MAX;
    unsigned pending = UINT_MAX;
    unsigned failure = UINT_MAX;

    if (reader_ok(r, NVML_CALL(r->api, DeviceGetRemappedRows, r->handle, &correctable,
                               &uncorrectable, &pending, &failure))) {
        gpu->remapped_correctable = reader_fact(correctable);
        gpu->remapped_uncorrectable = reader_fact(uncorrectable);
        gpu->remap_pending = reader_fact(pending);
        gpu->remap_failure = reader_fact(failure);
    }
}

static void read_mig(struct reader *of_gpu, unsigned place, struct nvml_gpu *gpu)
{
    const struct nvml_api *api = of_gpu->api;
    struct reader r = { .api = api, .cause = of_gpu->cause };
    struct nvml_mig *mig = &gpu->migs[gpu->mig_count];

    /* "Not found" is a place without an instance. */
    if (!reader_ok(&r, NVML_CALL(api, DeviceGetMigDeviceHandleByIndex, of_gpu->handle,
                                 place, &r.handle))) {
        return;
    }
    reader_text(&r, api->DeviceGetUUID, &mig->uuid);
    reader_text(&r, api->DeviceGetName, &mig->name);
    mig->gpu_instance = reader_number(&r, api->DeviceGetGpuInstanceId);
    mig->compute_instance = reader_number(&r, api->DeviceGetComputeInstanceId);
    gpu->mig_count++;
}

static void read_gpu(const struct nvml_api *api, unsigned index, struct nvml_gpu *gpu)
{
    struct reader r = { .api = api, .cause = gpu->cause };
    int code = api->DeviceGetHandleByIndex_v2(index, &r.handle);
    struct fact places;

    if (code != NVML_OK) {
        nvml_describe(code, gpu->cause);
        return;
    }
    read_identity(&r, gpu);
    read_modes(&r, gpu);
    gpu->since_load = reader_ecc(&r, NVML_VOLATILE);
    gpu->in_life = reader_ecc(&r, NVML_AGGREGATE);
    read_rows(&r, gpu);
    if (gpu->mig_mode.known && gpu->mig_mode.value) {
        places = reader_number(&r, api->DeviceGetMaxMigDeviceCount);
        for (unsigned i = 0; i < places.value && gpu->mig_count < NVML_MIGS_MAX; i++) {
            read_mig(&r, i, gpu);
        }
    }
}

static void read_all(const struct nvml_api *api, void *record)
{
    struct nvml_inventory *inventory = record;
    char text[FACT_TEXT_SIZE] = "";
    unsigned count = 0;

    if (NVML_CALL(api, SystemGetNVMLVersion, text, sizeof text) == NVML_OK) {
        inventory->nvml = reader_fact_text(text, sizeof text - 1);
    }
    if (api->DeviceGetCount_v2(&count) != NVML_OK) {
        count = 0;
    }
    for (unsigned i = 0; i < count && i < NVML_GPUS_MAX; i++) {
        read_gpu(api, i, &inventory->gpus[inventory->gpu_count++]);
    }
}

bool nvml_inventory_read(struct nvml_inventory *ret_inventory, int deadline_ms,
                         char ret_cause[NVML_CAUSE_SIZE])
{
    memset(ret_inventory, 0, sizeof *ret_inventory);
    return nvml_session_read(read_all, ret_inventory, sizeof *ret_inventory, deadline_ms,
                             ret_cause);
}

static void read_driver(const struct nvml_api *api, void *record)
{
    struct fact_text *driver = record;
    char text[FACT_TEXT_SIZE] = "";

    if (NVML_CALL(api, SystemGetDriverVersion, text, sizeof text) == NVML_OK) {
        *driver = reader_fact_text(text, sizeof text - 1);
    }
}

/* The version of the driver, "580.65.06"; unknown where NVML does not tell it within
 * DEADLINE_MS. */
static struct fact_text nvml_driver_read(int deadline_ms)
{
    struct fact_text driver = { .known = false };
    char cause[NVML_CAUSE_SIZE]; /* telemetry tells it */

    nvml_session_read(read_driver, &driver, sizeof driver, deadline_ms, cause);
    return driver;
}

static bool is_uuid(const struct fact_text *fact, const char *uuid)
{
    const char *dash = strchr(uuid, '-');
    const char *own_dash = strchr(fact->value, '-');

    return fact->known && dash && own_dash && strcasecmp(dash, own_dash) == 0;
}

/* The GPU with that UUID, or the one that has a MIG instance with it (then ret_mig is the
 * instance, else NULL).  What stands before the first '-' ("GPU", "MIG") is not compared:
 * CUDA tells sixteen bytes, and not what they name.  NULL when there is none.  Borrowed:
 * valid as long as INVENTORY. */
static const struct nvml_gpu *nvml_inventory_find(const struct nvml_inventory *inventory,
                                                  const char *uuid,
                                                  const struct nvml_mig **ret_mig)
{
    *ret_mig = NULL;
    for (int i = 0; i < inventory->gpu_count; i++) {
        const struct nvml_gpu *gpu = &inventory->gpus[i];

        for (int m = 0; m < gpu->mig_count; m++) {
            if (is_uuid(&gpu->migs[m].uuid, uuid)) {
                *ret_mig = &gpu->migs[m];
                return gpu;
            }
        }
        if (is_uuid(&gpu->uuid, uuid)) {
            return gpu;
        }
    }
    return NULL;
}

/* Without persistence mode the driver wakes each GPU every time, which takes seconds
 * each. */
enum { INVENTORY_DEADLINE_MS = 30000, DRIVER_DEADLINE_MS = 4000 };
enum { TELEMETRY_DEADLINE_MS = 4000 };

const struct nvml_inventory *nvml_inventory_get(const char **ret_cause)
{
    static struct nvml_inventory inventory;
    static char cause[NVML_CAUSE_SIZE];
    static bool asked;
    static bool answered;

    if (!asked) {
        asked = true;
        answered = nvml_inventory_read(&inventory, INVENTORY_DEADLINE_MS, cause);
    }
    *ret_cause = cause;
    return answered ? &inventory : NULL;
}

void nvml_emit_versions(struct emit *emit)
{
    const char *cause;
    const struct nvml_inventory *inventory = nvml_inventory_get(&cause);

    if (inventory) {
        fact_emit_text(emit, "nvml", &inventory->nvml);
    }
}

void nvml_emit_driver(struct emit *emit)
{
    struct fact_text driver = nvml_driver_read(DRIVER_DEADLINE_MS);

    fact_emit_text(emit, "driver", &driver);
}

static void emit_ecc(struct emit *emit, const struct nvml_ecc *since_load,
                     const struct nvml_ecc *in_life)
{
    fact_emit(emit, "ecc_volatile_corrected", since_load->corrected);
    fact_emit(emit, "ecc_volatile_uncorrected", since_load->uncorrected);
    fact_emit(emit, "ecc_aggregate_corrected", in_life->corrected);
    fact_emit(emit, "ecc_aggregate_uncorrected", in_life->uncorrected);
}

static void emit_migs(struct emit *emit, const struct nvml_gpu *gpu,
                      const struct nvml_mig *own)
{
    fact_emit_bool(emit, "mig_mode", gpu->mig_mode);
    fact_emit_bool(emit, "mig_mode_pending", gpu->mig_pending);
    if (own) {
        fact_emit_text(emit, "mig_uuid", &own->uuid);
        fact_emit_text(emit, "mig_name", &own->name);
        fact_emit(emit, "mig_gpu_instance", own->gpu_instance);
        fact_emit(emit, "mig_compute_instance", own->compute_instance);
    } else if (gpu->mig_mode.known && gpu->mig_mode.value) {
        emit_array(emit, "mig_instances");
        for (int i = 0; i < gpu->mig_count; i++) {
            if (gpu->migs[i].uuid.known) {
                emit_string(emit, NULL, gpu->migs[i].uuid.value);
            }
        }
        emit_array_end(emit);
    }
}

static void emit_gpu(struct emit *emit, const struct nvml_gpu *gpu,
                     const struct nvml_mig *own)
{
    fact_emit_text(emit, "gpu_uuid", &gpu->uuid);
    fact_emit_text(emit, "gpu_name", &gpu->name);
    fact_emit_text(emit, "serial", &gpu->serial);
    fact_emit_text(emit, "vbios", &gpu->vbios);
    fact_emit_text(emit, "pci_bus_id", &gpu->pci_bus_id);
    fact_emit_bool(emit, "persistence_mode", gpu->persistence);
    fact_emit_bool(emit, "ecc_mode", gpu->ecc_mode);
    fact_emit_bool(emit, "ecc_mode_pending", gpu->ecc_pending);
    emit_migs(emit, gpu, own);
}

static void emit_health(struct emit *emit, const struct nvml_gpu *gpu, const char *cause)
{
    emit_object(emit, "health");
    if (gpu) {
        emit_ecc(emit, &gpu->since_load, &gpu->in_life);
        fact_emit(emit, "remapped_rows_correctable", gpu->remapped_correctable);
        fact_emit(emit, "remapped_rows_uncorrectable", gpu->remapped_uncorrectable);
        fact_emit_bool(emit, "row_remap_pending", gpu->remap_pending);
        fact_emit_bool(emit, "row_remap_failure", gpu->remap_failure);
        cause = gpu->cause;
    }
    if (*cause) {
        emit_string(emit, "cause", cause);
    }
    emit_object_end(emit);
}

void nvml_emit_device_attributes(struct emit *emit, const char *uuid)
{
    const char *cause;
    const struct nvml_inventory *inventory = nvml_inventory_get(&cause);
    const struct nvml_mig *mig = NULL;
    const struct nvml_gpu *gpu = NULL;

    if (inventory) {
        gpu = nvml_inventory_find(inventory, uuid, &mig);
        cause = "NVML lists no device with this UUID";
    }
    if (gpu) {
        emit_gpu(emit, gpu, mig);
    }
    emit_health(emit, gpu, cause);
}

static void emit_throttle(struct emit *emit, struct fact throttle)
{
    if (!throttle.known) {
        return;
    }
    emit_array(emit, "throttle_reasons");
    for (int bit = 0; bit < 63; bit++) {
        const char *name = nvml_throttle_name(bit);
        char number[16];

        if (throttle.value >> bit & 1) {
            snprintf(number, sizeof number, "bit_%d", bit);
            emit_string(emit, NULL, name ? name : number);
        }
    }
    emit_array_end(emit);
}

void nvml_emit_sample(struct emit *emit, const struct nvml_telemetry *telemetry)
{
    const struct nvml_telemetry *t = telemetry;

    fact_emit(emit, "sm_clock_mhz", t->sm_mhz);
    fact_emit(emit, "memory_clock_mhz", t->memory_mhz);
    fact_emit(emit, "temperature_celsius", t->celsius);
    if (t->milliwatts.known) {
        emit_fixed(emit, "power_watts", (double)t->milliwatts.value / 1000, 3);
    }
    emit_throttle(emit, t->throttle);
    emit_ecc(emit, &t->since_load, &t->in_life);
    fact_emit_bool(emit, "row_remap_pending", t->remap_pending);
    fact_emit_bool(emit, "row_remap_failure", t->remap_failure);
    if (t->cause[0]) {
        emit_string(emit, "cause", t->cause);
    }
}

void nvml_emit_telemetry(struct emit *emit, const char *uuid)
{
    struct nvml_telemetry telemetry;

    nvml_telemetry_read(uuid, TELEMETRY_DEADLINE_MS, &telemetry);
    nvml_emit_sample(emit, &telemetry);
}
