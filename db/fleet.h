/* Hosts, devices and environments in the database. */
#ifndef DB_FLEET_H
#define DB_FLEET_H

#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/jobs/device.h"

struct run_record;
struct run_result;
struct tx;

/* Insert, or refresh what is known and last_seen.  The host of a device must have been
 * seen (ERR_INVALID).  first_seen_ms 0: as last_seen_ms. */
enum err_code hosts_seen(struct tx *tx, const struct host *host, struct err *err);
enum err_code devices_seen(struct tx *tx, const struct device *device, struct err *err);

enum err_code hosts_each(struct tx *tx, void (*visit)(void *arg, const struct host *host),
                         void *arg, struct err *err);
enum err_code devices_each(struct tx *tx,
                           void (*visit)(void *arg, const struct device *device),
                           void *arg, struct err *err);

/* Of all, in their order: at most LIMIT, behind the first BEFORE. */
enum err_code devices_page(struct tx *tx, int64_t before, int limit,
                           void (*visit)(void *arg, const struct device *device),
                           void *arg, struct err *err);

/* The one with this id, if it is there. */
enum err_code devices_named(struct tx *tx, const char *id,
                            void (*visit)(void *arg, const struct device *device),
                            void *arg, struct err *err);

enum err_code devices_of_host(struct tx *tx, const char *host,
                              void (*visit)(void *arg, const struct device *device),
                              void *arg, struct err *err);

/* Most recently used first, at most LIMIT, behind the one with these BEFORE_MS and
 * BEFORE_NUMBER (0: from the first). */
enum err_code environments_each(struct tx *tx, int64_t before_ms, int64_t before_number,
                                int limit,
                                void (*visit)(void *arg, const struct environment *e),
                                void *arg, struct err *err);

/* The environment that DEVICE last reported with STACK: its id, "" when there is none. */
enum err_code environments_of_stack(struct tx *tx, const char *device, const char *stack,
                                    char ret_id[DIGEST_TEXT_SIZE], struct err *err);

/* By id, or, for "", the one most recently used.  ERR_NOT_FOUND.  ret_json: caller frees;
 * ret_environment->json is NULL. */
enum err_code environments_get(struct tx *tx, const char *id,
                               struct environment *ret_environment, char **ret_json,
                               struct err *err);

/* Stores the environment and libraries that RESULT reports, and that they are the latest
 * of the run's device and stack.  Numbers are 0 where it never said. */
enum err_code environments_store(struct tx *tx, const struct run_record *run,
                                 const struct run_result *result,
                                 int64_t *ret_environment, int64_t *ret_libraries,
                                 struct err *err);

/* The environment in which RUN counts: ENVIRONMENT, the one it said (0: none); else, for
 * an answer, the latest that its device reported with its stack; else 0. */
enum err_code environments_of_run(struct tx *tx, const struct run_record *run,
                                  int64_t environment, int64_t *ret_environment,
                                  struct err *err);

#endif
