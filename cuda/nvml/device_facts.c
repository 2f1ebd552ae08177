#include "cuda/nvml/device_facts.h"

#include <stdio.h>

#include "cuda/nvml/inventory.h"
#include "cuda/nvml/telemetry.h"

/* Without persistence mode the driver wakes each GPU anew, which takes seconds. */
enum { INVENTORY_DEADLINE_MS = 8000, DRIVER_DEADLINE_MS = 4000 };
enum { TELEMETRY_DEADLINE_MS = 4000 };

/* Read once in the life of the process; NULL, with the cause, when it could not be. */
static const struct nvml_inventory *inventory_get(const char **ret_cause)
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
    const struct nvml_inventory *inventory = inventory_get(&cause);

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
    const struct nvml_inventory *inventory = inventory_get(&cause);
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
