#include "db/matrix.h"

#include <string.h>

#include "daemon/base/mem.h"
#include "db/cells.h"
#include "db/fleet.h"

static bool is_cpu(const struct device_stack *device)
{
    return strcmp(device->backend, "cpu") == 0;
}

void matrix_default_find(const struct device_stack *devices, int count,
                         const char *device, struct matrix_default *ret_default)
{
    const struct device_stack *found = NULL;

    for (int i = 0; i < count; i++) {
        const struct device_stack *d = &devices[i];

        if (d->is_default && (!*device || strcmp(d->id, device) == 0) &&
            (!found || (is_cpu(found) && !is_cpu(d)))) {
            found = d;
        }
    }
    copy_text(ret_default->device, sizeof ret_default->device, found ? found->id : "");
    copy_text(ret_default->stack, sizeof ret_default->stack, found ? found->stack : "");
}

enum err_code matrix_default_environment(struct tx *tx,
                                         const struct matrix_default *standard,
                                         char ret_id[DIGEST_TEXT_SIZE], struct err *err)
{
    return environments_of_stack(tx, standard->device, standard->stack, ret_id, err);
}

static void add_cell(void *arg, const struct cell *cell)
{
    matrix_add(arg, cell);
}

enum err_code matrix_read(struct tx *tx, const char *environment, struct matrix *m,
                          struct err *err)
{
    enum err_code code =
        environments_get(tx, environment, &m->environment, &m->environment_json, err);

    m->has_environment = code == ERR_OK;
    if (code == ERR_OK) {
        code = cells_each(tx, m->environment.id, m->historic ? m->as_of_ms : 0, add_cell,
                          m, err);
    }
    matrix_settle(m);
    return code;
}
