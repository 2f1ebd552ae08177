#include "daemon/jobs/check.h"

#include <stddef.h>
#include <string.h>

static const char *const names[CHECK_STATES] = {
    [CHECK_ASKED] = "asked",       [CHECK_PASSED] = "passed",   [CHECK_FAILED] = "failed",
    [CHECK_GIVEN_UP] = "given_up", [CHECK_CUT_OFF] = "cut_off", [CHECK_KNOWN] = "known",
};

const char *check_state_name(enum check_state state)
{
    return names[state];
}

enum check_state check_state_parse(const char *name)
{
    for (int i = CHECK_ASKED; name && i < CHECK_STATES; i++) {
        if (strcmp(name, names[i]) == 0) {
            return (enum check_state)i;
        }
    }
    return CHECK_NONE;
}
