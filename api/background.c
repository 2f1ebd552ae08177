/* GET /v1/background: what is measured while nobody requests anything. */
#include <jansson.h>
#include <stdlib.h>

#include "api/http/handlers.h"
#include "api/http/reply.h"

void background_get(struct request *r)
{
    json_t *background = r->api->hooks.background(r->api->hooks.arg);
    struct json_out out = JSON_OUT_INIT;
    char *text = json_dumps(background, JSON_COMPACT | JSON_REAL_PRECISION(6));

    out_json(&out, NULL, text);
    free(text);
    json_decref(background);
    reply_json(r, MHD_HTTP_OK, &out);
}
