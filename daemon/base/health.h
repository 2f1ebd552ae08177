/* What is wrong with this service now, by name: what /readyz, /metrics, the log and the
 * page say.  Pure, but for the log. */
#ifndef DAEMON_BASE_HEALTH_H
#define DAEMON_BASE_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

/* The name of each condition, and whether the service is ready in spite of it. */
#define HEALTH_MAP(X)                                                                    \
    X(HEALTH_STORAGE, "storage", false)   /* what is accepted could not be kept */       \
    X(HEALTH_DATABASE, "database", false) /* it is damaged: what it says is not known */ \
    X(HEALTH_LOOP, "loop", false)         /* everybody had to wait */                    \
    X(HEALTH_DEVICES, "devices", false)   /* no device can run anything */               \
    X(HEALTH_STOPPING, "stopping", false) /* the service ends */                         \
    X(HEALTH_HOSTS, "hosts", true)        /* a host of several is away or silent */

enum health_condition {
#define X(code, name, ready) code,
    HEALTH_MAP(X)
#undef X
        HEALTH_CONDITIONS
};

enum { HEALTH_CAUSE_SIZE = 512 };

/* All zero: nothing is wrong. */
struct health {
    struct {
        char cause[HEALTH_CAUSE_SIZE]; /* "": it does not apply */
        int64_t since_ms;              /* wall clock, if it does */
        char logged[HEALTH_CAUSE_SIZE];
    } conditions[HEALTH_CONDITIONS];
};

const char *health_name(enum health_condition condition);

/* CONDITION applies because of CAUSE, or no longer: NULL.  Copied. */
void health_set(struct health *health, enum health_condition condition, const char *cause,
                int64_t now_ms);

/* Whether jobs can be run and will be kept. */
bool health_ready(const struct health *health);

/* Logs what has changed since it was last called. */
void health_log(struct health *health);

#endif
