/* Problems: why a request was refused, as RFC 9457 problem details.  Each type has a
 * stable name, a status and a title; GET /problems/{name} explains it.  Pure. */
#ifndef DAEMON_JOBS_PROBLEM_H
#define DAEMON_JOBS_PROBLEM_H

#include "daemon/base/json_out.h"

/* kind, name, status, title */
#define PROBLEM_MAP(X)                                                                   \
    X(PROBLEM_BAD_REQUEST, "bad-request", 400, "The request is malformed")               \
    X(PROBLEM_MALFORMED_JSON, "malformed-json", 400, "The body is not acceptable JSON")  \
    X(PROBLEM_FOREIGN_HOST, "foreign-host", 403, "The Host header names another host")   \
    X(PROBLEM_FOREIGN_ORIGIN, "foreign-origin", 403,                                     \
      "The request comes from a page of another origin")                                 \
    X(PROBLEM_NOT_FOUND, "not-found", 404, "There is no such thing")                     \
    X(PROBLEM_FOLDED, "folded", 410, "The run was folded into a summary")                \
    X(PROBLEM_METHOD, "method-not-allowed", 405, "The method does not apply here")       \
    X(PROBLEM_NOT_ACCEPTABLE, "not-acceptable", 406,                                     \
      "There is no representation that the client accepts")                              \
    X(PROBLEM_CONFLICT, "conflict", 409, "The state does not allow this")                \
    X(PROBLEM_IDEMPOTENCY, "idempotency-conflict", 409,                                  \
      "The idempotency key was used for a different request")                            \
    X(PROBLEM_PRECONDITION, "precondition-failed", 412,                                  \
      "It is not what it was when it was read")                                          \
    X(PROBLEM_TOO_LARGE, "too-large", 413, "The body is too large")                      \
    X(PROBLEM_MEDIA_TYPE, "unsupported-media-type", 415, "The body must be JSON")        \
    X(PROBLEM_INVALID, "invalid-request", 422, "The request cannot be carried out")      \
    X(PROBLEM_UNKNOWN_MEMBER, "unknown-member", 422, "The object has an unknown member") \
    X(PROBLEM_UNKNOWN_WORKLOAD, "unknown-workload", 422, "There is no such workload")    \
    X(PROBLEM_UNKNOWN_VARIANT, "unknown-variant", 422,                                   \
      "None of the workloads has this variant")                                          \
    X(PROBLEM_UNKNOWN_SIZE, "unknown-size", 422, "None of the workloads has this size")  \
    X(PROBLEM_UNKNOWN_DTYPE, "unknown-dtype", 422,                                       \
      "None of the workloads has this dtype")                                            \
    X(PROBLEM_UNKNOWN_DEVICE, "unknown-device", 422, "There is no such device")          \
    X(PROBLEM_UNKNOWN_STACK, "unknown-stack", 422, "There is no such stack")             \
    X(PROBLEM_UNKNOWN_ENVIRONMENT, "unknown-environment", 422,                           \
      "There is no such environment")                                                    \
    X(PROBLEM_UNKNOWN_FRAMEWORK, "unknown-framework", 422,                               \
      "No such framework was measured")                                                  \
    X(PROBLEM_UNKNOWN_TABLE, "unknown-table", 422, "There is no such table of profiles") \
    X(PROBLEM_UNKNOWN_VIEW, "unknown-view", 422, "There is no such view of the matrix")  \
    X(PROBLEM_UNKNOWN_PARAMETER, "unknown-parameter", 422,                               \
      "The query has an unknown parameter")                                              \
    X(PROBLEM_INVALID_PARAMETER, "invalid-parameter", 422,                               \
      "A query parameter has an invalid value")                                          \
    X(PROBLEM_TOO_MANY, "too-many-jobs", 429, "Too much is open; try again later")       \
    X(PROBLEM_HEAD_TOO_LARGE, "head-too-large", 431,                                     \
      "The request line and the headers are too large")                                  \
    X(PROBLEM_INTERNAL, "internal", 500, "reprod failed; the log says more")             \
    X(PROBLEM_BUSY, "busy", 503, "Too busy now; try again")                              \
    X(PROBLEM_NOT_READY, "not-ready", 503, "Not ready yet; try again")                   \
    X(PROBLEM_STORAGE, "storage", 503, "The database fails now; try again")              \
    X(PROBLEM_NO_DEVICE, "no-device", 503, "No device is online; try again")             \
    X(PROBLEM_VERSION, "http-version", 505, "Only HTTP/1.1 and HTTP/1.0 are spoken here")

enum problem_kind {
#define X(kind, name, status, title) kind,
    PROBLEM_MAP(X)
#undef X
        PROBLEM_COUNT
};

struct problem_type {
    const char *name, *title;
    unsigned status;
};
const struct problem_type *problem_type(enum problem_kind kind);

/* One thing that is wrong, and where. */
struct problem {
    enum problem_kind kind;
    char *pointer;   /* JSON pointer into the body; NULL for a parameter */
    char *parameter; /* name of a query parameter; NULL for the body */
    char *detail;
};

enum { PROBLEMS_MAX = 32 };

/* Everything that is wrong with one request; zero-initialised is empty. */
struct problems {
    struct problem items[PROBLEMS_MAX];
    int count;
    int more; /* how many did not fit */
};

void problems_add(struct problems *problems, enum problem_kind kind, const char *pointer,
                  const char *format, ...) __attribute__((format(printf, 4, 5)));
void problems_add_parameter(struct problems *problems, enum problem_kind kind,
                            const char *parameter, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void problems_release(struct problems *problems);

/* What all of them are: the kind they share, or PROBLEM_INVALID. */
enum problem_kind problems_kind(const struct problems *problems);

/* The body of the answer.  PROBLEMS may be NULL or empty: no errors[]. */
void problem_render(struct json_out *out, enum problem_kind kind, const char *detail,
                    const struct problems *problems);

#endif
