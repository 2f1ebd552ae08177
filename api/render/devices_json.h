/* The devices of a cell as JSON, and which of them dissent. */
#ifndef API_RENDER_DEVICES_JSON_H
#define API_RENDER_DEVICES_JSON_H

#include "daemon/base/json_out.h"
#include "daemon/jobs/cell.h"
#include "db/dissent/device_list.h"

/* What is known beside the devices.  Borrowed. */
struct devices_shown {
    const struct cell_digest *digests; /* most frequent first, named A, B, C ... here */
    int digest_count;
    int64_t now_ms, stale_after_ms; /* as of verdict_at */
};

/* A device as an object, with the verdict that its own runs earned. */
void cell_device_json(struct json_out *out, const struct cell *cell,
                      const struct cell_device *device,
                      const struct devices_shown *shown);

/* The members "agreement", "agreement_words", "device_count" and "camps". */
void cell_camps_json(struct json_out *out, const struct device_list *list,
                     const struct devices_shown *shown);

/* The members "agreement", "devices" (at most LIMIT), "devices_truncated" and "dissent".
 */
void cell_devices_json(struct json_out *out, const struct cell *cell,
                       const struct device_list *list, const struct devices_shown *shown,
                       int limit);

#endif
