#include "workloads/shared/probing.h"

#include "workloads/worker/backend.h"
#include "workloads/worker/probes.h"

static int values_take(const struct probe_value *values, const int *indices,
                       struct probe_value ret_values[PLACE_VALUES_MAX])
{
    int count = 0;

    for (; count < PLACE_VALUES_MAX && indices[count]; count++) {
        ret_values[count] = values[indices[count]];
    }
    return count;
}

static void mark(const int *indices, bool marks[PLACES_VALUES_MAX])
{
    for (int i = 0; i < PLACE_VALUES_MAX && indices[i]; i++) {
        marks[indices[i]] = true;
    }
}

void places_probe(struct run *run, int64_t step, const struct probe_value *values,
                  const struct place *places, int count)
{
    bool marks[PLACES_VALUES_MAX] = { false };
    struct probe_value needed[PLACES_VALUES_MAX];
    int needed_count = 0;

    for (int i = 0; i < count; i++) {
        if (probes_want(run, step, places[i].name)) {
            mark(places[i].in, marks);
            mark(places[i].out, marks);
        }
    }
    for (int i = 1; i < PLACES_VALUES_MAX; i++) {
        if (marks[i]) {
            needed[needed_count++] = values[i];
        }
    }
    if (needed_count > 0) {
        probes_hash(run, needed, needed_count);
    }
    for (int i = 0; i < count; i++) {
        struct probe_value in[PLACE_VALUES_MAX], out[PLACE_VALUES_MAX];
        int in_count = values_take(values, places[i].in, in);
        int out_count = values_take(values, places[i].out, out);

        run_probe(run, step, places[i].name, in, in_count, out, out_count);
    }
}
