#include "daemon/config/config_workloads.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/config/external.h"

/* Each is handed to the agent as an argument, and in its hello with all others. */
enum { WORKLOADS_MAX = 64, BYTES_MAX = 16 * 1024 };

/* Commands run where the file lies, unless they say otherwise.  Caller frees. */
static char *folder_of(const char *file)
{
    char *path = realpath(file, NULL);
    char *slash = path ? strrchr(path, '/') : NULL;

    if (slash) {
        slash[slash == path] = '\0';
    }
    return path;
}

static enum err_code add_workload(json_t *list, json_t *workload, const char *where,
                                  const char *folder, struct err *err)
{
    const char *name;
    const char *backend;

    if (json_dumpb(workload, NULL, 0, JSON_COMPACT) > BYTES_MAX) {
        return err_set(err, ERR_INVALID, "%s: is longer than %d bytes", where, BYTES_MAX);
    }
    if (external_complete(workload, where, folder, err) != ERR_OK) {
        return err->code;
    }
    name = json_string_value(json_object_get(workload, "name"));
    backend = json_string_value(json_object_get(workload, "backend"));
    if (external_find(list, name, backend)) {
        return err_set(err, ERR_INVALID, "%s/name: '%s' is there already", where, name);
    }
    json_array_append(list, workload);
    return ERR_OK;
}

enum err_code config_read_workloads(const char *file, json_t *value, json_t **ret_list,
                                    struct err *err)
{
    json_t *list = json_array();
    char *folder = folder_of(file);
    enum err_code code = ERR_OK;
    size_t i;
    json_t *workload;

    if (!json_is_array(value) || json_array_size(value) > WORKLOADS_MAX) {
        code = err_set(err, ERR_INVALID, "%s: /workloads: must be an array of at most %d",
                       file, WORKLOADS_MAX);
    }
    json_array_foreach(value, i, workload)
    {
        char *where = xasprintf("%s: /workloads/%zu", file, i);

        if (code == ERR_OK) {
            code = add_workload(list, workload, where, folder, err);
        }
        free(where);
    }
    free(folder);
    if (code != ERR_OK) {
        json_decref(list);
        return code;
    }
    json_decref(*ret_list);
    *ret_list = list;
    return ERR_OK;
}
