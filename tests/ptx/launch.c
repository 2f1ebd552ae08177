/* Registration and launches, as nvcc's host code calls them: crt/host_runtime.h and the
 * functions that it declares.  Whoever registers a fat binary says no name: it is known
 * by its bytes. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include "tests/ptx/cudart.h"
#include "tests/ptx/schedule.h"

/* What fatbinary_section.h calls __fatBinC_Wrapper_t. */
struct wrapper {
    int magic, version;
    const void *data;
    void *file;
};

/* A kernel by the address of its host function. */
struct known {
    const void *host;
    const struct ptx_kernel *kernel;
    uint32_t threads; /* of its largest block so far */
};

static struct {
    size_t next; /* module: they register in the order of the link */
    struct known *known;
    size_t count, room;
} launching;

/* Between the push and the pop of a launch, each thread's own. */
static _Thread_local struct {
    struct dim3 grid, block;
    size_t shared;
    void *stream;
} configuration;

/* For machine_code.py: what has been launched, appended to the file of
 * REPROD_PTX_LAUNCHES. */
static void tell_launches(void)
{
    const char *path = getenv("REPROD_PTX_LAUNCHES");
    FILE *file = path ? fopen(path, "a") : NULL;

    for (size_t i = 0; file && i < launching.count; i++) {
        if (launching.known[i].threads) {
            fprintf(file, "%s %u\n", launching.known[i].kernel->name,
                    launching.known[i].threads);
        }
    }
    if (file) {
        fclose(file);
    }
}

static bool is_module(const struct ptx_module *module, const void *data)
{
    return crc32(0, data, (uInt)module->bytes) == module->crc32;
}

static const struct ptx_module *find_module(const void *data)
{
    size_t count = 0;

    while (ptx_modules[count].name) {
        count++;
    }
    for (size_t i = 0; i < count; i++) {
        const struct ptx_module *module = &ptx_modules[(launching.next + i) % count];

        if (is_module(module, data)) {
            launching.next = (size_t)(module - ptx_modules) + 1;
            return module;
        }
    }
    return NULL;
}

void **__cudaRegisterFatBinary(void *fat);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
/* Names are equal but for what nvcc derives from where and how it was started, if they
 * have that: eight hex digits behind "_INTERNAL_".  A compiler cache returns an object of
 * another folder. */
static bool is_same(const char *name, const char *other)
{
    static const char mark[] = "_INTERNAL_";
    const size_t skipped = sizeof mark - 1 + 8;
    const char *at = strstr(name, mark);
    size_t before = at ? (size_t)(at - name) : 0;

    if (!at || strlen(at) < skipped || strlen(other) != strlen(name)) {
        return strcmp(name, other) == 0;
    }
    return strncmp(name, other, before + sizeof mark - 1) == 0 &&
           strcmp(at + skipped, other + before + skipped) == 0;
}

void __cudaRegisterFunction(void **handle, const char *host, char *device,
                            const char *name, int limit, void *tid, void *bid,
                            void *block, void *grid, int *wide);
unsigned __cudaPushCallConfiguration(struct dim3 grid, struct dim3 block, size_t shared,
                                     void *stream);
cudaError_t __cudaPopCallConfiguration(struct dim3 *grid, struct dim3 *block,
                                       size_t *shared, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *ret_kernel, const void *host);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, struct dim3 grid, struct dim3 block,
                               void **args, size_t shared, cudaStream_t stream);

