#include "tests/fuzz/fuzz.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/base/mem.h"
#include "daemon/evidence/catalogue.h"

extern const struct fuzz_target *const __start_reprod_fuzz[];
extern const struct fuzz_target *const __stop_reprod_fuzz[];

int fuzz_target_count(void)
{
    return (int)(__stop_reprod_fuzz - __start_reprod_fuzz);
}

const struct fuzz_target *fuzz_target_at(int index)
{
    return __start_reprod_fuzz[index];
}

char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = xmalloc(size + 1);

    if (size) {
        memcpy(text, data, size);
    }
    text[size] = '\0';
    return text;
}

int fuzz_file(const uint8_t *data, size_t size, char ret_path[FUZZ_PATH_SIZE])
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    FUZZ_CHECK(fd >= 0);
    FUZZ_CHECK(write(fd, data, size) == (ssize_t)size);
    snprintf(ret_path, FUZZ_PATH_SIZE, "/proc/self/fd/%d", fd);
    return fd;
}

#define VARIANT(name, control)                                                           \
    "{\"name\":\"" name                                                                  \
    "\",\"summary\":\"s\",\"models\":\"m\",\"algorithm\":\"a\","                         \
    "\"claim\":null,\"subject\":\"model\",\"control\":" control "}"
#define WORKLOAD(name, backend, variants, no_control)                                    \
    "{\"workload\":\"" name "\",\"version\":2,\"backend\":\"" backend                    \
    "\","                                                                                \
    "\"title\":\"t\",\"summary\":\"s\",\"variants\":[" variants                          \
    "],"                                                                                 \
    "\"sizes\":[{\"name\":\"small\",\"description\":\"d\"},"                             \
    "{\"name\":\"large\",\"description\":\"d\"}],\"dtypes\":[\"float32\",\"float64\"],"  \
    "\"weight_sum\":\"w\",\"loss\":null,\"no_control\":" no_control "}"

static const char catalogue_text[] = "[" WORKLOAD(
    "wgrad", "cpu", VARIANT("unordered", "true") "," VARIANT("ordered", "false"),
    "null") "," WORKLOAD("wgrad", "cuda", VARIANT("unordered", "true"),
                         "null") "," WORKLOAD("ctc", "cpu",
                                              VARIANT("ordered", "false") "," VARIANT(
                                                  "patched", "false"),
                                              "\"fixed order\"") "]";

const struct catalogue *fuzz_catalogue(void)
{
    static struct catalogue *catalogue;
    struct err err;

    if (!catalogue) {
        json_t *workloads = json_loads(catalogue_text, 0, NULL);

        catalogue = catalogue_new();
        FUZZ_CHECK(catalogue_add(catalogue, workloads, &err) == ERR_OK);
        json_decref(workloads);
    }
    return catalogue;
}
