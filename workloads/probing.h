/* The places of a step as a table: a workload fills an array of values, whose indices the
 * table names, and all places are recorded in one stretch (run_probing in workload.h). */
#ifndef WORKLOADS_PROBING_H
#define WORKLOADS_PROBING_H

#include "workloads/workload.h"

enum { PLACE_VALUES_MAX = 8 };

/* IN and OUT are indices of values, ended by 0: value 0 is nothing. */
struct place {
    const char *name;
    int in[PLACE_VALUES_MAX], out[PLACE_VALUES_MAX];
};

static inline struct probe_value probe_floats(const char *name, const float *data,
                                              int64_t count)
{
    return (struct probe_value){ DTYPE_FLOAT32, count, data, name };
}

static inline struct probe_value probe_ints(const char *name, const int32_t *data,
                                            int64_t count)
{
    return (struct probe_value){ DTYPE_INT32, count, data, name };
}

static inline struct probe_value probe_bytes(const char *name, const void *data,
                                             int64_t count)
{
    return (struct probe_value){ DTYPE_UINT8, count, data, name };
}

static inline int place_values(const struct probe_value *values, const int *indices,
                               struct probe_value ret_values[PLACE_VALUES_MAX])
{
    int count = 0;

    for (; count < PLACE_VALUES_MAX && indices[count]; count++)
        ret_values[count] = values[indices[count]];
    return count;
}

/* Records PLACES in their order.  After run_probing. */
static inline void places_probe(struct run *run, int64_t step,
                                const struct probe_value *values,
                                const struct place *places, int count)
{
    for (int i = 0; i < count; i++) {
        struct probe_value in[PLACE_VALUES_MAX], out[PLACE_VALUES_MAX];
        int in_count = place_values(values, places[i].in, in);
        int out_count = place_values(values, places[i].out, out);

        run_probe(run, step, places[i].name, in, in_count, out, out_count);
    }
}

#endif
