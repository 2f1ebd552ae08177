#include "daemon/base/health.h"

#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/mem.h"

static const struct {
    const char *name;
    bool ready;
} facts[HEALTH_CONDITIONS] = {
#define X(code, name, ready) [code] = { name, ready },
    HEALTH_MAP(X)
#undef X
};

const char *health_name(enum health_condition condition)
{
    return facts[condition].name;
}

void health_set(struct health *health, enum health_condition condition, const char *cause,
                int64_t now_ms)
{
    if (cause && !health->conditions[condition].cause[0]) {
        health->conditions[condition].since_ms = now_ms;
    }
    copy_text(health->conditions[condition].cause, HEALTH_CAUSE_SIZE, cause ? cause : "");
}

bool health_ready(const struct health *health)
{
    for (int i = 0; i < HEALTH_CONDITIONS; i++) {
        if (health->conditions[i].cause[0] && !facts[i].ready) {
            return false;
        }
    }
    return true;
}

void health_log(struct health *health)
{
    for (int i = 0; i < HEALTH_CONDITIONS; i++) {
        const char *cause = health->conditions[i].cause;
        char *logged = health->conditions[i].logged;

        if (strcmp(cause, logged) == 0) {
            continue;
        }
        if (!cause[0]) {
            log_info("health: %s: well again", facts[i].name);
        } else if (facts[i].ready) {
            log_warning("health: %s: %s", facts[i].name, cause);
        } else {
            log_error("health: not ready: %s: %s", facts[i].name, cause);
        }
        copy_text(logged, HEALTH_CAUSE_SIZE, cause);
    }
}
