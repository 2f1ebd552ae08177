/* The agent: one process a host that runs workers for the daemon and survives every one
 * of them.  It speaks JSON lines on standard input and output (workloads/PROTOCOL.md) and
 * logs on standard error. */
#ifndef DAEMON_AGENT_AGENT_H
#define DAEMON_AGENT_AGENT_H

#include <jansson.h>
#include <stdint.h>

#include "daemon/agent/external.h"
#include "daemon/agent/stack.h"
#include "daemon/base/err.h"

/* `reprod agent`; argv[0] is "agent".  Returns the exit code: 0 when its standard input
 * ended, it was drained, or SIGTERM or SIGINT came; 1 when the daemon broke the protocol,
 * could not be written to or says nothing any more; 2 for a wrong command line.
 *
 * SIGTERM is how a site takes a host back: the agent says so, starts nothing more, and
 * lets runs end for as long as the notice.  Then, or at a second SIGTERM, it cancels
 * them.  Of the death of a daemon on this host, and at SIGINT, it ends at once. */
int agent_main(int argc, char **argv);

/* Its command line. */

enum { OPTIONS_STACKS_MAX = 64 };

struct agent_options {
    struct stack stacks[OPTIONS_STACKS_MAX + EXTERNAL_STACKS_MAX];
    int stack_count;
    json_t
        *workloads;  /* array of complete external workloads (daemon/config/external.h) */
    int64_t threads; /* of a CPU run */
    int64_t grace_ms;  /* between the steps of the kill ladder */
    int64_t probe_ms;  /* deadline of each probe */
    int64_t notice_s;  /* that runs have after SIGTERM */
    int64_t silence_s; /* after which a daemon counts as gone, since it should ping; 0:
                          never */
    bool help;
};

/* ERR_INVALID names the option.  Release in any case. */
enum err_code agent_options_parse(struct agent_options *ret_options, int argc,
                                  char **argv, struct err *err);
void agent_options_release(struct agent_options *options);

extern const char agent_usage[];

#endif
