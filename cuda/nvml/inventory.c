#include "cuda/nvml/inventory.h"

#include <limits.h>
#include <string.h>
#include <strings.h>

#include "cuda/nvml/reader.h"
#include "cuda/nvml/session.h"

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

struct fact_text nvml_driver_read(int deadline_ms)
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

const struct nvml_gpu *nvml_inventory_find(const struct nvml_inventory *inventory,
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
