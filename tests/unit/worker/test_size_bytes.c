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

/* Most setups do the same for each; setups of large sizes take seconds. */
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

/* Nobody computes with it. */
static void upload_cb(struct run *run, void *device, const void *host, size_t bytes)
{
    (void)run;
    (void)device;
    (void)host;
    (void)bytes;
}

static void download_cb(struct run *run, void *host, const void *device, size_t bytes)
{
    (void)run;
    (void)device;
    memset(host, 0, bytes);
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
    .download = download_cb,
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

/* As much as SIZE is taken for is enough; returns how many bytes VARIANT needs. */
static int64_t check_bytes(const struct workload *workload,
                           const struct workload_variant *variant,
                           const struct workload_size *size)
{
    int64_t bytes = bytes_of(workload, variant, size);
    int64_t most = larger_bytes(larger_rank(size->name));

    if (bytes > most) {
        fail_msg("%s/%s takes %lld bytes in size %s, more than %lld", workload->name,
                 variant->name, (long long)bytes, size->name, (long long)most);
    }
    return bytes;
}

/* Where variants need the same in one size they do in the larger ones. */
static int check_sizes(const struct workload *workload)
{
    int variants =
        workload->variant_count < VARIANTS_MAX ? workload->variant_count : VARIANTS_MAX;
    int compared = 0;

    for (int s = 0; s < workload->size_count; s++) {
        const struct workload_size *size = &workload->sizes[s];
        int64_t first = 0;
        bool same = true;

        if (larger_rank(size->name) < 0) {
            continue;
        }
        for (int v = 0; v < variants; v++, compared++) {
            int64_t bytes = check_bytes(workload, &workload->variants[v], size);

            same = same && (v == 0 || bytes == first);
            first = v == 0 ? bytes : first;
        }
        if (larger_rank(size->name) > 0 && same) {
            variants = 1;
        }
    }
    return compared;
}

static void test_no_size_needs_more_than_it_is_taken_for(void **state)
{
    int compared = 0;

    (void)state;
    for (int w = 0; w < registry.count; w++) {
        if (strncmp(registry.workloads[w]->name, "onednn_", 7) == 0) {
            continue; /* its setup is the library's, and a CPU's */
        }
        compared += check_sizes(registry.workloads[w]);
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
