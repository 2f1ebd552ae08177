/* Finds oneDNN in this process: the shared library that the variable REPROD_ONEDNN names,
 * as dlopen(3) takes it ("libdnnl.so.2", or a path).  A stack sets it.  Where it is not
 * set nothing is loaded, and no run of the stack depends on a library that happens to be
 * installed. */
#ifndef WORKLOADS_ONEDNN_LOADER_H
#define WORKLOADS_ONEDNN_LOADER_H

#include "workloads/onednn/api.h"

struct onednn {
    const char *reason;    /* why it cannot be used, one line; NULL when it can */
    const char *version;   /* "2.6.3"; NULL when nothing was loaded */
    struct onednn_api api; /* valid when `reason` is NULL */
};

/* Loads the library on the first call.  Borrowed: valid until the process ends. */
const struct onednn *onednn_load(void);

#endif
