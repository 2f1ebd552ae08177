/* Taking a request through the store: it is suspended, its work is done on a reader or
 * the writer thread, and it is resumed on the loop. */
#ifndef API_HTTP_WORK_H
#define API_HTTP_WORK_H

#include "api/http/request.h"

/* Runs FN(tx, request) on a reader thread; there the request is FN's alone.  Then, if FN
 * succeeded without having replied, THEN on the loop, which replies or goes on with more
 * work.  A failure of FN is the reply (reply_error).  THEN may be NULL if FN replies. */
void request_read(struct request *r, store_fn fn, void (*then)(struct request *r));

/* As above, on the writer thread; THEN follows when the write is durable. */
void request_write(struct request *r, store_fn fn, void (*then)(struct request *r));

#endif
