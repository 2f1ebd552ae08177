#include "api/render/cost_json.h"

void cost_json(struct json_out *out, const struct cost *cost, const char *against)
{
    if (!out_object(out, "cost", cost->known)) {
        return;
    }
    out_text(out, "against", against);
    out_real(out, "median", cost->median);
    out_real(out, "low", cost->low);
    out_real(out, "high", cost->high);
    out_close(out, '}');
}
