/* What the daemon and an agent say to each other: the commands that the daemon sends, and
 * the checks of everything that an agent answers (workloads/PROTOCOL.md).  Pure. */
#ifndef DAEMON_LINK_LINK_WIRE_H
#define DAEMON_LINK_LINK_WIRE_H

#include <jansson.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/jobs/case.h"
#include "daemon/jobs/options.h"
#include "daemon/process/run_exit.h"

/* Everything handed to a callback is borrowed for the call.  Between started and exited
 * of a run come its worker events, iterations and garbage; refused comes instead of
 * started. */
struct link_events {
    /* Checked: version, host, pid, boot_id, stacks (array of objects). */
    void (*hello)(void *arg, const json_t *hello);
    /* After hello: its stacks (checked) are others now.  NULL is fine. */
    void (*stacks)(void *arg, const json_t *stacks);
    void (*started)(void *arg, const char *run, int64_t pid, int64_t process_start);
    void (*worker_event)(void *arg, const char *run, const json_t *event);
    /* Several iterations in one event.  Only an agent says so: an event of a worker that
     * has this name comes as worker_event. */
    void (*iterations)(void *arg, const char *run, const json_t *event);
    void (*garbage)(void *arg, const char *run, const char *cause);
    void (*exited)(void *arg, const char *run, const struct run_exit *exit);
    void (*refused)(void *arg, const char *run, const char *cause);
    /* Checked: who else uses the host's devices, an array of {"id","foreign","cause"}.
     * NULL is fine. */
    void (*processes)(void *arg, const json_t *devices);
    /* The agent was told to end (CAUSE): it takes no new run, and ends after those that
     * it has, or when NOTICE_MS are over.  NULL is fine. */
    void (*ending)(void *arg, const char *cause, int64_t notice_ms);
    /* Once, last: the agent is gone or unusable, and with it every run that has not
     * ended.  Not called after link_close. */
    void (*closed)(void *arg, const char *cause);
    /* The agent has not answered since SINCE_MS (wall clock); 0: it answers again.  NULL
     * is fine. */
    void (*silent)(void *arg, int64_t since_ms);
    /* It says more on standard error than is logged, since SINCE_MS; 0: no longer.  NULL
     * is fine. */
    void (*noisy)(void *arg, int64_t since_ms);
    int64_t hello_deadline_ms; /* 0: LINK_HELLO_MS; -1: there is none */
    int64_t ping_ms;           /* between two pings; 0: 500 */
    int64_t end_grace_ms;      /* between end of input and SIGTERM; 0: 10,000 */
};

enum { LINK_HELLO_MS = 65000 }; /* as long as a worker of GPUs has, and 5 s */

struct link_run {
    const char *id, *stack, *device;
    int64_t timeout_ms;
    const struct case_key *key;
    int64_t iterations;
    const struct run_options *options;
    int64_t check_seconds; /* the run is to check itself, for so long at most; 0: not */
    const char *check_passed; /* a digest that it need not check; "": none */
};

/* The commands, as new references for stream_writer_send. */
json_t *link_command_run(const struct link_run *run);
json_t *link_command_cancel(const char *run);
json_t *link_command_ping(void); /* answered by an event `pong` */

/* When an agent with these STACKS (a configuration's, NULL: none) has to have said hello:
 * it does when each worker has said what it is, or its `probe_seconds` are over. */
int64_t link_hello_deadline_ms(const json_t *stacks);

/* The first thing an agent says.  ERR_PROTOCOL: another version, or a field that is
 * missing or malformed; ERR_TOO_LARGE: more than daemon/process/stack_limits.h lets
 * through. */
enum err_code link_hello_check(const json_t *hello, struct err *err);

/* Who else uses devices.  ERR_PROTOCOL: malformed. */
enum err_code link_processes_check(const json_t *event, struct err *err);

/* How its stacks are now.  ERR_PROTOCOL: malformed. */
enum err_code link_stacks_check(const json_t *event, struct err *err);

/* That it was told to end; RET_CAUSE is borrowed from EVENT.  ERR_PROTOCOL: malformed. */
enum err_code link_ending_check(const json_t *event, const char **ret_cause,
                                int64_t *ret_notice_ms, struct err *err);

/* The runs that an agent was told to start and has not yet reported as ended. */
struct link_runs {
    struct link_runs_entry *entries;
    int count;
};

void link_runs_add(struct link_runs *runs, const char *id);

/* Checks EVENT, which is called NAME, and passes it on to EVENTS.  Event types that
 * nobody knows are ignored.  ERR_PROTOCOL: a field is missing or malformed, the run is
 * not one of these, or the event is not due. */
enum err_code link_runs_event(struct link_runs *runs, const char *name,
                              const json_t *event, const struct link_events *events,
                              void *arg, struct err *err);

void link_runs_release(struct link_runs *runs);

#endif
