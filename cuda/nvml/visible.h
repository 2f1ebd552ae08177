/* What one process of CUDA is not shown.  It sees one MIG slice, the first or the one
 * that CUDA_VISIBLE_DEVICES names, and beside it no GPU at all; or whole GPUs, and no
 * slice (NVIDIA's MIG User Guide, "CUDA Device Enumeration").  NVML lists all of them.
 *
 * Unverified on real hardware: written by NVIDIA's reference, tested with an imitation.
 */
#ifndef CUDA_NVML_VISIBLE_H
#define CUDA_NVML_VISIBLE_H

#include <stdbool.h>

#include "cuda/nvml/device_facts.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { VISIBLE_MAX = (int)NVML_GPUS_MAX * (int)NVML_MIGS_MAX };

/* "MIG-…": the id of a slice. */
bool visible_is_slice(const char *id);

/* Whether VISIBLE, the value of CUDA_VISIBLE_DEVICES (NULL: it is not set), lets a
 * process use the device ID that CUDA does not list by itself: it is not set, or names ID
 * in full. Numbers and parts of ids are CUDA's to read: what they mean is what CUDA
 * lists. */
bool visible_allows(const char *visible, const char *id);

/* Whether some GPU is in MIG mode: then CUDA does not list all that there is. */
bool visible_is_partial(const struct nvml_inventory *inventory);

/* The ids of all slices, and of the GPUs that are not in MIG mode, as far as VISIBLE
 * allows them.  Returns how many.  Borrowed: valid as long as INVENTORY. */
int visible_list(const struct nvml_inventory *inventory, const char *visible,
                 const char *ret_ids[VISIBLE_MAX]);

/* The first GPU in MIG mode that has no slice, and so is no device; NULL: none. */
const char *visible_without_slice(const struct nvml_inventory *inventory);

#ifdef __cplusplus
}
#endif

#endif
