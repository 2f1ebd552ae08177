#include "api/http/routes.h"

#include <stddef.h>
#include <string.h>

#include "api/http/handlers.h"
#include "daemon/base/array.h"
#include "daemon/evidence/dissent.h"
#include "daemon/evidence/subject.h"
#include "daemon/jobs/case.h"
#include "daemon/jobs/outcome.h"
#include "daemon/jobs/peer_run.h"
#include "daemon/trace/trace.h"
#include "daemon/webhooks/webhook.h"

static const char *view_choice(int index)
{
    static const char *const views[] = { "documents", "environments", "devices", NULL };

    return views[index];
}

static const char *rows_choice(int index)
{
    static const char *const rows[] = { "all", "differing", NULL };

    return rows[index];
}

static const char *columns_choice(int index)
{
    static const char *const columns[] = { "grouped", "hosts", NULL };

    return columns[index];
}

static const char *dissents_choice(int index)
{
    return index == 0 ? "only" : NULL;
}

static const char *device_state_choice(int index)
{
    return index < DISSENT_MARKS ? dissent_mark_name((enum dissent_mark)index) : NULL;
}

static const char *delivery_state_choice(int index)
{
    return index < DELIVERY_STATES ? delivery_state_name((enum delivery_state)index)
                                   : NULL;
}

static const char *background_choice(int index)
{
    return index == 0 ? "no" : NULL;
}

static const char *subject_choice(int index)
{
    return subject_words[index];
}

static const char *challenges_choice(int index)
{
    static const char *const choices[] = { "none", "only", NULL };

    return choices[index];
}

static const char *outcome_choice(int index)
{
    return index < OUTCOME_COUNT ? outcome_name((enum outcome)index) : NULL;
}

#define PARAMETER(variable, ...) static const struct parameter variable = { __VA_ARGS__ };
#define ROUTE(handler, ...)
#include "api/http/route_table.def"
#undef PARAMETER
#undef ROUTE

#define PARAMETER(variable, ...)
#define ROUTE(handler, ...) { .handle = handler, .operation = #handler, __VA_ARGS__ },
const struct route routes[] = {
#include "api/http/route_table.def"
};
#undef PARAMETER
#undef ROUTE

const int route_count = COUNT_OF(routes);

bool route_has_segment(const struct route *route, const struct parameter *parameter)
{
    size_t length = strlen(parameter->name);
    const char *at = strchr(route->pattern, '{');

    while (at &&
           (strncmp(at + 1, parameter->name, length) != 0 || at[length + 1] != '}')) {
        at = strchr(at + 1, '{');
    }
    return at != NULL;
}
