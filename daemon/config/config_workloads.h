/* The setting "workloads" of the configuration: external workloads. */
#ifndef DAEMON_CONFIG_CONFIG_WORKLOADS_H
#define DAEMON_CONFIG_CONFIG_WORKLOADS_H

#include <jansson.h>

#include "daemon/base/err.h"

/* Checks and completes the workloads of VALUE, as FILE has it, and puts them into
 * *RET_LIST in place of the array that is there.  ERR_INVALID: the message begins with
 * FILE and the JSON pointer. */
enum err_code config_read_workloads(const char *file, json_t *value, json_t **ret_list,
                                    struct err *err);

#endif
