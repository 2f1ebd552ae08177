/* From a request to its route's handler, or to a refusal: 404 with the nearest path, 405
 * with Allow, 406, or 422 for a query parameter the route does not have. */
#ifndef API_HTTP_DISPATCH_H
#define API_HTTP_DISPATCH_H

#include "api/http/routes.h"
#include "api/http/target.h"

struct request;

struct dispatch_match {
    const struct route *route; /* NULL: no route has this path and method */
    enum format suffix;        /* the format its suffix asks for */
    const char *arguments[2];  /* point into the target */
    char allow[64];            /* the methods this path has; "" if the path is unknown */
};

/* Finds the route for METHOD and TARGET; pure, except that it cuts a suffix off the last
 * segment of TARGET. */
void dispatch_find(const char *method, struct target *target,
                   struct dispatch_match *ret_match);

/* A path like PATH that exists, or NULL. */
const char *dispatch_nearest(const char *path);

/* Finds R's route, checks what it asks for, and calls the handler; or refuses. */
void dispatch(struct request *r);

#endif
