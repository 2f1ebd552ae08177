/* GET /: the page for a browser, the matrix for everybody else. */
#include "api/http/handlers.h"
#include "api/http/request.h"

void root_get(struct request *r)
{
    if (r->format == FORMAT_HTML) {
        r->arguments[0] = "index.html";
        assets_get(r);
        return;
    }
    matrix_get(r);
}
