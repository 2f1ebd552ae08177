/* Heavy reads that several clients ask for at a time are made once.
 *
 * A request joins one that is in the store for the same target, in the same format, and
 * that read nothing older; both then get the one reply.  Loop thread only. */
#ifndef API_HTTP_FLIGHT_H
#define API_HTTP_FLIGHT_H

#include <stdbool.h>

#include "api/http/request.h"

/* Whether R waits for another one's reply from now on; else R is one that others may
 * join. */
bool flight_join(struct request *r);

/* R, which may have been joined, has its reply: each of those that joined it gets the
 * same, and is handed to RESUME. */
void flight_land(struct request *r, void (*resume)(struct request *r));

#endif
