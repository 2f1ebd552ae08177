/* What to say where something named does not exist: what is most like it. */
#ifndef API_UNKNOWN_H
#define API_UNKNOWN_H

#include "daemon/base/err.h"

struct profile_set;
struct profile_table;
struct request;
struct tx;

/* Adds to r->problems that PARAMETER names no environment: ID. */
enum err_code unknown_environment_parameter(struct tx *tx, struct request *r,
                                            const char *parameter, const char *id,
                                            struct err *err);

/* The table of PROFILES that the query names, or the first; NULL after it added to
 * r->problems that there is none. */
const struct profile_table *param_table(struct request *r,
                                        const struct profile_set *profiles);

/* Return ERR_NOT_FOUND with words. */
enum err_code unknown_environment(struct tx *tx, const char *id, struct err *err);
enum err_code unknown_device(struct tx *tx, const char *id, struct err *err);
enum err_code unknown_host(struct tx *tx, const char *name, struct err *err);

#endif
