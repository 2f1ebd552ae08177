/* What webhooks tell: the types of their events.  Pure. */
#ifndef DAEMON_WEBHOOKS_TYPES_H
#define DAEMON_WEBHOOKS_TYPES_H

#include <stdbool.h>

#include "daemon/base/nearest.h"

#define WEBHOOK_TYPE_PREFIX "dev.reprod."

/* The name behind the prefix, and whether a webhook that names no types gets it. */
#define WEBHOOK_TYPE_MAP(X)                                                              \
    X(WEBHOOK_CELL_REGRESSED, "cell.regressed", true)                                    \
    X(WEBHOOK_CELL_CHANGED, "cell.changed", false) /* any other verdict than before */   \
    X(WEBHOOK_FINDING_NEW, "finding.new", true)    /* a library's claim was broken */    \
    X(WEBHOOK_DEVICE_DISSENTS, "device.dissents", true) /* in a cell … */              \
    X(WEBHOOK_DEVICE_CLEARED, "device.cleared", true)   /* … and no longer */          \
    X(WEBHOOK_DEVICE_SCREENED, "device.screened", true)                                  \
    X(WEBHOOK_HOST_LOST, "host.lost", true)                                              \
    X(WEBHOOK_HOST_BACK, "host.back", true)                                              \
    X(WEBHOOK_HOST_CHANGED, "host.changed", true)                                        \
    X(WEBHOOK_HOST_DRIFT, "host.drift", true) /* what a change did, reported */          \
    X(WEBHOOK_JOB_FINISHED, "job.finished", true)                                        \
    X(WEBHOOK_DATABASE_DAMAGED, "database.damaged", true)                                \
    X(WEBHOOK_DATABASE_WHOLE, "database.whole", true)                                    \
    X(WEBHOOK_TEST, "webhook.test", true) /* only when it is asked for */

enum webhook_type {
#define X(code, name, usual) code,
    WEBHOOK_TYPE_MAP(X)
#undef X
        WEBHOOK_TYPES
};

/* "cell.regressed" */
const char *webhook_type_name(enum webhook_type type);

/* NAME with or without the prefix; WEBHOOK_TYPES: there is none.  Then RET_HINT says what
 * may have been meant, or "" (may be NULL). */
enum webhook_type webhook_type_parse(const char *name, char ret_hint[NEAREST_HINT_SIZE]);

/* Sets of types: bit 1 << type. */
unsigned webhook_types_usual(void);

/* As names with spaces between, and back; names that are not known are left out. */
enum { WEBHOOK_TYPES_SIZE = 512 };
void webhook_types_text(unsigned types, char ret_text[WEBHOOK_TYPES_SIZE]);
unsigned webhook_types_parse(const char *text);

#endif
