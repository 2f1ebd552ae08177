#include "daemon/process/run_exit.h"

#include <string.h>

#include "daemon/base/array.h"

static const char *const names[] = {
#define X(reason, name) [reason] = name,
    EXIT_REASON_MAP(X)
#undef X
};

const char *exit_reason_name(enum exit_reason reason)
{
    return names[reason];
}

int exit_reason_parse(const char *name, enum exit_reason *ret_reason)
{
    for (int i = 0; i < COUNT_OF(names); i++) {
        if (strcmp(name, names[i]) == 0) {
            *ret_reason = (enum exit_reason)i;
            return 0;
        }
    }
    return -1;
}

const char *exit_signal_name(int number)
{
    const char *name = sigabbrev_np(number);

    return name ? name : "?";
}
