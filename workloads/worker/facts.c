#include "workloads/worker/facts.h"

#include "workloads/workload.h"

/* Weak: a program without any fact links. */
extern const struct workload_fact *const __start_reprod_facts[] __attribute__((weak));
extern const struct workload_fact *const __stop_reprod_facts[] __attribute__((weak));

static void emit_all(struct emit *emit, const struct workload_fact *const *begin,
                     const struct workload_fact *const *end)
{
    for (const struct workload_fact *const *fact = begin; fact < end; fact++) {
        const char *value = *fact ? (*fact)->value() : NULL;
        if (value) {
            emit_string(emit, (*fact)->name, value);
        }
    }
}

void facts_emit(struct emit *emit)
{
    emit_all(emit, __start_reprod_facts, __stop_reprod_facts);
}
