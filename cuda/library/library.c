#include "cuda/library/library.h"

#include <dirent.h>
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda/library/abi.h"
#include "cuda/library/elf.h"
#include "cuda/library/ldcache.h"

void library_refuse(struct library *library, enum library_state state, const char *format,
                    ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(library->reason, sizeof library->reason, format, arguments);
    va_end(arguments);
    library->state = state;
}

/* "libcudnn.so.9" and "libcudnn_ops.so.9" for "libcudnn", but not "libcudnn.a". */
static bool is_file_of(const struct library *library, const char *name)
{
    return strncmp(name, library->stem, strlen(library->stem)) == 0 &&
           strstr(name, ".so.") != NULL;
}

/* Checks every file of the library in DIRECTORY: it loads some of them later by itself.
 */
static void check_files(struct library *library, const char *directory)
{
    char reason[LIBRARY_REASON_MAX];
    char path[LIBRARY_PATH_MAX];
    DIR *list = opendir(directory);
    struct dirent *entry;

    while (list && (entry = readdir(list))) {
        int length = snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);

        if (is_file_of(library, entry->d_name) && length < (int)sizeof path &&
            !elf_check(path, reason, sizeof reason)) {
            library_refuse(library, LIBRARY_BROKEN, "%s: %s", library->title, reason);
            break;
        }
    }
    if (list) {
        closedir(list);
    }
}

/* Sets path to the best of the library's names that DIRECTORY has. */
static bool find_in(struct library *library, const char *directory)
{
    for (const char *const *name = library->sonames; *name; name++) {
        int length =
            snprintf(library->path, sizeof library->path, "%s/%s", directory, *name);

        if (length < (int)sizeof library->path && access(library->path, F_OK) == 0) {
            return true;
        }
    }
    return false;
}

/* Sets ret_name to another version of the library that DIRECTORY has. */
static bool find_other(const struct library *library, const char *directory,
                       char ret_name[NAME_MAX + 1])
{
    size_t stem = strlen(library->stem);
    DIR *list = opendir(directory);
    struct dirent *entry;
    bool found = false;

    while (list && !found && (entry = readdir(list))) {
        if (is_file_of(library, entry->d_name) &&
            strncmp(entry->d_name + stem, ".so.", 4) == 0) {
            snprintf(ret_name, NAME_MAX + 1, "%s", entry->d_name);
            found = true;
        }
    }
    if (list) {
        closedir(list);
    }
    return found;
}

static bool search_directory(struct library *library, const char *directory)
{
    char other[NAME_MAX + 1];

    if (find_in(library, directory)) {
        check_files(library, directory);
        return true;
    }
    if (find_other(library, directory, other)) {
        library_refuse(library, LIBRARY_UNSUPPORTED,
                       "%s: the stack's library path has %s/%s; what can be used is %s",
                       library->title, directory, other, library->sonames[0]);
        return true;
    }
    return false;
}

static bool search_stack(struct library *library)
{
    const char *path = getenv("LD_LIBRARY_PATH");
    char *directories = strdup(path ? path : "");
    char *rest = directories;
    char *directory;
    bool found = false;

    while (directories && !found && (directory = strsep(&rest, ":;"))) {
        found = *directory && search_directory(library, directory);
    }
    free(directories);
    return found;
}

static bool search_system(struct library *library)
{
    for (const char *const *name = library->sonames; *name; name++) {
        if (ldcache_find("/etc/ld.so.cache", *name, library->path,
                         sizeof library->path)) {
            char directory[LIBRARY_PATH_MAX];

            memcpy(directory, library->path, sizeof directory);
            check_files(library, dirname(directory));
            return true;
        }
    }
    return false;
}

bool library_find(struct library *library)
{
    const char *why = library_forbidden ? library_forbidden() : NULL;

    if (why && library->state == LIBRARY_CLOSED) {
        library_refuse(library, LIBRARY_UNSUPPORTED, "%s: %s", library->title, why);
    }
    if (library->state == LIBRARY_CLOSED && !library->path[0] && !search_stack(library) &&
        !search_system(library)) {
        library->path[0] = '\0';
        library_refuse(
            library, LIBRARY_UNSUPPORTED,
            "this stack has no %s: no %s in its library path or on this system",
            library->title, library->sonames[0]);
    }
    return library->state == LIBRARY_CLOSED || library->state == LIBRARY_USABLE;
}

void library_open(struct library *library)
{
    if (!library_find(library) || library->state == LIBRARY_USABLE) {
        return;
    }
    library->handle = dlopen(library->path, RTLD_NOW | RTLD_LOCAL);
    if (library->handle) {
        library->state = LIBRARY_USABLE;
    } else {
        library_refuse(library, LIBRARY_BROKEN, "%s: %s", library->title, dlerror());
    }
}

void library_functions(struct library *library, const struct library_function *functions,
                       int count, void *table)
{
    for (int i = 0; i < count && library->state == LIBRARY_USABLE; i++) {
        void *symbol = dlsym(library->handle, functions[i].name);

        if (!symbol && !functions[i].optional) {
            library_refuse(library, LIBRARY_UNSUPPORTED, "%s %s (%s) has no function %s",
                           library->title,
                           library->version[0] ? library->version
                                               : "of an unknown version",
                           library->path, functions[i].name);
        }
        memcpy((char *)table + functions[i].offset, &symbol, sizeof symbol);
    }
}

void library_ask_version(struct library *library, const char *function)
{
    const struct library_function entry = { function, 0, false };
    int (*get)(int property, int *ret_value); /* the libraries' enums are ints */
    int major, minor, patch;

    library_functions(library, &entry, 1, &get);
    if (library->state != LIBRARY_USABLE) {
        return;
    }
    if (get(LIBRARY_MAJOR, &major) != 0 || get(LIBRARY_MINOR, &minor) != 0 ||
        get(LIBRARY_PATCH, &patch) != 0) {
        library_refuse(library, LIBRARY_BROKEN, "%s (%s) does not know its version",
                       library->title, library->path);
        return;
    }
    library->major = major;
    snprintf(library->version, sizeof library->version, "%d.%d.%d", major, minor, patch);
}

const char *library_unsupported(const struct library *library, const struct run *run)
{
    if (library->state == LIBRARY_BROKEN) {
        run_infra((struct run *)run, "%s", library->reason);
    }
    return library->state == LIBRARY_USABLE ? NULL : library->reason;
}
