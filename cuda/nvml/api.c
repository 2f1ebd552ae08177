#include "cuda/nvml/api.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cuda/library/driver.h"

static const char LIBRARY[] = "libnvidia-ml.so.1";

bool nvml_api_load(struct nvml_api *ret_api, char ret_cause[NVML_CAUSE_SIZE])
{
#define X(function, parameters) { "nvml" #function, offsetof(struct nvml_api, function) },
    static const struct {
        const char *symbol;
        size_t offset;
    } entries[] = { NVML_FUNCTIONS };
#undef X
    void *library = driver_open(LIBRARY, driver_folders);

    if (!library) {
        (void)dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL); /* says of the usual place why */
        snprintf(ret_cause, NVML_CAUSE_SIZE, "NVML cannot be loaded: %s", dlerror());
        return false;
    }
    memset(ret_api, 0, sizeof *ret_api);
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        void *symbol = dlsym(library, entries[i].symbol);
        memcpy((char *)ret_api + entries[i].offset, &symbol, sizeof symbol);
    }
    if (!ret_api->Init_v2 || !ret_api->DeviceGetCount_v2 ||
        !ret_api->DeviceGetHandleByIndex_v2) {
        snprintf(ret_cause, NVML_CAUSE_SIZE,
                 "%s lacks functions that every NVML has had since 2013", LIBRARY);
        return false;
    }
    return true;
}

void nvml_describe(int code, char ret_text[NVML_CAUSE_SIZE])
{
    static const struct {
        int code;
        const char *text;
    } known[] = {
        { 1, "NVML is not initialized" },
        { 2, "wrong argument" },
        { 3, "not supported" },
        { 4, "no permission" },
        { 6, "not found" },
        { 7, "the answer does not fit" },
        { 8, "external power is missing" },
        { 9, "the driver is not loaded" },
        { 10, "NVML timed out" },
        { 11, "interrupts do not arrive" },
        { 12, "a library of the driver is missing" },
        { NVML_FUNCTION_NOT_FOUND, "this driver has no such function" },
        { 14, "the InfoROM is corrupted" },
        { NVML_GPU_IS_LOST, "the GPU is lost" },
        { NVML_RESET_REQUIRED, "the GPU needs a reset" },
        { 17, "the operating system refused" },
        { 18, "the driver and its libraries have different versions" },
        { 19, "in use" },
        { 20, "not enough memory" },
    };
    const char *text = "unknown error";

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        text = known[i].code == code ? known[i].text : text;
    }
    snprintf(ret_text, NVML_CAUSE_SIZE, "%s (%d)", text, code);
}
