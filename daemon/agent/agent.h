/* The agent: one process a host that runs workers for the daemon and survives every one
 * of them.  It speaks JSON lines on standard input and output (workloads/PROTOCOL.md) and
 * logs on standard error. */
#ifndef DAEMON_AGENT_AGENT_H
#define DAEMON_AGENT_AGENT_H

/* `reprod agent`; argv[0] is "agent".  Returns the exit code: 0 when its standard input
 * ended, it was drained, or SIGTERM or SIGINT came; 1 when the daemon broke the protocol
 * or could not be written to; 2 for a wrong command line. */
int agent_main(int argc, char **argv);

#endif
