/* The table of routes: the one place that says what the interface offers. */
#ifndef API_HTTP_ROUTES_H
#define API_HTTP_ROUTES_H

#include <stdbool.h>

#include "api/http/negotiate.h"

struct request;
struct target;

enum { ROUTE_FORMATS_MAX = 5 };

/* The parameters of every view of the matrix. */
#define MATRIX_PARAMETERS "view table environment device as_of"

struct route {
    const char *method;
    const char *pattern; /* "/v1/jobs/{id}"; {…} stands for one segment */
    enum format formats[ROUTE_FORMATS_MAX]; /* what it can be had as, the default first */
    const char *parameters; /* of the query, separated by blanks; NULL: none; "*": any */
    const char *columns;    /* of its table as text and CSV (api/render/tabulate.h) */
    void (*handle)(struct request *r);
    bool (*exists)(const char *argument); /* whether {…} names something; NULL: always */
    const char *help;
};

extern const struct route routes[];
extern const int route_count;

#endif
