/* What a driver says of a GPU: any bytes for its texts and its numbers.  The first byte
 * of the input is what each function returns, the next nine are numbers, the rest is
 * text. */
#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "cuda/nvml/device_facts.h"
#include "cuda/nvml/reader.h"
#include "cuda/nvml/telemetry.h"
#include "tests/fuzz/fuzz.h"

enum { HEAD = 10 };

static struct {
    int code;
    uint64_t number;
    const char *text; /* of `size` bytes, no NUL behind them */
    size_t size;
} said;

/* A driver may fill the buffer to its end, and forget the NUL. */
static int give_text(struct nvml_handle *handle, char *ret_text, unsigned size)
{
    (void)handle;
    memcpy(ret_text, said.text, said.size < size ? said.size : size);
    return said.code;
}

static int give_number(struct nvml_handle *handle, unsigned *ret_number)
{
    (void)handle;
    *ret_number = (unsigned)said.number;
    return said.code;
}

static int give_errors(struct nvml_handle *handle, int errors, int kind,
                       unsigned long long *ret_count)
{
    (void)handle;
    (void)errors;
    (void)kind;
    *ret_count = said.number;
    return said.code;
}

static void check_text(const struct fact_text *fact)
{
    FUZZ_CHECK(memchr(fact->value, '\0', sizeof fact->value));
    FUZZ_CHECK(!fact->known || fact->value[0]);
}

static void tell(struct emit *emit, struct reader *r, const struct nvml_api *api)
{
    struct fact_text name = { .known = false };
    struct fact_text bus = reader_fact_text(said.text, said.size < 32 ? said.size : 32);
    struct fact number = reader_number(r, api->DeviceGetPersistenceMode);
    struct nvml_ecc ecc = reader_ecc(r, NVML_VOLATILE);
    struct nvml_telemetry telemetry = { .sm_mhz = number,
                                        .celsius = number,
                                        .milliwatts = ecc.corrected,
                                        .throttle = ecc.uncorrected,
                                        .since_load = ecc,
                                        .remap_pending = number };

    reader_text(r, api->DeviceGetName, &name);
    check_text(&name);
    check_text(&bus);
    FUZZ_CHECK(!number.known || (number.value >= 0 && said.code == NVML_OK));
    FUZZ_CHECK(!ecc.corrected.known || ecc.corrected.value >= 0);
    memcpy(telemetry.cause, r->cause, sizeof telemetry.cause);
    fact_emit_text(emit, "name", &name);
    fact_emit_text(emit, "pci_bus_id", &bus);
    fact_emit_bool(emit, "persistence_mode", number);
    emit_object(emit, "telemetry");
    nvml_emit_sample(emit, &telemetry);
    emit_object_end(emit);
}

/* What the worker writes of it is JSON that the agent reads. */
static void run(const uint8_t *data, size_t size)
{
    static struct emit emit;
    const struct nvml_api api = { .DeviceGetName = give_text,
                                  .DeviceGetPersistenceMode = give_number,
                                  .DeviceGetTotalEccErrors = give_errors };
    char cause[NVML_CAUSE_SIZE] = "";
    struct reader r = { .api = &api, .cause = cause };
    json_error_t error;
    json_t *line;

    if (size < HEAD) {
        return;
    }
    said.code = data[0];
    memcpy(&said.number, data + 2, sizeof said.number);
    said.text = (const char *)data + HEAD;
    said.size = size - HEAD;
    emit_init(&emit, -1);
    emit_begin(&emit);
    tell(&emit, &r, &api);
    FUZZ_CHECK(!emit.too_long);
    FUZZ_CHECK(emit.length + 1 < sizeof emit.line);
    emit.line[emit.length++] = '}';
    line = json_loadb(emit.line, emit.length, JSON_REJECT_DUPLICATES, &error);
    FUZZ_CHECK(line && json_is_object(json_object_get(line, "telemetry")));
    FUZZ_CHECK(said.code == NVML_OK || !json_object_get(line, "name"));
    json_decref(line);
}

FUZZ_TARGET("nvml", run);
