/* What to say where something named does not exist: what is most like it. */
#ifndef API_UNKNOWN_H
#define API_UNKNOWN_H

#include "daemon/base/err.h"

struct request;
struct tx;

/* Adds to r->problems that PARAMETER names no environment: ID. */
enum err_code unknown_environment_parameter(struct tx *tx, struct request *r,
                                            const char *parameter, const char *id,
                                            struct err *err);

/* Return ERR_NOT_FOUND with words. */
enum err_code unknown_environment(struct tx *tx, const char *id, struct err *err);
enum err_code unknown_device(struct tx *tx, const char *id, struct err *err);

#endif
