/* The devices of a cell as JSON, and which of them dissent. */
#ifndef API_RENDER_DEVICES_JSON_H
#define API_RENDER_DEVICES_JSON_H

#include "daemon/base/json_out.h"
#include "daemon/jobs/cell.h"
#include "db/dissent/device_list.h"

/* The members "agreement", "devices" (at most LIMIT), "devices_truncated" and "dissent".
 * CLASSES: the cell's digests, most frequent first, named A, B, C ... here. */
void cell_devices_json(struct json_out *out, const struct cell *cell,
                       const struct device_list *list, const struct cell_digest *classes,
                       int class_count, int limit);

#endif
