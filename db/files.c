#include "db/files.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

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

/* RET_UNSEEN: it could not be looked at, so the error says nothing about the file. */
static enum err_code check_file(struct file *file, bool *ret_unseen, struct err *err)
{
    struct stat found;

    *ret_unseen = false;
    if (stat(file->path, &found) != 0) {
        if (file->inode == 0 && errno == ENOENT) {
            return ERR_OK;
        }
        *ret_unseen = errno != ENOENT && errno != ENOTDIR;
        return !*ret_unseen
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
    bool unseen;

    for (int i = 0; i < FILES_COUNT; i++) {
        if (check_file(&files->list[i], &unseen, err) != ERR_OK) {
            return err->code;
        }
    }
    return ERR_OK;
}

enum err_code files_check_stored(struct files *files, struct err *err)
{
    bool unseen;

    for (int i = 0; i < FILES_COUNT; i++) {
        if (check_file(&files->list[i], &unseen, err) != ERR_OK && !unseen) {
            return err->code;
        }
    }
    return ERR_OK;
}

enum { LOCK_WAIT_MS = 2000, LOCK_PAUSE_MS = 20 };

/* Beyond what SQLite locks, and beyond the end of any file. */
static const off_t LOCK_BYTE = (off_t)1 << 62;

static enum err_code is_served(const char *path, int error, struct err *err)
{
    return error == EWOULDBLOCK || error == EACCES
               ? err_set(err, ERR_BUSY, "another reprod serves %s", path)
               : err_set_errno(err, error, "the lock of %s", path);
}

/* The folder's lock outlives whatever happens to the files in it.  But whoever can read a
 * folder can lock it, so this one counts only where nobody else can. */
static enum err_code lock_folder(const char *path, int *ret_fd, struct err *err)
{
    char *copy = xstrdup(path);
    const char *folder = dirname(copy);
    enum err_code code = ERR_OK;
    struct stat st;

    *ret_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*ret_fd < 0 || fstat(*ret_fd, &st) != 0) {
        code = err_set_errno(err, errno, "%s", folder);
    } else if ((st.st_mode & (S_IRWXG | S_IRWXO)) == 0 &&
               flock(*ret_fd, LOCK_EX | LOCK_NB) != 0) {
        code = is_served(path, errno, err);
    }
    free(copy);
    return code;
}

/* Of the open file, not of the process (fcntl(2), F_OFD_SETLK): what SQLite does with its
 * own descriptors does not take it away.  Only who may write the file can hold it.  What
 * SQLite puts beside a file has the file's mode. */
static enum err_code lock_database(const char *path, int *ret_fd, struct err *err)
{
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LOCK_BYTE, .l_len = 1
    };

    *ret_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (*ret_fd < 0) {
        return err_set_errno(err, errno, "%s", path);
    }
    return fcntl(*ret_fd, F_OFD_SETLK, &lock) == 0 ? ERR_OK : is_served(path, errno, err);
}

static enum err_code try_lock(const char *path, struct files_lock *ret_lock,
                              struct err *err)
{
    *ret_lock = FILES_UNLOCKED;
    return lock_folder(path, &ret_lock->folder, err) == ERR_OK
               ? lock_database(path, &ret_lock->database, err)
               : err->code;
}

enum err_code files_lock(const char *path, struct files_lock *ret_lock, struct err *err)
{
    const struct timespec pause = { .tv_nsec = LOCK_PAUSE_MS * 1000000L };
    enum err_code code = try_lock(path, ret_lock, err);

    for (int waited = 0; code == ERR_BUSY && waited < LOCK_WAIT_MS;
         waited += LOCK_PAUSE_MS) {
        files_unlock(ret_lock);
        nanosleep(&pause, NULL);
        code = try_lock(path, ret_lock, err);
    }
    return code;
}

void files_unlock(struct files_lock *lock)
{
    if (lock->database >= 0) {
        close(lock->database);
    }
    if (lock->folder >= 0) {
        close(lock->folder);
    }
    *lock = FILES_UNLOCKED;
}

enum err_code files_check_head(const struct files_lock *lock, const char *path,
                               struct err *err)
{
    static const char head[] = "SQLite format 3"; /* with its NUL */
    char found[sizeof head] = "";
    ssize_t got = pread(lock->database, found, sizeof found, 0);

    if (got < 0) {
        return err_set(err, ERR_IO, "%s cannot be read: %s", path, strerror(errno));
    }
    return got == sizeof head && memcmp(found, head, sizeof head) == 0
               ? ERR_OK
               : err_set(err, ERR_IO,
                         "the database %s was overwritten or cut off while it is served: "
                         "restore a backup (reprod restore)",
                         path);
}

bool files_restoring(const char *path)
{
    char *marker = xasprintf("%s.restoring", path);
    bool is_there = access(marker, F_OK) == 0;

    free(marker);
    return is_there;
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
