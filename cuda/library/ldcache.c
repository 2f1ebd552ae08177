#include "cuda/library/ldcache.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct header {
    char magic[20]; /* no NUL */
    uint32_t count;
    uint32_t strings_length;
    uint32_t unused[5];
};

struct entry {
    int32_t flags;       /* low byte: kind of file; above: machine */
    uint32_t name, path; /* offsets from the start of the file */
    uint32_t os_version;
    uint64_t hardware;
};

enum { FLAG_KIND = 0xff, FLAG_ELF_LIBC6 = 3, FLAG_MACHINE = 0xff00 };

static const char magic[] = "glibc-ld.so.cache1.1";

/* The text at OFFSET, or NULL where it does not end within the file. */
static const char *text_at(const char *file, size_t size, uint32_t offset)
{
    return offset < size && memchr(file + offset, 0, size - offset) ? file + offset
                                                                    : NULL;
}

static bool search(const char *file, size_t size, const char *soname, char *ret_path,
                   size_t path_size)
{
    struct header header;
    struct entry entry;

    if (size < sizeof header) {
        return false;
    }
    memcpy(&header, file, sizeof header);
    if (memcmp(header.magic, magic, sizeof header.magic) != 0 ||
        header.count > (size - sizeof header) / sizeof entry) {
        return false;
    }
    for (uint32_t i = 0; i < header.count; i++) {
        const char *name, *path;

        memcpy(&entry, file + sizeof header + i * sizeof entry, sizeof entry);
        name = text_at(file, size, entry.name);
        path = text_at(file, size, entry.path);
        /* Machine 0 is that of 32-bit libraries. */
        if (name && path && (entry.flags & FLAG_KIND) == FLAG_ELF_LIBC6 &&
            (entry.flags & FLAG_MACHINE) != 0 && strcmp(name, soname) == 0) {
            return snprintf(ret_path, path_size, "%s", path) < (int)path_size;
        }
    }
    return false;
}

bool ldcache_find(const char *cache, const char *soname, char *ret_path, size_t size)
{
    int fd = open(cache, O_RDONLY | O_CLOEXEC);
    struct stat status;
    void *file = MAP_FAILED;
    bool found = false;

    if (fd >= 0 && fstat(fd, &status) == 0 && status.st_size > 0) {
        file = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    if (file != MAP_FAILED) {
        found = search(file, (size_t)status.st_size, soname, ret_path, size);
        munmap(file, (size_t)status.st_size);
    }
    if (fd >= 0) {
        close(fd);
    }
    return found;
}
