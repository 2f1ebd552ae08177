#include "workloads/worker/libraries.h"

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOTE_ALIGNMENT = 4, BUILD_ID_BYTES_MAX = 64 };

static size_t aligned(size_t size)
{
    return (size + NOTE_ALIGNMENT - 1) / NOTE_ALIGNMENT * NOTE_ALIGNMENT;
}

static void write_hex(const unsigned char *bytes, size_t count, char *ret_hex)
{
    for (size_t i = 0; i < count; i++) {
        snprintf(ret_hex + 2 * i, 3, "%02x", bytes[i]);
    }
}

static bool find_in_notes(const char *notes, size_t size, char ret_id[BUILD_ID_SIZE])
{
    while (size >= sizeof(ElfW(Nhdr))) {
        const ElfW(Nhdr) *note = (const void *)notes;
        size_t name = aligned(note->n_namesz);
        size_t whole = sizeof *note + name + aligned(note->n_descsz);
        const char *owner;
        if (whole > size) {
            break;
        }
        owner = notes + sizeof *note;
        if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
            memcmp(owner, "GNU", 4) == 0 && note->n_descsz >= 1 &&
            note->n_descsz <= BUILD_ID_BYTES_MAX) {
            write_hex((const unsigned char *)owner + name, note->n_descsz, ret_id);
            return true;
        }
        notes += whole;
        size -= whole;
    }
    return false;
}

static bool find_build_id(const struct dl_phdr_info *object, char ret_id[BUILD_ID_SIZE])
{
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &object->dlpi_phdr[i];
        const char *start = (const char *)(object->dlpi_addr + header->p_vaddr);
        if (header->p_type == PT_NOTE && find_in_notes(start, header->p_memsz, ret_id)) {
            return true;
        }
    }
    return false;
}

static void digest_own_file(char ret_id[BUILD_ID_SIZE])
{
    static const char prefix[] = "digest:";
    FILE *file;
    long size;
    char *bytes;

    snprintf(ret_id, BUILD_ID_SIZE, "unknown");
    file = fopen("/proc/self/exe", "re");
    if (!file) {
        return;
    }
    fseek(file, 0, SEEK_END);
    size = ftell(file);
    bytes = size > 0 ? malloc((size_t)size) : NULL;
    rewind(file);
    if (bytes && fread(bytes, 1, (size_t)size, file) == (size_t)size) {
        memcpy(ret_id, prefix, sizeof prefix);
        digest_hex(digest_bytes(bytes, (uint64_t)size), ret_id + strlen(prefix));
    }
    free(bytes);
    fclose(file);
}

/* The dynamic linker lists the executable first. */
static int read_first_cb(struct dl_phdr_info *object, size_t size, void *data)
{
    (void)size;
    if (!find_build_id(object, data)) {
        digest_own_file(data);
    }
    return 1;
}

const char *libraries_worker_build(void)
{
    static char id[BUILD_ID_SIZE];

    if (id[0] == '\0') {
        dl_iterate_phdr(read_first_cb, id);
    }
    return id;
}

static int find_openmp_cb(struct dl_phdr_info *object, size_t size, void *data)
{
    static const char *const names[] = { "/libgomp.so", "/libomp.so", "/libiomp5.so" };

    (void)size;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strstr(object->dlpi_name, names[i])) {
            char *path = realpath(object->dlpi_name, NULL);
            const char *slash = strrchr(path ? path : object->dlpi_name, '/');

            snprintf(data, LIBRARY_PATH_SIZE, "%s", slash + 1);
            free(path);
            return 1;
        }
    }
    return 0;
}

void libraries_openmp(char ret_name[LIBRARY_PATH_SIZE])
{
    snprintf(ret_name, LIBRARY_PATH_SIZE, "none");
    dl_iterate_phdr(find_openmp_cb, ret_name);
}

