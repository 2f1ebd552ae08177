#include "api/http/handlers.h"
#include "api/http/reply.h"
#include "daemon/base/embed.h"

void openapi_get(struct request *r)
{
    const struct embed *file = embed_find("api/openapi.json");

    if (file) {
        reply_file(r, "application/json", file->start, embed_size(file));
    } else {
        reply_problem(r, PROBLEM_INTERNAL, "this build has no description of itself");
    }
}
