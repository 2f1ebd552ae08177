/* The backups that a service makes of its database (db/backup.h). */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "db/backup.h"
#include "db/integrity/backup_copy.h"
#include "db/tx.h"

static int64_t size_of(const char *path, const char *ending)
{
    char *name = xasprintf("%s%s", path, ending);
    struct stat st = { .st_size = 0 };

    stat(name, &st);
    free(name);
    return st.st_size;
}

static enum err_code check_room(const char *path, struct err *err)
{
    struct statvfs system;
    int64_t needed = 2 * (size_of(path, "") + size_of(path, "-wal"));

    if (statvfs(path, &system) != 0) {
        return err_set_errno(err, errno, "%s", path);
    }
    return (int64_t)system.f_bavail * (int64_t)system.f_frsize >= needed
               ? ERR_OK
               : err_set(err, ERR_IO,
                         "no backup: the file system of %s has not twice the room of "
                         "the database",
                         path);
}

enum err_code backup_begin(struct tx *from, const char *path, char **ret_partial,
                           struct err *err)
{
    char *partial = xasprintf("%s.backup.partial", path);

    int64_t runs = 0;

    *ret_partial = NULL;
    err->code = ERR_OK;
    if (tx_fetch_int(from, &runs, err, "SELECT EXISTS (SELECT 1 FROM run)") != ERR_OK ||
        !runs) {
        free(partial);
        return err->code;
    }
    if (check_room(path, err) == ERR_OK) {
        int fd;

        backup_remove(partial); /* of a service that was killed */
        fd = open(partial, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
        if (fd < 0) {
            err_set_errno(err, errno, "%s", partial);
        } else {
            close(fd);
            err->code = ERR_OK;
            if (backup_copy_pages(from, partial, err) != ERR_OK) {
                backup_remove(partial);
            }
        }
    }
    if (err->code == ERR_OK) {
        *ret_partial = partial;
    } else {
        free(partial);
    }
    return err->code;
}

/* Oldest first: their names end with the time. */
static void list(const char *path, glob_t *ret_found)
{
    char *pattern = xasprintf("%s.backup-*Z", path);

    memset(ret_found, 0, sizeof *ret_found);
    glob(pattern, 0, NULL, ret_found);
    free(pattern);
}

enum err_code backup_keep(const char *path, const char *partial, int64_t now_ms,
                          struct err *err)
{
    char at[CLOCK_RFC3339_SIZE];
    char *name;
    glob_t found;
    enum err_code code;

    clock_rfc3339(now_ms, at);
    name = xasprintf("%s.backup-%s", path, at);
    code = backup_publish(partial, name, err);
    free(name);
    if (code != ERR_OK) {
        backup_remove(partial);
        return code;
    }
    list(path, &found);
    for (size_t i = 0; i + BACKUPS_KEPT < found.gl_pathc; i++) {
        unlink(found.gl_pathv[i]);
    }
    globfree(&found);
    return ERR_OK;
}

void backup_drop(const char *partial)
{
    backup_remove(partial);
}

char *backup_newest(const char *path)
{
    char *newest = NULL;
    glob_t found;

    list(path, &found);
    if (found.gl_pathc > 0) {
        newest = xstrdup(found.gl_pathv[found.gl_pathc - 1]);
    }
    globfree(&found);
    return newest;
}

int64_t backup_newest_ms(const char *path)
{
    char *newest = backup_newest(path);
    struct stat st = { .st_mtime = 0 };

    if (newest) {
        stat(newest, &st);
    }
    free(newest);
    return (int64_t)st.st_mtime * 1000;
}
