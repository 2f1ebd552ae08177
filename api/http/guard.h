/* Refuses requests that two readers could understand differently, and those that a
 * hostile web page makes a browser send.  The library lets both through. */
#ifndef API_HTTP_GUARD_H
#define API_HTTP_GUARD_H

#include <stdbool.h>

struct request;

/* Whether AUTHORITY ("127.0.0.1:7357") names this machine's loopback: a page that made
 * its own name resolve to it (DNS rebinding) still sends its own name.  Pure. */
bool guard_host_is_loopback(const char *authority);

/* Whether ORIGIN is that of the page this server itself serves to HOST.  Pure. */
bool guard_origin_is_own(const char *origin, const char *host);

/* Checks lengths, Host and Origin.  Returns false after having replied. */
bool guard_admits(struct request *r);

#endif
