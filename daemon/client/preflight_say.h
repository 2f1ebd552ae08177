/* How `reprod preflight` says what it found.  Pure.  REPORT is that of preflight_judge.
 */
#ifndef DAEMON_CLIENT_PREFLIGHT_SAY_H
#define DAEMON_CLIENT_PREFLIGHT_SAY_H

#include <jansson.h>
#include <stdint.h>

/* What is said beside the report. */
struct preflight_facts {
    const char *node, *version;
    double seconds; /* that it took */
    int64_t now_ms; /* wall clock */
};

/* TEXT as JSON has it: what is no UTF-8 is spelt ("\xff").  A new value. */
json_t *preflight_text(const char *text);

/* One line without a newline: {"schema":"reprod.preflight/1","node","verdict","cause",
 * "gpus","devices":[…],"seconds","version","at"}.  Caller frees. */
char *preflight_line(const json_t *report, const struct preflight_facts *facts);

/* The body of a strategic merge patch of nodes/status in Kubernetes, with the condition
 * GpuNumericsOK: True only where GPUs were measured and passed, False where one dissents,
 * else Unknown.  NODE, the object as it is now, or NULL: the condition keeps the time of
 * its last transition where its status stays.  A new value.  NULL: nothing new is known,
 * because others use the devices. */
json_t *preflight_condition(const json_t *report, const json_t *node,
                            const struct preflight_facts *facts);

/* Health events as NVSentinel's platform connector takes them (HealthEvents of its
 * health_event.proto, as JSON): one for each GPU that passed or dissents; of others
 * nothing is known.  They are to be stored, and ask for nothing to be done.  A new value.
 */
json_t *preflight_events(const json_t *report, const struct preflight_facts *facts);

#endif
