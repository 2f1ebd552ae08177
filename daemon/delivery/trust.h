/* The certificate authorities that https is verified by, read when they are first needed,
 * beside the loop.  Embedded in their owner.  Loop thread only. */
#ifndef DAEMON_DELIVERY_TRUST_H
#define DAEMON_DELIVERY_TRUST_H

#include <stdbool.h>
#include <uv.h>

#include "daemon/base/err.h"
#include "daemon/delivery/tls.h"

struct trust {
    uv_loop_t *loop;
    const char *ca_file;     /* further authorities; NULL: none.  Borrowed */
    void (*read)(void *arg); /* they were, or could not be */
    void *arg;

    struct tls_trust *tls; /* NULL: not read yet, or it failed: then ERR says why */
    struct err err;

    uv_work_t work; /* the rest is private */
    bool reading;
};

/* False: they are being read, and `read` comes. */
bool trust_is_known(struct trust *trust);

/* What failed is tried again at the next trust_is_known. */
void trust_forget_failure(struct trust *trust);

void trust_release(struct trust *trust); /* nothing is being read */

#endif
