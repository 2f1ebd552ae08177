/* What a host is, besides its stacks and devices: facts that are no part of an
 * environment, and of which somebody may ask later when they changed. */
#ifndef DAEMON_AGENT_HOST_FACTS_H
#define DAEMON_AGENT_HOST_FACTS_H

#include <jansson.h>

/* {"kernel","cpu_microcode","cpu_governor"}: the release of the kernel, the firmware of
 * the processor, and the policy of its clock; without what the kernel does not tell.  New
 * reference. */
json_t *host_facts(void);

#endif
