#include "cuda/nvml/visible.h"

#include <string.h>
#include <strings.h>

static const char slice_prefix[] = "MIG-";

bool visible_is_slice(const char *id)
{
    return strncmp(id, slice_prefix, sizeof slice_prefix - 1) == 0;
}

bool visible_allows(const char *visible, const char *id)
{
    size_t length = strlen(id);

    if (!visible) {
        return true;
    }
    for (const char *at = visible; *at; at += *at == ',') {
        size_t word = strcspn(at, ",");

        if (word == length && strncasecmp(at, id, length) == 0) {
            return true;
        }
        at += word;
    }
    return false;
}

static bool is_sliced(const struct nvml_gpu *gpu)
{
    return gpu->mig_mode.known && gpu->mig_mode.value;
}

bool visible_is_partial(const struct nvml_inventory *inventory)
{
    for (int i = 0; i < inventory->gpu_count; i++) {
        if (is_sliced(&inventory->gpus[i])) {
            return true;
        }
    }
    return false;
}

static int add(const struct fact_text *uuid, const char *visible, const char **ret_ids,
               int count)
{
    if (uuid->known && visible_allows(visible, uuid->value) && count < VISIBLE_MAX) {
        ret_ids[count++] = uuid->value;
    }
    return count;
}

int visible_list(const struct nvml_inventory *inventory, const char *visible,
                 const char *ret_ids[VISIBLE_MAX])
{
    int count = 0;

    for (int i = 0; i < inventory->gpu_count; i++) {
        const struct nvml_gpu *gpu = &inventory->gpus[i];

        for (int m = 0; m < gpu->mig_count; m++) {
            count = add(&gpu->migs[m].uuid, visible, ret_ids, count);
        }
        if (!is_sliced(gpu)) {
            count = add(&gpu->uuid, visible, ret_ids, count);
        }
    }
    return count;
}

const char *visible_without_slice(const struct nvml_inventory *inventory)
{
    for (int i = 0; i < inventory->gpu_count; i++) {
        const struct nvml_gpu *gpu = &inventory->gpus[i];

        if (is_sliced(gpu) && gpu->mig_count == 0 && gpu->uuid.known) {
            return gpu->uuid.value;
        }
    }
    return NULL;
}
