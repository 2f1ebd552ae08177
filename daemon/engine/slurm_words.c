#include "daemon/engine/slurm_words.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/array.h"
#include "daemon/base/mem.h"

enum { PACE_MOST = 30 };

enum meaning { BASE, FLAG, HELD, RESERVED };

/* Nodes: those that keep it from being used in the order in which they are told. */
static const struct {
    const char *name;
    enum meaning meaning;
    const char *words;
} node_states[] = {
    { "DOWN", HELD, "down" },
    { "FAIL", HELD, "failing" },
    { "FAILING", HELD, "failing" },
    { "ERROR", HELD, "error" },
    { "DRAIN", HELD, "drained" },
    { "DRAINED", HELD, "drained" },
    { "DRAINING", HELD, "draining" },
    { "NOT_RESPONDING", HELD, "not responding" },
    { "NO_RESPOND", HELD, "not responding" },
    { "INVALID_REG", HELD, "its registration is invalid" },
    { "INVALID", HELD, "its registration is invalid" },
    { "INVAL", HELD, "its registration is invalid" },
    { "FUTURE", HELD, "not there yet" },
    { "UNKNOWN", HELD, "state unknown" },
    { "REBOOT_REQUESTED", HELD, "to be rebooted" },
    { "REBOOT_ISSUED", HELD, "being rebooted" },
    { "REBOOT", HELD, "being rebooted" },
    { "POWER_DRAIN", HELD, "to be powered down" },
    { "POWER_DOWN", HELD, "to be powered down" },
    { "POWERING_DOWN", HELD, "being powered down" },
    { "MAINTENANCE", RESERVED, "maintenance" },
    { "MAINT", RESERVED, "maintenance" },
    { "RESERVED", RESERVED, "reserved" },
    { "RESV", RESERVED, "reserved" },
    { "IDLE", BASE, NULL },
    { "MIXED", BASE, NULL },
    { "ALLOCATED", BASE, NULL },
    { "COMPLETING", FLAG, NULL },
    { "PLANNED", FLAG, NULL },
    { "BLOCKED", FLAG, NULL },
    { "CLOUD", FLAG, NULL },
    { "DYNAMIC_NORM", FLAG, NULL },
    { "DYNAMIC_FUTURE", FLAG, NULL },
    { "POWERED_DOWN", FLAG, NULL }, /* a job powers it up */
    { "POWERING_UP", FLAG, NULL },
    { "POWER_UP", FLAG, NULL },
    { "RESUME", FLAG, NULL },
    { "UNDRAIN", FLAG, NULL },
};

/* Whether the states at LIST, with "+" between, have NAME. */
static bool has(const char *list, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = list; *at; at += *at == '+') {
        size_t each = strcspn(at, "+");

        if (each == length && strncmp(at, name, length) == 0) {
            return true;
        }
        at += each;
    }
    return false;
}

/* The row of the first LENGTH bytes of NAME; -1: there is none. */
static int find_state(const char *name, size_t length)
{
    for (int i = 0; i < COUNT_OF(node_states); i++) {
        if (strlen(node_states[i].name) == length &&
            strncmp(node_states[i].name, name, length) == 0) {
            return i;
        }
    }
    return -1;
}

static bool is_busy(const char *state)
{
    return has(state, "MIXED") || has(state, "ALLOCATED") || has(state, "COMPLETING");
}

static void tell_held(const struct slurm_node *node, const char *words,
                      char cause[SLURM_CAUSE_SIZE])
{
    if (strcmp(words, "drained") == 0 && is_busy(node->state)) {
        words = "draining";
    }
    snprintf(cause, SLURM_CAUSE_SIZE, "slurm: %s%s%s", words, node->reason[0] ? ": " : "",
             node->reason);
}

