#include "api/http/dispatch.h"
#include "api/http/handlers.h"
#include "api/http/reply.h"

void root_get(struct request *r)
{
    if (r->format == FORMAT_HTML) {
        r->arguments[0] = "index.html";
        assets_get(r);
        return;
    }
    dispatch_check_parameters(r, MATRIX_PARAMETERS);
    if (r->problems.count > 0) {
        reply_problems(r);
        return;
    }
    matrix_get(r);
}
