/* Refusals that the library makes by itself, before it calls anybody: of a request line
 * without a version, of a head that is too large, of a bad Content-Length.  It has no
 * hook for them, and its own reply is HTML with some headers twice.
 *
 * It queues that reply through a function which it exports, so the dynamic linker takes
 * ours instead (ELF's rules for symbols: the executable's come first).  Ours sends a
 * problem and has the connection closed.  Where the linker does not do so, a library that
 * is linked statically or bound to itself, the library's reply is what it was; a test
 * shows it.  Loop thread only. */
#ifndef API_HTTP_LIBRARY_ERRORS_H
#define API_HTTP_LIBRARY_ERRORS_H

#include <microhttpd.h>

#include "daemon/jobs/problem.h"

/* MHD_queue_response, for replies of our own. */
enum MHD_Result queue_reply(struct MHD_Connection *connection, unsigned status,
                            struct MHD_Response *response);

/* The same for a request that is refused while its body arrives, when the library takes
 * no reply: a problem of KIND, with DETAIL.  Returns what ends the connection. */
enum MHD_Result refuse_within_body(struct MHD_Connection *connection,
                                   enum problem_kind kind, const char *detail);

#endif
