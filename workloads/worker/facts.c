#include "workloads/worker/facts.h"

#include <string.h>

#include "workloads/workload.h"

/* Weak: a program without any fact links. */
extern const struct workload_fact *const __start_reprod_facts[] __attribute__((weak));
extern const struct workload_fact *const __stop_reprod_facts[] __attribute__((weak));

/* The fact after *FACT that belongs to BACKEND; NULL when there is none. */
static const struct workload_fact *next(const struct workload_fact *const **fact,
                                        const char *backend)
{
    while (*fact < __stop_reprod_facts) {
        const struct workload_fact *found = *(*fact)++;

        if (found && strcmp(found->backend, backend) == 0) {
            return found;
        }
    }
    return NULL;
}

void facts_emit(struct emit *emit, const char *backend)
{
    const struct workload_fact *const *rest = __start_reprod_facts;
    for (const struct workload_fact *fact; (fact = next(&rest, backend));) {
        const char *value = fact->value();

        if (value) {
            emit_string(emit, fact->name, value);
        }
    }
}

void facts_emit_problems(struct emit *emit, const char *backend)
{
    const struct workload_fact *const *rest = __start_reprod_facts;
    emit_object(emit, "problems");
    for (const struct workload_fact *fact; (fact = next(&rest, backend));) {
        const char *problem = fact->problem ? fact->problem() : NULL;

        if (problem) {
            emit_string(emit, fact->name, problem);
        }
    }
    emit_object_end(emit);
}
