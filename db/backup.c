#include "db/backup.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "db/connection.h"
#include "db/files.h"
#include "db/integrity/backup_copy.h"
#include "db/integrity/witness.h"
#include "db/tx.h"

enum { BUSY_TIMEOUT_MS = 5000 };

/* All pages in one step: one snapshot of FROM, which its writer does not wait for.  Steps
 * of a few pages would start again at each commit and might never end. */
enum err_code backup_copy_pages(struct tx *from, const char *to, struct err *err)
{
    sqlite3 *db = NULL;
    sqlite3_backup *backup = NULL;
    enum err_code code = ERR_OK;
    int rc = sqlite3_open_v2(
        to, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
        NULL);

    if (rc == SQLITE_OK) {
        backup = sqlite3_backup_init(db, "main", from->db, "main");
        rc = sqlite3_backup_step(backup, -1);
        sqlite3_backup_finish(backup);
    }
    if (rc != SQLITE_DONE) {
        code = tx_error(db, rc, err);
    }
    if (sqlite3_close(db) != SQLITE_OK && code == ERR_OK) {
        code = err_set(err, ERR_INTERNAL, "backup: the copy cannot be closed");
    }
    return code;
}

/* ERR_CORRUPT names the first thing that is wrong with the database PATH. */
static enum err_code check_whole(const char *path, struct err *err)
{
    char first[256] = "";
    struct tx *tx;
    enum err_code code = connection_open_reader(path, BUSY_TIMEOUT_MS, &tx, err);

    if (code == ERR_OK) {
        code = tx_fetch(tx, TX_TARGETS(first), err, "PRAGMA integrity_check(1)");
        tx_free(tx);
    }
    if (code == ERR_OK && strcmp(first, "ok") != 0) {
        code = err_set(err, ERR_CORRUPT, "%s", first);
    }
    return code;
}

static enum err_code sync_path(const char *path, int flags, struct err *err)
{
    enum err_code code = ERR_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC | flags);

    if (fd < 0) {
        return err_set_errno(err, errno, "%s", path);
    }
    if (fsync(fd) != 0) {
        code = err_set_errno(err, errno, "%s", path);
    }
    close(fd);
    return code;
}

enum err_code backup_publish(const char *partial, const char *to, struct err *err)
{
    char *copy = xstrdup(to);
    enum err_code code = sync_path(partial, 0, err);

    if (code == ERR_OK && renameat2(AT_FDCWD, partial, AT_FDCWD, to, RENAME_NOREPLACE)) {
        code = errno == EEXIST ? err_set(err, ERR_CONFLICT, "%s exists", to)
                               : err_set_errno(err, errno, "%s", to);
    }
    if (code == ERR_OK) {
        code = sync_path(dirname(copy), O_DIRECTORY, err);
    }
    free(copy);
    return code;
}

static enum err_code copy_database(struct tx *from, const char *to, struct err *err)
{
    char *partial = xasprintf("%s.partial", to);
    enum err_code code;
    int fd = open(partial, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);

    if (fd < 0) {
        code = errno == EEXIST ? err_set(err, ERR_CONFLICT,
                                         "%s is left from a backup that did not end; "
                                         "remove it",
                                         partial)
                               : err_set_errno(err, errno, "%s", partial);
        goto out;
    }
    close(fd);
    code = backup_copy_pages(from, partial, err);
    if (code == ERR_OK && check_whole(partial, err) != ERR_OK) {
        code = err_wrap(err,
                        "nothing was written: the copy is damaged, and so is the "
                        "database");
    }
    if (code == ERR_OK) {
        code = backup_publish(partial, to, err);
    }
    if (code != ERR_OK) {
        unlink(partial);
    }
out:
    free(partial);
    return code;
}

enum err_code backup_database(const char *from, const char *to, struct err *err)
{
    struct tx *tx;
    enum err_code code;

    if (access(to, F_OK) == 0) {
        return err_set(err, ERR_CONFLICT, "%s exists", to);
    }
    code = connection_open_reader(from, BUSY_TIMEOUT_MS, &tx, err);
    if (code == ERR_OK) {
        code = copy_database(tx, to, err);
        tx_free(tx);
    }
    return code;
}

static const char *const endings[] = { "", "-wal", "-shm", "-seq" };
enum { ENDINGS = 4 };

/* A database and its log belong together, so their names stay alike. */
static enum err_code move(const char *from, const char *to, struct err *err)
{
    enum err_code code = ERR_OK;

    for (int i = 0; i < ENDINGS && code == ERR_OK; i++) {
        char *old = xasprintf("%s%s", from, endings[i]);
        char *new = xasprintf("%s%s", to, endings[i]);

        if (renameat2(AT_FDCWD, old, AT_FDCWD, new, RENAME_NOREPLACE) != 0 &&
            errno != ENOENT) {
            code = err_set_errno(err, errno, "%s to %s", old, new);
        }
        free(old);
        free(new);
    }
    return code;
}

/* "reprod.db.replaced-2026-11-24T03:40:00.000Z" */
static char *kept_name(const char *path, int64_t now_ms)
{
    char at[CLOCK_RFC3339_SIZE];

    clock_rfc3339(now_ms, at);
    return xasprintf("%s.replaced-%s", path, at);
}

/* What was restored is behind what was acknowledged, and somebody wants it so. */
static void witness_anew(const char *path)
{
    struct witness witness;
    struct commits commits;
    struct err ignored;
    struct tx *tx;

    if (connection_open_reader(path, BUSY_TIMEOUT_MS, &tx, &ignored) == ERR_OK) {
        if (commits_read(tx, &commits, &ignored) == ERR_OK) {
            witness_open(&witness, path, &commits);
            witness_close(&witness);
        }
        tx_free(tx);
    }
}

/* PATH is locked.  Copied first: whoever is killed meanwhile leaves the database where it
 * was, not a place where the next start makes an empty one. */
static enum err_code replace(const char *backup, const char *path, const char *kept,
                             struct err *err)
{
    char *copy = xasprintf("%s.restored", path);
    struct err ignored;
    enum err_code code;

    unlink(copy); /* of one that was killed */
    code = backup_database(backup, copy, err);
    if (code == ERR_OK) {
        code = move(path, kept, err);
        if (code == ERR_OK) {
            code = backup_publish(copy, path, err);
        }
        if (code != ERR_OK) {
            move(kept, path, &ignored);
            unlink(copy);
        }
    }
    if (code == ERR_OK) {
        witness_anew(path);
    }
    free(copy);
    return code;
}

enum err_code backup_restore(const char *backup, const char *path, int64_t now_ms,
                             char **ret_kept, struct err *err)
{
    struct files_lock lock;
    enum err_code code;
    char *kept;

    *ret_kept = NULL;
    if (check_whole(backup, err) != ERR_OK) {
        return err_wrap(err, "%s cannot be restored", backup);
    }
    code = files_lock(path, &lock, err);
    if (code == ERR_OK) {
        kept = kept_name(path, now_ms);
        code = replace(backup, path, kept, err);
        *ret_kept = code == ERR_OK ? kept : NULL;
        if (code != ERR_OK) {
            free(kept);
        }
    }
    files_unlock(&lock);
    return code;
}
