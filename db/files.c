#include "db/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "daemon/base/mem.h"

void files_init(struct files *files, const char *path)
{
    static const char *const endings[FILES_COUNT] = { "", "-wal", "-shm" };
    struct err ignored;

    *files = (struct files){ 0 };
    for (int i = 0; i < FILES_COUNT; i++) {
        files->list[i].path = xasprintf("%s%s", path, endings[i]);
    }
    files_check(files, &ignored);
}

void files_release(struct files *files)
{
    for (int i = 0; i < FILES_COUNT; i++) {
        free(files->list[i].path);
        files->list[i].path = NULL;
    }
}

static enum err_code check_file(struct file *file, struct err *err)
{
    struct stat found;

    if (stat(file->path, &found) != 0) {
        if (file->inode == 0 && errno == ENOENT) {
            return ERR_OK;
        }
        return errno == ENOENT || errno == ENOTDIR
                   ? err_set(err, ERR_IO,
                             "%s was removed or moved away while it is served: put it "
                             "back, or restart reprod",
                             file->path)
                   : err_set_errno(err, errno, "%s", file->path);
    }
    if (file->inode == 0) {
        file->device = found.st_dev;
        file->inode = found.st_ino;
    }
    return file->inode == found.st_ino && file->device == found.st_dev
               ? ERR_OK
               : err_set(err, ERR_IO,
                         "%s was replaced by another file while it is served: put it "
                         "back, or restart reprod",
                         file->path);
}

enum err_code files_check(struct files *files, struct err *err)
{
    for (int i = 0; i < FILES_COUNT; i++) {
        if (check_file(&files->list[i], err) != ERR_OK) {
            return err->code;
        }
    }
    return ERR_OK;
}

enum err_code files_check_room(const char *path, struct err *err)
{
    struct statvfs system;

    if (statvfs(path, &system) != 0) {
        return err_set_errno(err, errno, "%s", path);
    }
    if (system.f_flag & ST_RDONLY) {
        return err_set(err, ERR_IO, "the file system of %s is mounted read-only", path);
    }
    if ((unsigned long long)system.f_bavail * system.f_frsize < FILES_ROOM_BYTES) {
        return err_set(err, ERR_IO,
                       "the file system of %s is full: less than %d MiB are left", path,
                       FILES_ROOM_BYTES >> 20);
    }
    return ERR_OK;
}
