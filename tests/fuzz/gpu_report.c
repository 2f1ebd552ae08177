/* Reports of `make gpu-check`. */
#include <string.h>

#include "daemon/evidence/verified.h"
#include "tests/fuzz/fuzz.h"

static void run(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct verified_set *set = verified_set_new();
    struct verified found;
    struct err err;

    if (verified_set_add(set, "report.json", text, size, &err) == ERR_OK) {
        FUZZ_CHECK(verified_set_add(set, "again.json", text, size, &err) == ERR_OK);
        if (verified_find(set, "wgrad", "ordered", &found)) {
            FUZZ_CHECK(found.date && found.gpu && found.driver && found.outcome);
            FUZZ_CHECK(strlen(verified_outcome(&found, 2)) > 0);
        }
    }
    verified_set_free(set);
    free(text);
}

FUZZ_TARGET("gpu_report", run);
