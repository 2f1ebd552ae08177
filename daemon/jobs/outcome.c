#include "daemon/jobs/outcome.h"

#include <string.h>

static const char *const names[OUTCOME_COUNT] = {
    [OUTCOME_COMPLETED] = "completed",
    [OUTCOME_UNSUPPORTED] = "unsupported",
    [OUTCOME_TIMEOUT] = "timeout",
    [OUTCOME_CRASHED] = "crashed",
    [OUTCOME_OUT_OF_MEMORY] = "out_of_memory",
    [OUTCOME_LOST] = "lost",
    [OUTCOME_INFRA] = "infra",
    [OUTCOME_CANCELLED] = "cancelled",
    [OUTCOME_INVALID] = "invalid",
};

const char *outcome_name(enum outcome outcome)
{
    return names[outcome];
}

int outcome_parse(const char *name, enum outcome *ret_outcome)
{
    for (int i = 0; i < OUTCOME_COUNT; i++) {
        if (strcmp(name, names[i]) == 0) {
            *ret_outcome = (enum outcome)i;
            return 0;
        }
    }
    return -1;
}

bool outcome_is_failure(enum outcome outcome)
{
    return outcome == OUTCOME_TIMEOUT || outcome == OUTCOME_CRASHED ||
           outcome == OUTCOME_OUT_OF_MEMORY || outcome == OUTCOME_INVALID;
}

bool outcome_is_answer(enum outcome outcome)
{
    return outcome == OUTCOME_COMPLETED || outcome == OUTCOME_UNSUPPORTED ||
           outcome_is_failure(outcome);
}
