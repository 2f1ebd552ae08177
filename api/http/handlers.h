/* The handlers of all routes (api/http/route_table.def).  Each is called on the loop
 * thread with a request whose path, format and parameters are checked, and replies or
 * goes to the store. */
#ifndef API_HTTP_HANDLERS_H
#define API_HTTP_HANDLERS_H

#include <stdbool.h>

struct request;

#define PARAMETER(variable, ...)
#define ROUTE(handler, ...) void handler(struct request *r);
#include "api/http/route_table.def"
#undef PARAMETER
#undef ROUTE

bool assets_exist(const char *name);

#endif
