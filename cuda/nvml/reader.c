#include "cuda/nvml/reader.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static const struct fact unknown = { .known = false };

bool reader_ok(struct reader *reader, int code)
{
    if ((code == NVML_GPU_IS_LOST || code == NVML_RESET_REQUIRED) && !*reader->cause) {
        nvml_describe(code, reader->cause);
    }
    return code == NVML_OK;
}

struct fact reader_fact(unsigned value)
{
    return value == UINT_MAX ? unknown : (struct fact){ true, value };
}

struct fact reader_fact_long(unsigned long long value)
{
    return value > INT64_MAX ? unknown : (struct fact){ true, (int64_t)value };
}

struct fact_text reader_fact_text(const char *text, size_t size)
{
    struct fact_text fact = { .known = false };

    snprintf(fact.value, sizeof fact.value, "%.*s", (int)size, text);
    fact.known = fact.value[0] != '\0' && strcmp(fact.value, "N/A") != 0 &&
                 strcmp(fact.value, "[N/A]") != 0;
    return fact;
}

struct fact reader_number(struct reader *reader,
                          int (*get)(struct nvml_handle *, unsigned *))
{
    unsigned value = UINT_MAX;
    int code = get ? get(reader->handle, &value) : (int)NVML_FUNCTION_NOT_FOUND;

    return reader_ok(reader, code) ? reader_fact(value) : unknown;
}

void reader_text(struct reader *reader,
                 int (*get)(struct nvml_handle *, char *, unsigned),
                 struct fact_text *ret_text)
{
    char text[FACT_TEXT_SIZE] = "";
    int code =
        get ? get(reader->handle, text, sizeof text) : (int)NVML_FUNCTION_NOT_FOUND;

    if (reader_ok(reader, code)) {
        *ret_text = reader_fact_text(text, sizeof text - 1);
    }
}

static struct fact count(struct reader *reader, int errors, int kind)
{
    unsigned long long value = ULLONG_MAX;
    int code = NVML_CALL(reader->api, DeviceGetTotalEccErrors, reader->handle, errors,
                         kind, &value);

    return reader_ok(reader, code) ? reader_fact_long(value) : unknown;
}

struct nvml_ecc reader_ecc(struct reader *reader, int kind)
{
    return (struct nvml_ecc){ .corrected = count(reader, NVML_CORRECTED, kind),
                              .uncorrected = count(reader, NVML_UNCORRECTED, kind) };
}
