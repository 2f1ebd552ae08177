/* What can be run where now, and so what happened to each case.  Pure. */
#include "db/views/drift.h"

#include <string.h>

static bool lists(const json_t *list, const char *name)
{
    size_t i;
    json_t *entry;

    json_array_foreach((json_t *)list, i, entry)
    {
        const char *text = json_is_string(entry)
                               ? json_string_value(entry)
                               : json_string_value(json_object_get(entry, "name"));

        if (text && strcmp(text, name) == 0) {
            return true;
        }
    }
    return false;
}

static bool has_case(const json_t *workload, const struct case_key *key)
{
    const char *name = json_string_value(json_object_get(workload, "workload"));

    return name && strcmp(name, key->workload) == 0 &&
           json_integer_value(json_object_get(workload, "version")) == key->version &&
           lists(json_object_get(workload, "variants"), key->variant) &&
           lists(json_object_get(workload, "sizes"), key->size) &&
           lists(json_object_get(workload, "dtypes"), key->dtype);
}

static bool computes(const struct device_stack *device, const struct case_key *key)
{
    size_t i;
    json_t *workload;

    json_array_foreach((json_t *)device->catalogue, i, workload)
    {
        if (has_case(workload, key)) {
            return true;
        }
    }
    return device->catalogue == NULL;
}

static bool is_place(const struct device_stack *device, const struct drift_place *place)
{
    size_t length = strcspn(place->stack, "/");

    return device_is_there(device) && strcmp(device->id, place->device) == 0 &&
           strncmp(device->stack, place->stack, length) == 0 &&
           device->stack[length] == '\0';
}

static const struct device_stack *find_online(const struct drift_place *place,
                                              const struct device_stack *devices,
                                              int count)
{
    for (int d = 0; d < count; d++) {
        if (is_place(&devices[d], place)) {
            return &devices[d];
        }
    }
    return NULL;
}

/* The first of END's places that is online becomes its first, where jobs run: of a device
 * that is not named as dissenting, if there is one. */
static const struct device_stack *
choose_place(struct drift_end *end, const struct device_stack *devices, int count)
{
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < end->place_count; i++) {
            struct drift_place place = end->places[i];
            const struct device_stack *device =
                place.suspect == (pass > 0) ? find_online(&place, devices, count) : NULL;

            if (device) {
                end->places[i] = end->places[0];
                end->places[0] = place;
                return device;
            }
        }
    }
    return NULL;
}

static enum drift_reach reach(const struct device_stack *device,
                              const struct case_key *key)
{
    return !device                 ? DRIFT_NO_DEVICE
           : computes(device, key) ? DRIFT_RUNNABLE
                                   : DRIFT_NO_CASE;
}

void drift_settle(struct drift *drift, const struct device_stack *devices, int count)
{
    const struct device_stack *from = choose_place(&drift->from, devices, count);
    const struct device_stack *to = choose_place(&drift->to, devices, count);
    int64_t least_ns = times_least(drift->to.json);

    for (int i = 0; i < drift->case_count; i++) {
        struct drift_case *c = &drift->cases[i];

        c->least_ns = least_ns;
        c->from.reach = reach(from, &c->key);
        c->to.reach = reach(to, &c->key);
        c->from.place_suspect = from && drift->from.places[0].suspect;
        c->to.place_suspect = to && drift->to.places[0].suspect;
        drift_judge(c);
    }
    drift_sort(drift->cases, drift->case_count);
}
