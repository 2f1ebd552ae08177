/* What the files of this folder share: the server's own state.  Loop thread only. */
#ifndef API_HTTP_SERVER_H
#define API_HTTP_SERVER_H

#include <microhttpd.h>

#include "api/api.h"
#include "api/http/cache.h"
#include "api/http/connection.h"
#include "api/http/stream.h"

struct api {
    struct api_options options; /* texts are owned */
    struct api_hooks hooks;
    struct store *store;
    struct MHD_Daemon *mhd;
    int port;
    int listen_fd; /* ours again after api_quiesce; else -1 */
    bool pumping;  /* inside api_pump */
    bool kicked;   /* something was resumed: run once more */
    bool quiescing;
    unsigned last_connections; /* open at the end of the last pump */
    int requests;              /* begun and not completed */
    int in_store;              /* of these, waiting for the store */
    struct connections connections;
    struct streams streams;
    struct cache cache;
};

/* Something was resumed: have api_pump called soon. */
void api_kick(struct api *api);

#endif
