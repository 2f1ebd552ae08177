#include "daemon/webhooks/cloud_event.h"

#include <string.h>

#include "daemon/base/json_out.h"

void cloud_event_body(const struct cloud_event *event, struct buf *ret_body)
{
    struct json_out out = JSON_OUT_INIT;
    size_t length = strlen(event->data);

    out_open(&out, NULL, '{');
    out_text(&out, "specversion", "1.0");
    out_text(&out, "id", event->id);
    out_text(&out, "source", event->source);
    out_format(&out, "type", WEBHOOK_TYPE_PREFIX "%s", webhook_type_name(event->type));
    out_time(&out, "time", event->at_ms);
    out_text(&out, "subject", event->subject);
    out_text(&out, "datacontenttype", "application/json");
    if (length > CLOUD_EVENT_DATA_MOST) {
        out_open(&out, "data", '{');
        out_int(&out, "too_large", (int64_t)length);
        out_close(&out, '}');
    } else {
        out_json(&out, "data", event->data);
    }
    out_close(&out, '}');
    *ret_body = out.buf;
}
