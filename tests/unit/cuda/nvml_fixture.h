/* What tests of cuda/nvml share: a fake libnvidia-ml.so.1 that replays inventories
 * (tests/fixtures/nvml/fake_nvml.h).  A process loads NVML once, so the test starts
 * itself again for every question, and reads what that prints: one object. */
#ifndef TESTS_UNIT_CUDA_NVML_FIXTURE_H
#define TESTS_UNIT_CUDA_NVML_FIXTURE_H

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "cuda/nvml/device_facts.h"
#include "cuda/nvml/processes.h"
#include "cuda/nvml/telemetry.h"

enum { NVML_LONG_MS = 60000, NVML_SHORT_MS = 50, NVML_STATUS = 7 };

#define UUID "GPU-00000000-1111-2222-3333-444455556600"

static struct emit nvml_line;
static char nvml_program[PATH_MAX];

/* The other side: prints one object. */

static inline void nvml_print_list(void)
{
    static struct nvml_inventory inventory;
    char cause[NVML_CAUSE_SIZE] = "";

    if (!nvml_inventory_read(&inventory, NVML_LONG_MS, cause)) {
        emit_string(&nvml_line, "cause", cause);
        return;
    }
    emit_array(&nvml_line, "gpus");
    for (int i = 0; i < inventory.gpu_count; i++) {
        emit_object(&nvml_line, NULL);
        fact_emit_text(&nvml_line, "uuid", &inventory.gpus[i].uuid);
        emit_string(&nvml_line, "cause", inventory.gpus[i].cause);
        emit_object_end(&nvml_line);
    }
    emit_array_end(&nvml_line);
}

static inline void nvml_print_device(const char *uuid)
{
    emit_object(&nvml_line, "versions");
    nvml_emit_driver(&nvml_line);
    nvml_emit_versions(&nvml_line);
    emit_object_end(&nvml_line);
    emit_object(&nvml_line, "attributes");
    nvml_emit_device_attributes(&nvml_line, uuid);
    emit_object_end(&nvml_line);
    emit_object(&nvml_line, "telemetry");
    nvml_emit_telemetry(&nvml_line, uuid);
    emit_object_end(&nvml_line);
}

static inline void nvml_print_hung(const char *uuid)
{
    static struct nvml_inventory inventory;
    struct nvml_telemetry telemetry;
    char cause[NVML_CAUSE_SIZE] = "";

    emit_object(&nvml_line, "telemetry");
    nvml_telemetry_read(uuid, NVML_SHORT_MS, &telemetry);
    nvml_emit_sample(&nvml_line, &telemetry);
    emit_object_end(&nvml_line);
    /* Not waited for again: this would take a day. */
    emit_bool(&nvml_line, "answered", nvml_inventory_read(&inventory, 86400000, cause));
    emit_string(&nvml_line, "cause", cause);
}

static inline int nvml_child(const char *mode, const char *uuid)
{
    alarm(120); /* a test that waits for ever fails */
    emit_init(&nvml_line, STDOUT_FILENO);
    emit_begin(&nvml_line);
    if (strcmp(mode, "list") == 0) {
        nvml_print_list();
    } else if (strcmp(mode, "processes") == 0) {
        nvml_emit_processes(&nvml_line);
    } else if (strcmp(mode, "hung") == 0) {
        nvml_print_hung(uuid);
    } else {
        nvml_print_device(uuid);
    }
    return emit_end(&nvml_line) == 0 ? NVML_STATUS : EXIT_FAILURE;
}

/* This side. */

static inline const char *nvml_build(void)
{
    const char *folder = getenv("REPROD_BUILD");

    return folder ? folder : "build";
}

/* What the program prints in MODE with the NVML in folder LIBRARIES. */
static inline json_t *nvml_ask_of(const char *libraries, const char *inventory,
                                  const char *mode, const char *uuid)
{
    char command[3 * PATH_MAX];
    json_error_t error;
    json_t *answer;
    FILE *pipe;

    snprintf(command, sizeof command,
             "LD_LIBRARY_PATH=%s REPROD_FAKE_NVML=tests/fixtures/nvml/%s.txt '%s' %s %s",
             libraries, inventory, nvml_program, mode, uuid);
    pipe = popen(command, "r");
    assert_non_null(pipe);
    answer = json_loadf(pipe, JSON_REJECT_DUPLICATES, &error);
    if (!answer) {
        fail_msg("%s: %s", command, error.text);
    }
    assert_int_equal(WEXITSTATUS(pclose(pipe)), NVML_STATUS);
    return answer;
}

static inline json_t *nvml_ask(const char *inventory, const char *mode, const char *uuid)
{
    char libraries[PATH_MAX];

    snprintf(libraries, sizeof libraries, "%s/tests/nvml", nvml_build());
    return nvml_ask_of(libraries, inventory, mode, uuid);
}

static inline void nvml_check(const json_t *answer, const char *member,
                              const char *expected)
{
    json_t *wanted = json_loads(expected, JSON_DECODE_ANY, NULL);
    json_t *got = json_object_get(answer, member);

    assert_non_null(wanted);
    if (!json_equal(got, wanted)) {
        fail_msg("%s is %s\nnot %s", member, json_dumps(got, JSON_ENCODE_ANY), expected);
    }
    json_decref(wanted);
}

static inline const char *nvml_text_of(const json_t *answer, const char *object,
                                       const char *member)
{
    const char *text =
        json_string_value(json_object_get(json_object_get(answer, object), member));

    return text ? text : "";
}

/* Whether this process is one that was asked, and has to be nvml_child. */
static inline bool nvml_is_child(int argc)
{
    ssize_t length = readlink("/proc/self/exe", nvml_program, sizeof nvml_program - 1);

    assert_true(length > 0);
    return argc == 3;
}

#endif