void slurm_node_held(const struct slurm_node *node, bool reservation,
                     char ret_cause[SLURM_CAUSE_SIZE])
{
    int worst = COUNT_OF(node_states);
    bool base = false;

    for (const char *at = node->state; *at; at += *at == '+') {
        size_t length = strcspn(at, "+");
        int i = find_state(at, length);

        if (i < 0) {
            snprintf(ret_cause, SLURM_CAUSE_SIZE, "slurm: state '%.*s' is not known here",
                     (int)length, at);
            return;
        }
        base = base || node_states[i].meaning == BASE;
        if (i < worst && (node_states[i].meaning == HELD ||
                          (node_states[i].meaning == RESERVED && !reservation))) {
            worst = i;
        }
        at += length;
    }
    if (worst < COUNT_OF(node_states)) {
        tell_held(node, node_states[worst].words, ret_cause);
    } else if (base || (reservation && node->state[0])) {
        ret_cause[0] = '\0';
    } else {
        copy_text(ret_cause, SLURM_CAUSE_SIZE, "slurm: the node has no state");
    }
}

/* Jobs: what each state that one does not leave says of its end; %s is the node. */
static const char preempted[] = "preempted on %s";
static const struct {
    const char *name, *words;
} job_ends[] = {
    { "NODE_FAIL", "node failure of %s" },
    { "PREEMPTED", preempted },
    { "TIMEOUT", "its time limit was reached on %s" },
    { "DEADLINE", "its deadline passed on %s" },
    { "OUT_OF_MEMORY", "out of memory on %s" },
    { "BOOT_FAIL", "%s did not boot" },
    { "LAUNCH_FAILED", "could not be launched on %s" },
    { "RECONFIG_FAIL", "%s could not be reconfigured" },
    { "REVOKED", "revoked on %s" },
    { "CANCELLED", "cancelled on %s" },
    { "COMPLETED", NULL },
    { "FAILED", NULL }, /* the agent's exit status says more */
};

static const char *const job_waits[] = { "PENDING",     "CONFIGURING",  "REQUEUED",
                                         "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD",
                                         "SPECIAL_EXIT" };

static int find_end(const struct slurm_job *job)
{
    for (int i = 0; i < COUNT_OF(job_ends); i++) {
        if (has(job->state, job_ends[i].name)) {
            return i;
        }
    }
    return -1;
}

enum slurm_phase slurm_job_phase(const struct slurm_job *job)
{
    if (find_end(job) >= 0) {
        return SLURM_ENDED;
    }
    for (int i = 0; i < COUNT_OF(job_waits); i++) {
        if (has(job->state, job_waits[i])) {
            return SLURM_WAITS;
        }
    }
    return has(job->state, "COMPLETING") ? SLURM_ENDING : SLURM_RUNS;
}

void slurm_job_waits(const struct slurm_job *job, char ret_words[SLURM_CAUSE_SIZE])
{
    snprintf(ret_words, SLURM_CAUSE_SIZE, "slurm: job %lld waits%s%s", (long long)job->id,
             job->reason[0] ? ": " : "", job->reason);
}

void slurm_job_cause(const struct slurm_job *job, char ret_cause[SLURM_CAUSE_SIZE])
{
    int end = find_end(job);
    /* One that ends by itself when it is told has failed, for Slurm. */
    const char *words = end < 0 ? NULL : job->preempted ? preempted : job_ends[end].words;
    const char *place = words ? strstr(words, "%s") : NULL;

    ret_cause[0] = '\0';
    if (place) {
        snprintf(ret_cause, SLURM_CAUSE_SIZE, "slurm: %.*s%s%s (job %lld)",
                 (int)(place - words), words, job->node[0] ? job->node : "its node",
                 place + 2, (long long)job->id);
    }
}

int64_t slurm_pace(int64_t period_ms, int64_t before_ms, bool failed, int64_t took_ms)
{
    int64_t next = before_ms > period_ms ? before_ms : period_ms;

    if (!failed && took_ms <= period_ms / 2) {
        return period_ms;
    }
    next *= 2;
    return next > period_ms * PACE_MOST ? period_ms * PACE_MOST : next;
}
