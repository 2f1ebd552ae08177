#include "daemon/agent/external_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/mem.h"
#include "workloads/instruments/digest.h"

enum { CHUNK = 1024 * 1024, FILES_MAX = 4096, DEPTH_MAX = 16 };
static const int64_t FILE_MAX = 16 * CHUNK, ALL_MAX = 32 * CHUNK;

/* Returns the bytes read, fewer than CHUNK only at the end; -1 on an error. */
static ssize_t read_chunk(int fd, char *chunk)
{
    size_t have = 0;

    while (have < CHUNK) {
        ssize_t n = read(fd, chunk + have, CHUNK - have);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? -1 : (ssize_t)have;
        }
        have += (size_t)n;
    }
    return (ssize_t)have;
}

static enum err_code add_contents(struct external_files *files, int fd, const char *path)
{
    char *chunk = xmalloc(CHUNK);
    struct digest parts[2] = { { 0, 0 }, { 0, 0 } };
    char hex[DIGEST_HEX_SIZE];
    ssize_t n = 0;

    while (files->bytes <= ALL_MAX && (n = read_chunk(fd, chunk)) > 0) {
        parts[1] = digest_bytes(chunk, (uint64_t)n);
        parts[0] = digest_combine(parts, 2);
        files->bytes += n;
    }
    free(chunk);
    if (n < 0) {
        return err_set_errno(files->err, errno, "%s", path);
    }
    if (files->bytes > ALL_MAX) {
        return err_set(files->err, ERR_TOO_LARGE, "%s: grows while it is read", path);
    }
    digest_hex(parts[0], hex);
    buf_printf(&files->text, "%s\n", hex);
    return ERR_OK;
}

static enum err_code add_open(struct external_files *files, const char *name,
                              const char *path, int fd)
{
    struct stat stat_of;

    if (fstat(fd, &stat_of) != 0) {
        return err_set_errno(files->err, errno, "%s", path);
    }
    if (!S_ISREG(stat_of.st_mode)) {
        return err_set(files->err, ERR_IO, "%s: neither a file nor a folder", path);
    }
    buf_printf(&files->text, "%s\t%lld\t", name, (long long)stat_of.st_size);
    if (stat_of.st_size <= FILE_MAX && files->bytes + stat_of.st_size <= ALL_MAX) {
        return add_contents(files, fd, path);
    }
    buf_printf(&files->text, "%lld.%09ld\n", (long long)stat_of.st_mtim.tv_sec,
               stat_of.st_mtim.tv_nsec);
    return ERR_OK;
}

static enum err_code add_file(struct external_files *files, const char *name,
                              const char *path)
{
    int fd;
    enum err_code code;

    if (++files->count > FILES_MAX) {
        return err_set(files->err, ERR_TOO_LARGE, "%s: more than %d files", path,
                       FILES_MAX);
    }
    /* What a command puts in the place of a file must not keep the agent waiting. */
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return err_set_errno(files->err, errno, "%s", path);
    }
    code = add_open(files, name, path, fd);
    close(fd);
    return code;
}

static int is_wanted(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && strcmp(entry->d_name, "__pycache__") != 0;
}

static enum err_code add_folder(struct external_files *files, const char *name,
                                const char *path, int depth);

static enum err_code add_entry(struct external_files *files, const char *name,
                               const char *path, int depth)
{
    struct stat own, target;

    if (lstat(path, &own) != 0 || stat(path, &target) != 0) {
        return ERR_OK; /* gone, or a link to nothing */
    }
    if (S_ISDIR(own.st_mode)) {
        return add_folder(files, name, path, depth + 1);
    }
    return S_ISREG(target.st_mode) ? add_file(files, name, path) : ERR_OK;
}

static enum err_code add_folder(struct external_files *files, const char *name,
                                const char *path, int depth)
{
    struct dirent **entries;
    enum err_code code = ERR_OK;
    int count;

    if (depth > DEPTH_MAX) {
        return err_set(files->err, ERR_TOO_LARGE, "%s: more than %d folders deep", path,
                       DEPTH_MAX);
    }
    count = scandir(path, &entries, is_wanted, alphasort);
    if (count < 0) {
        return err_set_errno(files->err, errno, "%s", path);
    }
    for (int i = 0; i < count; i++) {
        char *its_name = xasprintf("%s/%s", name, entries[i]->d_name);
        char *its_path = xasprintf("%s/%s", path, entries[i]->d_name);

        if (code == ERR_OK) {
            code = add_entry(files, its_name, its_path, depth);
        }
        free(its_name);
        free(its_path);
        free(entries[i]);
    }
    free(entries);
    return code;
}

enum err_code external_files_add(struct external_files *files, const char *name,
                                 const char *path)
{
    struct stat stat_of;

    if (stat(path, &stat_of) != 0) {
        return err_set_errno(files->err, errno, "%s", path);
    }
    return S_ISDIR(stat_of.st_mode) ? add_folder(files, name, path, 0)
                                    : add_file(files, name, path);
}

char *external_files_differ(const char *a, const char *b)
{
    while (*a || *b) {
        size_t lengths[2] = { strcspn(a, "\n"), strcspn(b, "\n") };
        const char *longer = *a ? a : b;

        if (lengths[0] != lengths[1] || strncmp(a, b, lengths[0]) != 0) {
            return xstrndup(longer, strcspn(longer, "\t\n"));
        }
        a += lengths[0] + (a[lengths[0]] == '\n');
        b += lengths[1] + (b[lengths[1]] == '\n');
    }
    return NULL;
}
