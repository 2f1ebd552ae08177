/* The places of a step as a table: a workload fills an array of values, whose indices the
 * table names, and all places are recorded in one stretch (run_probing in workload.h). */
#ifndef WORKLOADS_SHARED_PROBING_H
#define WORKLOADS_SHARED_PROBING_H

#include "workloads/workload.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PLACE_VALUES_MAX = 8, PLACES_VALUES_MAX = 64 };

/* IN and OUT are indices of values, below PLACES_VALUES_MAX and ended by 0: value 0 is
 * nothing. */
struct place {
    const char *name;
    int in[PLACE_VALUES_MAX], out[PLACE_VALUES_MAX];
};

static inline struct probe_value probe_floats(const char *name, const float *data,
                                              int64_t count)
{
    struct probe_value value = { DTYPE_FLOAT32, count, data, name };

    return value;
}

static inline struct probe_value probe_ints(const char *name, const int32_t *data,
                                            int64_t count)
{
    struct probe_value value = { DTYPE_INT32, count, data, name };

    return value;
}

static inline struct probe_value probe_bytes(const char *name, const void *data,
                                             int64_t count)
{
    struct probe_value value = { DTYPE_UINT8, count, data, name };

    return value;
}

/* Records those of PLACES that are wanted, in their order, with all threads hashing what
 * they need.  After run_probing. */
void places_probe(struct run *run, int64_t step, const struct probe_value *values,
                  const struct place *places, int count);

#ifdef __cplusplus
}
#endif

#endif
