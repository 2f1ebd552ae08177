/* External workloads: commands of the configuration that write the run protocol
 * (workloads/PROTOCOL.md) to descriptor 3.  What is configured is an object:
 *
 *   {"name":"resnet", "version":1, "title":…, "summary":…, "backend":"cpu"|"cuda",
 *    "command":[program, argument, …], "directory":…, "files":[…], "environment":{…},
 *    "sizes":{"small":["--epochs","1"]}, "dtypes":["float32"], "threads":2,
 *    "subject":"framework", "subject_name":"PyTorch",
 *    "variants":[{"name":"default", "summary":…, "control":true, "kind":"race",
 *                 "recipe":"TDO", "environment":{…}, "arguments":[…]}],
 *    "no_control":null, "weight_sum":…, "loss":null, "timeout_seconds":600,
 *    "survey":false, "seeded":true, "circumstances":["contention"]}
 *
 * Name, command, variants and subject (daemon/evidence/subject.h: whose computation it
 * is) are required.  A value of `environment` is a text, or null: not set, whatever else
 * would set it.  The first size is the default. */
#ifndef DAEMON_CONFIG_EXTERNAL_H
#define DAEMON_CONFIG_EXTERNAL_H

#include <jansson.h>
#include <stdbool.h>

#include "daemon/base/err.h"

/* Checks WORKLOAD, and completes it in place: every member above is there afterwards
 * ("threads" null where nothing was said), `directory` is absolute.  FOLDER is what a
 * relative directory is relative to, and the default of it; NULL: it must be absolute.
 * ERR_INVALID: the message begins with WHERE and the JSON pointer within WORKLOAD. */
enum err_code external_complete(json_t *workload, const char *where, const char *folder,
                                struct err *err);

/* The name of the stack in which external workloads of BACKEND run. */
const char *external_stack(const char *backend);

/* Whether NAME is reserved: no stack of the configuration may have it. */
bool external_stack_is(const char *name);

/* Whether LIST, of complete workloads, has that one. */
bool external_find(const json_t *list, const char *name, const char *backend);

/* Of a complete workload: the member of that name in its list of variants; NULL without
 * one.  Borrowed. */
json_t *external_variant(const json_t *workload, const char *name);

/* What VARIANT sets beyond its workload: the variables of its recipe, then its own.  An
 * object of texts and nulls; caller frees with json_decref. */
json_t *external_variant_variables(const json_t *variant);

/* Whether the variant or the seed of a run of WORKLOAD decides variable NAME: then it
 * belongs to the case, not to the environment. */
bool external_varies_variable(const json_t *workload, const char *name);

#endif