/* Not the executable, which has no name here, and not the kernel's vdso. */
static bool is_library(const struct dl_phdr_info *object)
{
    return strchr(object->dlpi_name, '/') != NULL;
}

struct visitor {
    void (*visit)(void *arg, const char *path);
    void *arg;
};

static int visit_one_cb(struct dl_phdr_info *object, size_t size, void *data)
{
    const struct visitor *visitor = data;

    (void)size;
    if (is_library(object)) {
        visitor->visit(visitor->arg, object->dlpi_name);
    }
    return 0;
}

void libraries_each(void (*visit)(void *arg, const char *path), void *arg)
{
    struct visitor visitor = { visit, arg };

    dl_iterate_phdr(visit_one_cb, &visitor);
}

static void count_one(void *arg, const char *path)
{
    (void)path;
    ++*(int *)arg;
}

int libraries_count(void)
{
    int count = 0;

    libraries_each(count_one, &count);
    return count;
}

static int emit_one_cb(struct dl_phdr_info *object, size_t size, void *data)
{
    struct emit *emit = data;
    char id[BUILD_ID_SIZE];

    (void)size;
    if (!is_library(object)) {
        return 0;
    }
    emit_object(emit, NULL);
    emit_string(emit, "path", object->dlpi_name);
    emit_string(emit, "build_id", find_build_id(object, id) ? id : NULL);
    emit_object_end(emit);
    return 0;
}

void libraries_emit(struct emit *emit)
{
    emit_array(emit, "libraries");
    dl_iterate_phdr(emit_one_cb, emit);
    emit_array_end(emit);
}

enum { STEMS_MAX = 2 };

/* What the names of a family's files begin with. */
static const struct family {
    const char *title;
    const char *stems[STEMS_MAX];
} families[] = {
    { "cuDNN", { "libcudnn.so", "libcudnn_" } },
    { "cuBLAS", { "libcublas.so", "libcublasLt.so" } },
    { "NVRTC", { "libnvrtc.so", "libnvrtc-builtins.so" } },
    { "NCCL", { "libnccl.so" } },
};
enum { FAMILY_COUNT = sizeof families / sizeof *families };

struct search {
    char *first[FAMILY_COUNT]; /* the file of each family that came first */
    char *cause;
    bool mixed;
};

static const char *name_of(const char *path)
{
    return strrchr(path, '/') + 1;
}

static bool belongs(const struct family *family, const char *name)
{
    for (int i = 0; i < STEMS_MAX && family->stems[i]; i++) {
        if (strncmp(name, family->stems[i], strlen(family->stems[i])) == 0) {
            return true;
        }
    }
    return false;
}

static bool share_directory(const char *a, const char *b)
{
    size_t length = (size_t)(name_of(a) - a);

    return length == (size_t)(name_of(b) - b) && memcmp(a, b, length) == 0;
}

/* By the files themselves: what a symbolic link leads to is what is computed with. */
static void compare(struct search *search, int family, const char *path)
{
    char *file = realpath(path, NULL);

    if (!file) {
        return;
    }
    if (!search->first[family]) {
        search->first[family] = file;
        return;
    }
    if (!search->mixed && !share_directory(search->first[family], file)) {
        search->mixed = true;
        snprintf(search->cause, LIBRARIES_CAUSE_SIZE,
                 "%s is mixed from several installations: %s and %s",
                 families[family].title, search->first[family], file);
    }
    free(file);
}

static void visit(void *arg, const char *path)
{
    for (int i = 0; i < FAMILY_COUNT; i++) {
        if (belongs(&families[i], name_of(path))) {
            compare(arg, i, path);
        }
    }
}

bool libraries_mixed(char ret_cause[LIBRARIES_CAUSE_SIZE])
{
    struct search search = { .cause = ret_cause };

    libraries_each(visit, &search);
    for (int i = 0; i < FAMILY_COUNT; i++) {
        free(search.first[i]);
    }
    return search.mixed;
}
