/* What a worker prints for --catalogue. */
#include "daemon/evidence/catalogue.h"
#include "daemon/process/wire.h"
#include "tests/fuzz/fuzz.h"

static void run(const uint8_t *data, size_t size)
{
    json_t *workloads =
        json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
    struct catalogue *catalogue = catalogue_new();
    struct err err;

    /* What was taken once does not contradict itself, and adds nothing. */
    if (workloads && catalogue_add(catalogue, workloads, &err) == ERR_OK) {
        int count = catalogue_count(catalogue);

        FUZZ_CHECK(catalogue_add(catalogue, workloads, &err) == ERR_OK);
        FUZZ_CHECK(catalogue_count(catalogue) == count);
        for (int i = 0; i < count; i++) {
            const struct catalogue_workload *w = catalogue_at(catalogue, i);

            FUZZ_CHECK(catalogue_find(catalogue, w->name, w->backend) == w);
            FUZZ_CHECK(w->variant_count > 0 && w->size_count > 0 && w->dtype_count > 0);
        }
    }
    catalogue_free(catalogue);
    json_decref(workloads);
}

FUZZ_TARGET("catalogue", run);
