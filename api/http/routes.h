/* The routes: what the interface offers.  The rows are in api/http/route_table.def, the
 * one place that a new route touches in addition to the file of its resource. */
#ifndef API_HTTP_ROUTES_H
#define API_HTTP_ROUTES_H

#include <stdbool.h>
#include <stdint.h>

#include "api/http/negotiate.h"
#include "daemon/jobs/problem.h"

struct request;

enum { ROUTE_FORMATS_MAX = 5, ROUTE_PARAMETERS_MAX = 14 };
enum { PARAM_LIMIT_DEFAULT = 100, PARAM_LIMIT_MAX = 1000, TRACE_LIMIT_MAX = 10000 };

/* What a parameter may hold.  api/http/params.c checks it, /openapi.json describes it. */
enum parameter_type {
    PARAM_TEXT,   /* anything; the handler checks it, or the store */
    PARAM_NAME,   /* text of 1 to `max` bytes */
    PARAM_ID,     /* of a `noun`: a job or a run */
    PARAM_DIGEST, /* of an environment */
    PARAM_NUMBER, /* from 1; of a `noun` in a path */
    PARAM_LIMIT,  /* from 1 to `max`; PARAM_LIMIT_DEFAULT if it is not given */
    PARAM_TIME,   /* RFC 3339 */
    PARAM_RANGE,  /* "7" or "30-40", from 0 */
    PARAM_CHOICE  /* one of what `choice` gives; the first if it is not given */
};

struct parameter {
    const char
        *name; /* NULL ends a list; of the path if it has {name}, else of the query */
    const char *help; /* NULL: none */
    enum parameter_type type;
    bool required;
    int64_t max;
    const char *noun;
    const char *(*choice)(int index); /* NULL behind the last */
    bool has_default;                 /* of a PARAM_CHOICE */
    enum problem_kind problem;        /* 0: PROBLEM_INVALID_PARAMETER */
};

struct route {
    const char *method;
    const char *pattern; /* "/v1/jobs/{id}"; {…} is one segment */
    const char *help;
    const char *notes; /* what else is to be said; NULL: nothing */
    const struct parameter *parameters[ROUTE_PARAMETERS_MAX]; /* NULL behind the last */
    enum format
        formats[ROUTE_FORMATS_MAX]; /* in which it is available, the default first */
    const char *columns;   /* of its table as text and CSV (api/render/tabulate.h) */
    const char *operation; /* the handler's name */
    void (*handle)(struct request *r);
    bool (*exists)(const char *argument); /* whether {…} names something; NULL: always */
    bool heavy; /* a read of it may take more than a few milliseconds */
    /* Names of what api/openapi.json describes; NULL: none. */
    const char *schema;   /* of the JSON it answers */
    const char *body;     /* of the JSON it takes */
    bool creates;         /* 201, or 200 for a key that was used before */
    bool makes;           /* 201; it takes no key */
    const char *refusals; /* statuses in addition to those of any route of its kind */
};

extern const struct route routes[];
extern const int route_count;

/* Whether PARAMETER is a segment of ROUTE's path. */
bool route_has_segment(const struct route *route, const struct parameter *parameter);

#endif
