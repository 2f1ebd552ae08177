#include "workloads/worker/backend.h"

extern const struct backend *const __start_reprod_backends[] __attribute__((weak));
extern const struct backend *const __stop_reprod_backends[] __attribute__((weak));

const struct backend *backend_linked(FILE *defects)
{
    const struct backend *const *slot = __start_reprod_backends;
    const struct backend *found = NULL;
    int count = 0;
    /* cppcheck-suppress comparePointers -- both bound one array, which the linker made */
    for (; slot && slot < __stop_reprod_backends; slot++) {
        if (*slot) {
            found = *slot;
            count++;
        }
    }
    if (count != 1) {
        fprintf(defects, "worker: %d backends are linked, there must be exactly one\n",
                count);
        return NULL;
    }
    return found;
}
