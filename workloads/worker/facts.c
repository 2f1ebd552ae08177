#include "workloads/worker/facts.h"

#include <string.h>

#include "workloads/workload.h"

/* Weak: a program without any fact links. */
extern const struct workload_fact *const __start_reprod_facts[] __attribute__((weak));
extern const struct workload_fact *const __stop_reprod_facts[] __attribute__((weak));

static void emit_all(struct emit *emit, const char *backend,
                     const struct workload_fact *const *begin,
                     const struct workload_fact *const *end)
{
    for (const struct workload_fact *const *fact = begin; fact < end; fact++) {
        bool is_ours = *fact && strcmp((*fact)->backend, backend) == 0;
        const char *value = is_ours ? (*fact)->value() : NULL;
        if (value) {
            emit_string(emit, (*fact)->name, value);
        }
    }
}

void facts_emit(struct emit *emit, const char *backend)
{
    emit_all(emit, backend, __start_reprod_facts, __stop_reprod_facts);
}
