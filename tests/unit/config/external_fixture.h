/* What tests of external workloads share: one workload, with its files in a folder. */
#ifndef TESTS_UNIT_CONFIG_EXTERNAL_FIXTURE_H
#define TESTS_UNIT_CONFIG_EXTERNAL_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/mem.h"
#include "daemon/config/external.h"

static char folder[] = "/tmp/reprod-external-XXXXXX";

static const char configured[] =
    "{\"name\":\"own\",\"command\":[\"sh\",\"train.sh\",\"a word\"],\"version\":3,"
    " \"subject\":\"framework\",\"subject_name\":\"PyTorch\","
    " \"files\":[\"model\"],\"environment\":{\"A\":\"1\",\"B\":\"1\",\"LANG\":null},"
    " \"sizes\":{\"small\":[\"-n\",\"1\"],\"large\":[\"-n\",\"9\"]},\"timeout_seconds\":"
    "7,"
    " \"variants\":[{\"name\":\"plain\",\"control\":true},"
    "  {\"name\":\"set\",\"recipe\":\"TDO\",\"arguments\":[\"-d\"],"
    "   \"environment\":{\"B\":\"2\",\"OMP_NUM_THREADS\":null}}]}";

static inline void write_file(const char *name, const char *text)
{
    char *path = xasprintf("%s/%s", folder, name);
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
    free(path);
}

/* Complete, with the member at KEY replaced by VALUE (as JSON) unless that is NULL. */
static inline json_t *workload_with(const char *key, const char *value)
{
    json_t *workload = json_loads(configured, 0, NULL);
    struct err err;

    assert_non_null(workload);
    if (value) {
        json_object_set_new(workload, key, json_loads(value, JSON_DECODE_ANY, NULL));
    }
    if (external_complete(workload, "here", folder, &err) != ERR_OK) {
        fail_msg("%s", err.message);
    }
    return workload;
}

static inline int make_folder(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    write_file("train.sh", "true\n");
    write_file("model", "1\n");
    return 0;
}

static inline int remove_folder(void **state)
{
    static const char *const names[] = {
        "package/.hidden",
        "package/__pycache__/a.pyc",
        "package/__pycache__",
        "package/inner/b.py",
        "package/inner/c.py",
        "package/inner",
        "package/a.py",
        "package/loop",
        "package",
        "train.sh",
        "model",
        "large",
        "pipe",
        "",
    };

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *path = xasprintf("%s/%s", folder, names[i]);

        remove(path);
        free(path);
    }
    return 0;
}

#endif
