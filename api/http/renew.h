/* Pages that read every device: of a large fleet they take tens of milliseconds, and are
 * asked for while it changes all the time.  Such a page is shown for a while, and made
 * anew beside for those who ask next; so nobody waits for it but the first. */
#ifndef API_HTTP_RENEW_H
#define API_HTTP_RENEW_H

#include <stdint.h>

#include "api/http/request.h"

enum { RENEW_DEVICES = 256, RENEW_AGE_MAX_MS = 5000 };

/* How old such a page of R may be: half a millisecond for each device; 0 for less than
 * RENEW_DEVICES of them, and where the client says Cache-Control: no-cache (RFC 9111,
 * 5.2.1.4), as browsers do for the page. */
int64_t renew_age_ms(const struct request *r);

/* R has its reply.  Its state goes over to a request without a client, for which FN is
 * called as in request_read; then, if FN succeeded without having replied, KEEP on the
 * loop.  What KEEP or FN reply goes nowhere. */
void request_renew(struct request *r, store_fn fn, void (*keep)(struct request *renewal));

#endif
