#include "daemon/client/preflight_say.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/buf.h"
#include "daemon/base/clock.h"
#include "daemon/base/json_in.h"
#include "daemon/base/text.h"
#include "daemon/client/preflight_judge.h"

static const char CONDITION[] = "GpuNumericsOK";

/* Without fractions, as Kubernetes writes it. */
static void write_time(int64_t wall_ms, char ret_text[CLOCK_RFC3339_SIZE])
{
    clock_rfc3339(wall_ms, ret_text);
    snprintf(strchr(ret_text, '.'), 2, "Z");
}

static enum preflight_verdict verdict_of(const json_t *said)
{
    return preflight_verdict_of(in_text_or_empty(said, "verdict"));
}

json_t *preflight_text(const char *text)
{
    json_t *value = json_string(text);
    struct buf shown = BUF_INIT;

    if (!value) {
        text_show(&shown, text, strlen(text), "");
        value = json_stringn(shown.data, shown.length);
        buf_release(&shown);
    }
    return value;
}

char *preflight_line(const json_t *report, const struct preflight_facts *facts)
{
    json_t *line = json_pack("{s:s, s:o}", "schema", "reprod.preflight/1", "node",
                             preflight_text(facts->node));
    char at[CLOCK_RFC3339_SIZE], *text;

    clock_rfc3339(facts->now_ms, at);
    json_object_update(line, (json_t *)report);
    json_object_set_new(line, "seconds", json_real(facts->seconds));
    json_object_set_new(line, "version", json_string(facts->version));
    json_object_set_new(line, "at", json_string(at));
    text = json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(6));
    json_decref(line);
    return text;
}

/* Whether what was known before still stands: whatever is not known now is so because
 * others use it. */
static bool is_only_used(const json_t *report)
{
    const json_t *devices = json_object_get(report, "devices"), *device;
    bool used = false;
    size_t i;

    json_array_foreach(devices, i, device)
    {
        enum preflight_verdict verdict = verdict_of(device);

        if (json_is_true(json_object_get(device, "used"))) {
            used = true;
        } else if (verdict != PREFLIGHT_PASSED) {
            return false;
        }
    }
    return used && verdict_of(report) == PREFLIGHT_UNVERIFIED;
}

/* When the condition got STATUS; "": it has another now, or none. */
static const char *since(const json_t *node, const char *status)
{
    const json_t *conditions =
        json_object_get(json_object_get(node, "status"), "conditions");
    const json_t *one;
    size_t i;

    json_array_foreach(conditions, i, one)
    {
        if (strcmp(in_text_or_empty(one, "type"), CONDITION) == 0 &&
            strcmp(in_text_or_empty(one, "status"), status) == 0) {
            return in_text_or_empty(one, "lastTransitionTime");
        }
    }
    return "";
}

/* The cause of the first device that has the machine's verdict, if any. */
static const char *cause_of_device(const json_t *report)
{
    const json_t *devices = json_object_get(report, "devices"), *device;
    size_t i;

    json_array_foreach(devices, i, device)
    {
        if (verdict_of(device) == verdict_of(report)) {
            return in_text_or_empty(device, "cause");
        }
    }
    return "";
}

json_t *preflight_condition(const json_t *report, const json_t *node,
                            const struct preflight_facts *facts)
{
    static const char *const reasons[PREFLIGHT_VERDICTS] = {
        "BitsOfItsEquals", "DeviceDissents", "Unverified", "CannotMeasure"
    };
    enum preflight_verdict verdict = verdict_of(report);
    bool has_gpu = in_int(report, "gpus") > 0;
    bool passed = verdict == PREFLIGHT_PASSED && has_gpu;
    const char *status = passed                          ? "True"
                         : verdict == PREFLIGHT_DISSENTS ? "False"
                                                         : "Unknown";
    const char *reason =
        verdict == PREFLIGHT_PASSED && !has_gpu ? "NoGpu" : reasons[verdict];
    const char *cause = cause_of_device(report), *before = since(node, status);
    char now[CLOCK_RFC3339_SIZE];

    if (is_only_used(report)) {
        return NULL;
    }
    write_time(facts->now_ms, now);
    return json_pack(
        "{s:{s:[{s:s, s:s, s:s, s:o, s:s, s:s}]}}", "status", "conditions", "type",
        CONDITION, "status", status, "reason", reason, "message",
        json_sprintf("reprod preflight: %s%s%s", in_text_or_empty(report, "cause"),
                     cause[0] ? "; " : "", cause),
        "lastHeartbeatTime", now, "lastTransitionTime", before[0] ? before : now);
}

static json_t *event_of(const json_t *device, const struct preflight_facts *facts)
{
    bool dissents = verdict_of(device) == PREFLIGHT_DISSENTS;
    char now[CLOCK_RFC3339_SIZE];

    write_time(facts->now_ms, now);
    return json_pack(
        "{s:i, s:s, s:s, s:s, s:b, s:b, s:s, s:s, s:o, s:[{s:s, s:s}], s:{s:s}, s:s, "
        "s:o, "
        "s:s}",
        "version", 1, "agent", "reprod-preflight", "componentClass", "GPU", "checkName",
        CONDITION, "isFatal", false, "isHealthy", !dissents, "message",
        in_text_or_empty(device, "cause"), "recommendedAction",
        dissents ? "CONTACT_SUPPORT" : "NONE", "errorCode",
        dissents ? json_pack("[s]", "REPROD_DISSENTS") : json_array(), "entitiesImpacted",
        "entityType", "GPU_UUID", "entityValue", in_text_or_empty(device, "uuid"),
        "metadata", "model", in_text_or_empty(device, "model"), "generatedTimestamp", now,
        "nodeName", preflight_text(facts->node), "processingStrategy", "STORE_ONLY");
}

json_t *preflight_events(const json_t *report, const struct preflight_facts *facts)
{
    const json_t *devices = json_object_get(report, "devices"), *device;
    json_t *events = json_array();
    size_t i;

    json_array_foreach(devices, i, device)
    {
        enum preflight_verdict verdict = verdict_of(device);

        if (strcmp(in_text_or_empty(device, "backend"), "cpu") != 0 &&
            (verdict == PREFLIGHT_PASSED || verdict == PREFLIGHT_DISSENTS)) {
            json_array_append_new(events, event_of(device, facts));
        }
    }
    return json_pack("{s:i, s:o}", "version", 1, "events", events);
}