void **__cudaRegisterFatBinary(void *fat)
{
    const struct wrapper *wrapper = fat;

    if (launching.next == 0) {
        atexit(tell_launches);
    }
    return (void **)(uintptr_t)find_module(wrapper->data);
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

void __cudaUnregisterFatBinary(void **handle)
{
    (void)handle;
}

void __cudaRegisterFunction(void **handle, const char *host, char *device,
                            const char *name, int limit, void *tid, void *bid,
                            void *block, void *grid, int *wide)
{
    const struct ptx_module *module = (const struct ptx_module *)handle;
    const struct ptx_kernel *kernel = module ? module->kernels : NULL;

    (void)device, (void)limit, (void)tid, (void)bid, (void)block, (void)grid, (void)wide;
    while (kernel && kernel->name && !is_same(kernel->name, name)) {
        kernel++;
    }
    if (!kernel || !kernel->name) {
        fprintf(stderr, "ptx: %s was not translated: build it again\n", name);
        exit(1);
    }
    if (launching.count == launching.room) {
        launching.room = 2 * launching.room + 64;
        launching.known =
            realloc(launching.known, launching.room * sizeof *launching.known);
    }
    launching.known[launching.count++] = (struct known){ host, kernel, 0 };
}

unsigned __cudaPushCallConfiguration(struct dim3 grid, struct dim3 block, size_t shared,
                                     void *stream)
{
    configuration.grid = grid;
    configuration.block = block;
    configuration.shared = shared;
    configuration.stream = stream;
    return 0;
}

cudaError_t __cudaPopCallConfiguration(struct dim3 *grid, struct dim3 *block,
                                       size_t *shared, void *stream)
{
    *grid = configuration.grid;
    *block = configuration.block;
    *shared = configuration.shared;
    *(void **)stream = configuration.stream;
    return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t *ret_kernel, const void *host)
{
    for (size_t i = 0; i < launching.count; i++) {
        if (launching.known[i].host == host) {
            *ret_kernel = (cudaKernel_t)(uintptr_t)launching.known[i].kernel;
            return cudaSuccess;
        }
    }
    return cudart_failed(cudaErrorInvalidDeviceFunction);
}

static void note_launch(const struct ptx_kernel *kernel, uint32_t threads)
{
    for (size_t i = 0; i < launching.count; i++) {
        struct known *each = &launching.known[i];

        if (each->kernel == kernel && each->threads < threads) {
            each->threads = threads;
        }
    }
}

static bool is_within(const struct dim3 *d, unsigned x, unsigned y, unsigned z)
{
    return d->x >= 1 && d->x <= x && d->y >= 1 && d->y <= y && d->z >= 1 && d->z <= z;
}

/* Each thread of a launch reads the parameters as they were when it was made. */
static void **copy_parameters(const struct ptx_kernel *kernel, void **args)
{
    void **copies = calloc((size_t)kernel->params + 1, sizeof *copies);

    for (int i = 0; i < kernel->params; i++) {
        size_t bytes = (size_t)kernel->param_bytes[i];

        copies[i] = aligned_alloc(16, (bytes + 15) / 16 * 16);
        memcpy(copies[i], args[i], bytes);
    }
    return copies;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t handle, struct dim3 grid, struct dim3 block,
                               void **args, size_t shared, cudaStream_t stream)
{
    const struct ptx_kernel *kernel = (const struct ptx_kernel *)handle;
    struct ptx_launch launch = {
        .kernel = kernel,
        .grid = { grid.x, grid.y, grid.z },
        .block = { block.x, block.y, block.z },
        .shared_bytes = kernel->shared_bytes + (uint32_t)shared,
    };

    (void)stream;
    if (!is_within(&grid, 0x7fffffff, 65535, 65535) ||
        !is_within(&block, 1024, 1024, 64) ||
        block.x * block.y * block.z > kernel->threads_max) {
        return cudart_failed(cudaErrorInvalidConfiguration);
    }
    if (kernel->shared_bytes + shared > PTX_SHARED_MAX) {
        return cudart_failed(cudaErrorInvalidValue);
    }
    launch.args = copy_parameters(kernel, args);
    pthread_mutex_lock(&cudart_turn);
    note_launch(kernel, block.x * block.y * block.z);
    schedule_run(&launch);
    pthread_mutex_unlock(&cudart_turn);
    for (int i = 0; i < kernel->params; i++) {
        free(launch.args[i]);
    }
    free(launch.args);
    return cudaSuccess;
}
