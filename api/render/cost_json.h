/* The cost of a variant as JSON. */
#ifndef API_RENDER_COST_JSON_H
#define API_RENDER_COST_JSON_H

#include "daemon/base/json_out.h"
#include "daemon/evidence/times.h"

/* Key "cost": how many times as long as variant AGAINST; null where it is not known. */
void cost_json(struct json_out *out, const struct cost *cost, const char *against);

#endif
