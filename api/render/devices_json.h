/* The devices of a cell as JSON, and which of them dissent. */
#ifndef API_RENDER_DEVICES_JSON_H
#define API_RENDER_DEVICES_JSON_H

#include "daemon/base/json_out.h"
#include "daemon/jobs/cell.h"
#include "db/dissent/device_list.h"

/* A device as an object. */
void cell_device_json(struct json_out *out, const struct cell *cell,
                      const struct cell_device *device, const struct cell_digest *classes,
                      int class_count);

/* The members "agreement", "agreement_words", "device_count" and "camps". */
void cell_camps_json(struct json_out *out, const struct device_list *list,
                     const struct cell_digest *classes, int class_count);

/* The members "agreement", "devices" (at most LIMIT), "devices_truncated" and "dissent".
 * CLASSES: the cell's digests, most frequent first, named A, B, C ... here. */
void cell_devices_json(struct json_out *out, const struct cell *cell,
                       const struct device_list *list, const struct cell_digest *classes,
                       int class_count, int limit);

#endif
