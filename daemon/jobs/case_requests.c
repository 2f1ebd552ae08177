#include "daemon/jobs/case_requests.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool is_alike(const json_t *a, const json_t *b)
{
    static const char *const members[] = { "devices", "stacks", "workloads",
                                           "sizes",   "dtypes", "seeds" };
    bool same = true;

    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        same = same &&
               json_equal(json_object_get(a, members[i]), json_object_get(b, members[i]));
    }
    return same;
}

void case_requests_add(json_t *requests, const struct case_key *key, const char *device,
                       const char *stack, const char *note)
{
    char seed[24];
    json_t *request;
    json_t *other;
    size_t i;

    snprintf(seed, sizeof seed, "%" PRIu64, key->seed);
    request =
        json_pack("{s:[s], s:[s], s:[s], s:[s], s:[s], s:[s], s:[s#], s:b, s:s}",
                  "workloads", key->workload, "variants", key->variant, "sizes",
                  key->size, "dtypes", key->dtype, "seeds", seed, "devices", device,
                  "stacks", stack, (int)strcspn(stack, "/"), "survey", 1, "note", note);
    json_array_foreach(requests, i, other)
    {
        if (is_alike(request, other)) {
            json_array_append(json_object_get(other, "variants"),
                              json_array_get(json_object_get(request, "variants"), 0));
            json_decref(request);
            return;
        }
    }
    if (json_array_size(requests) < CASE_REQUESTS_MAX) {
        json_array_append_new(requests, request);
    } else {
        json_decref(request);
    }
}
