#include "daemon/jobs/localisation.h"

#include <stdlib.h>

static const char *const states[] = {
    [LOCALISATION_SEARCHING] = "searching", [LOCALISATION_CAPTURING] = "capturing",
    [LOCALISATION_LOCALISED] = "localised", [LOCALISATION_NOT_FOUND] = "not_found",
    [LOCALISATION_FAILED] = "failed",
};

const char *localisation_state_name(enum localisation_state state)
{
    return states[state];
}

void localisation_release(struct localisation *localisation)
{
    free(localisation->search);
    free(localisation->difference);
    localisation->search = NULL;
    localisation->difference = NULL;
}
