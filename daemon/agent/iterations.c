#include "daemon/agent/iterations.h"

#include <string.h>

#include "daemon/base/json_in.h"

enum { MS_MAX = 7 * 24 * 3600 * 1000 }; /* as the judge has it */

struct iteration {
    const char *event;
    int index;
};

/* Whether digests and sums are such is left to the judge: equal ones it judges alike. */
static const struct in_member iteration_members[] = {
    { "event", IN_TEXT, IN_AT(struct iteration, event) },
    { "i", IN_INT, IN_AT(struct iteration, index), .most = INT32_MAX },
    { .key = "digest", .kind = IN_TEXT },
    { .key = "weight_sum", .kind = IN_TEXT },
    { "loss", IN_TEXT, .flags = IN_NULLABLE },
    { "ms", IN_REAL, .most = MS_MAX },
    { .key = "algorithm", .kind = IN_TEXT },
};
static const struct in_shape iteration_shape =
    IN_SHAPE(iteration_members, "an iteration has no member");

static const char *const same[] = { "digest", "weight_sum", "loss", "algorithm" };

static bool goes_on(const struct iterations *held, const json_t *data, int index)
{
    size_t count = json_array_size(held->ms);

    for (int i = 0; i < COUNT_OF(same); i++) {
        if (!json_equal(json_object_get(held->first, same[i]),
                        json_object_get(data, same[i]))) {
            return false;
        }
    }
    return count < ITERATIONS_HELD_MAX &&
           index == in_int(held->first, "i") + (int64_t)count;
}

bool iterations_hold(struct iterations *held, json_t *data)
{
    struct iteration iteration = { .event = "" };
    struct err err;

    if (strcmp(in_text_or_empty(data, "event"), "iteration") != 0 ||
        in_read_wire(&iteration_shape, data, &iteration, &err) != ERR_OK ||
        (held->first && !goes_on(held, data, iteration.index))) {
        return false;
    }
    if (!held->first) {
        held->first = json_incref(data);
        held->ms = json_array();
    }
    json_array_append(held->ms, json_object_get(data, "ms"));
    json_decref(data);
    return true;
}

json_t *iterations_take(struct iterations *held, const char *run)
{
    struct iterations taken = *held;

    *held = (struct iterations){ NULL, NULL };
    if (!taken.first) {
        return NULL;
    }
    if (json_array_size(taken.ms) == 1) {
        json_decref(taken.ms);
        return json_pack("{s:s,s:s,s:o}", "event", "worker", "run", run, "data",
                         taken.first);
    }
    json_object_set_new(taken.first, "event", json_string("iterations"));
    json_object_set_new(taken.first, "run", json_string(run));
    json_object_set_new(taken.first, "ms", taken.ms);
    return taken.first;
}
