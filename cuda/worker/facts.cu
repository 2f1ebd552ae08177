#include "cuda/worker/facts.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cuda/nvml/device_facts.h"
#include "cuda/worker/device.h"
#include "workloads/worker/environment.h"

#ifdef REPROD_CUDASIM
static const char driver_file[] = "";
#else
static const char driver_file[] = "/proc/driver/nvidia/version";
#endif

/* The kernel module's version: the first word of the file that is digits and dots,
 * "580.65.06". */
static bool read_driver_version(char ret_version[VERSION_SIZE])
{
    char line[256] = "";
    char *rest = line;
    FILE *file = fopen(driver_file, "re");

    if (!file) {
        return false;
    }
    bool read = fgets(line, sizeof line, file) != NULL;
    fclose(file);
    for (char *word; read && (word = strtok_r(rest, " \n", &rest));) {
        size_t digits = strspn(word, "0123456789.");

        if (isdigit((unsigned char)word[0]) && strchr(word, '.') &&
            word[digits] == '\0' && digits < VERSION_SIZE) {
            memcpy(ret_version, word, digits + 1);
            return true;
        }
    }
    return false;
}

/* Under WSL and in some sandboxes there is a driver, and not its file. */
static void emit_driver(struct emit *emit)
{
    char version[VERSION_SIZE];

    if (read_driver_version(version)) {
        emit_string(emit, "driver", version);
    } else if (device_driver_api_version(version)) {
        nvml_emit_driver(emit);
    }
}

static void emit_versions(struct emit *emit)
{
    char version[VERSION_SIZE];

    emit_driver(emit);
    if (device_driver_api_version(version)) {
        emit_string(emit, "cuda_driver", version);
    }
    device_runtime_version(version);
    emit_string(emit, "cuda_runtime", version);
}

static void emit_hardware(struct emit *emit, const cudaDeviceProp *properties)
{
    char capability[VERSION_SIZE];
    const char *profile = device_mig_profile(properties);

    snprintf(capability, sizeof capability, "%d.%d", properties->major,
             properties->minor);
    emit_string(emit, "compute_capability", capability);
    emit_int(emit, "sm_count", properties->multiProcessorCount);
    if (profile) {
        emit_string(emit, "mig_profile", profile);
    }
}

void facts_emit_environment(struct emit *emit, const struct run *run)
{
    const cudaDeviceProp *properties = device_opened();

    (void)run;
    if (properties) {
        emit_string(emit, "model", properties->name);
        emit_hardware(emit, properties);
    }
    emit_versions(emit);
}

static void emit_device(struct emit *emit, int index)
{
    cudaDeviceProp properties;
    char id[DEVICE_ID_SIZE];

    if (!device_read(index, &properties)) {
        return;
    }
    device_id(&properties, id);
    emit_object(emit, NULL);
    emit_string(emit, "id", id);
    emit_string(emit, "model", properties.name);
    emit_object(emit, "attributes");
    emit_hardware(emit, &properties);
    emit_int(emit, "memory_bytes", (int64_t)properties.totalGlobalMem);
    nvml_emit_device_attributes(emit, id);
    emit_object_end(emit);
    emit_object_end(emit);
}

void facts_emit_probe(struct emit *emit)
{
    char cause[DEVICE_CAUSE_SIZE];
    int count = device_count(cause);

    emit_object(emit, "versions");
    emit_versions(emit);
    nvml_emit_versions(emit);
    facts_emit(emit, "cuda");
    emit_object_end(emit);
    emit_array(emit, "devices");
    for (int i = 0; i < count; i++) {
        emit_device(emit, i);
    }
    emit_array_end(emit);
    emit_string(emit, "cause", count ? NULL : cause);
}

void facts_emit_telemetry(struct emit *emit, const struct run *)
{
    nvml_emit_telemetry(emit, device_opened_id());
}
