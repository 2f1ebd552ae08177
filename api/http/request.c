#include "api/http/request.h"

#include <stdlib.h>

const char *request_header(const struct request *r, const char *name)
{
    return MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, name);
}

const char *request_parameter(const struct request *r, const char *name)
{
    return target_parameter(&r->target, name);
}

void request_keep(struct request *r, void *state, void (*free_state)(void *state))
{
    if (r->state) {
        (r->state_free ? r->state_free : free)(r->state);
    }
    r->state = state;
    r->state_free = free_state;
}

void api_kick(struct api *api)
{
    api->kicked = true;
    if (!api->pumping) {
        api->hooks.kick(api->hooks.arg);
    }
}
