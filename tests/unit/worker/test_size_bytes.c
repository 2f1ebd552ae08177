/* What the sizes of all workloads need: at most what a survey reckons with before it
 * takes a larger one (daemon/jobs/larger.h).  The setups run, with memory that nobody
 * touches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/jobs/larger.h"
#include "workloads/worker/args.h"
#include "workloads/worker/registry.h"
#include "workloads/worker/run.h"

/* Most setups do the same for each. */
enum { VARIANTS_MAX = 2 };

static struct registry registry;
static int64_t counted;

static void open_cb(struct run *run)
{
    (void)run;
}

static const char *id_cb(void)
{
    return "nothing";
}

static void *allocate_cb(struct run *run, size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    (void)run;
    counted += (int64_t)bytes;
    return memory == MAP_FAILED ? NULL : memory;
}

static void fill_cb(struct run *run, struct tensor *tensor, const struct filling *filling)
{
    (void)run;
    (void)tensor;
    (void)filling;
}

static void upload_cb(struct run *run, void *device, const void *host, size_t bytes)
{
    (void)run;
    memcpy(device, host, bytes);
}

static void poison_cb(struct run *run, void *device, size_t bytes, uint32_t pattern)
{
    (void)run;
    (void)device;
    (void)bytes;
    (void)pattern;
}

static const struct backend counting = {
    .name = "cpu",
    .alignment = 64,
    .threads_default = 1,
    .threads_max = 1,
    .open = open_cb,
    .device_id = id_cb,
    .allocate = allocate_cb,
    .fill = fill_cb,
    .upload = upload_cb,
    .download = upload_cb,
    .poison = poison_cb,
};

static int64_t bytes_of(const struct workload *workload,
                        const struct workload_variant *variant,
                        const struct workload_size *size)
{
    struct args args = { .command = ARGS_RUN,
                         .workload = workload,
                         .variant = variant,
                         .size = size,
                         .dtype = workload->dtypes[0],
                         .seed = 1,
                         .iterations = 1,
                         .threads = 1 };
    int64_t bytes = 0;
    int ends[2], status;
    pid_t child;

    for (int d = 0; d < workload->dtype_count; d++) {
        if (dtype_bytes(workload->dtypes[d]) > dtype_bytes(args.dtype)) {
            args.dtype = workload->dtypes[d];
        }
    }
    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        static struct run run;

        run_init(&run, &args, &counting);
        run.workload->setup(&run);
        _exit(write(ends[1], &counted, sizeof counted) == sizeof counted ? 0 : 1);
    }
    close(ends[1]);
    if (read(ends[0], &bytes, sizeof bytes) != sizeof bytes) {
        fail_msg("%s %s/%s said nothing", workload->name, variant->name, size->name);
    }
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return bytes;
}

static void test_no_size_needs_more_than_it_is_taken_for(void **state)
{
    int compared = 0;

    (void)state;
    for (int w = 0; w < registry.count; w++) {
        const struct workload *workload = registry.workloads[w];

        if (strncmp(workload->name, "onednn_", 7) == 0) {
            continue; /* its setup is the library's, and a CPU's */
        }
        for (int s = 0; s < workload->size_count; s++) {
            int rank = larger_rank(workload->sizes[s].name);

            for (int v = 0; rank >= 0 && v < VARIANTS_MAX && v < workload->variant_count;
                 v++) {
                int64_t bytes =
                    bytes_of(workload, &workload->variants[v], &workload->sizes[s]);

                if (bytes > larger_bytes(rank)) {
                    fail_msg("%s/%s takes %lld bytes in size %s, more than %lld",
                             workload->name, workload->variants[v].name, (long long)bytes,
                             workload->sizes[s].name, (long long)larger_bytes(rank));
                }
                compared++;
            }
        }
    }
    assert_true(compared > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_size_needs_more_than_it_is_taken_for),
    };

    if (registry_init_linked(&registry, stderr) != 0) {
        return 1;
    }
    return cmocka_run_group_tests_name("size_bytes", tests, NULL, NULL);
}
