#include "workloads/worker/families.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/worker/libraries.h"

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
enum { FAMILY_COUNT = sizeof(families) / sizeof(*families) };

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
        snprintf(search->cause, FAMILIES_CAUSE_SIZE,
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

bool families_mixed(char ret_cause[FAMILIES_CAUSE_SIZE])
{
    struct search search = { .cause = ret_cause };

    libraries_each(visit, &search);
    for (int i = 0; i < FAMILY_COUNT; i++) {
        free(search.first[i]);
    }
    return search.mixed;
}
