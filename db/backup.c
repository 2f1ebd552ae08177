#include "db/backup.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/array.h"
#include "daemon/base/mem.h"
#include "db/connection.h"
#include "db/integrity/backup_copy.h"
#include "db/integrity/witness.h"
#include "db/tx.h"

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

/* Nothing appears beside a file that nobody has open: a reader that only reads would
 * leave its log and the log's index there. */
enum err_code backup_open(const char *path, struct tx **ret_tx, struct err *err)
{
    char *log = xasprintf("%s-wal", path);
    bool is_closed = access(log, F_OK) != 0;

    free(log);
    return is_closed && access(path, F_OK) == 0
               ? connection_open_frozen(path, ret_tx, err)
               : connection_open_reader(path, BACKUP_BUSY_TIMEOUT_MS, ret_tx, err);
}

enum err_code backup_check_whole(const char *path, struct err *err)
{
    char first[256] = "";
    struct tx *tx;
    enum err_code code = backup_open(path, &tx, err);

    if (code == ERR_OK) {
        code = tx_fetch(tx, TX_TARGETS(first), err, "PRAGMA integrity_check(1)");
        tx_free(tx);
    }
    if (code == ERR_OK && strcmp(first, "ok") != 0) {
        code = tx_integrity(first, err);
    }
    return code;
}

enum err_code backup_sync(const char *path, int flags, struct err *err)
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
    enum err_code code = backup_sync(partial, 0, err);

    if (code == ERR_OK && renameat2(AT_FDCWD, partial, AT_FDCWD, to, RENAME_NOREPLACE)) {
        code = errno == EEXIST ? err_set(err, ERR_CONFLICT, "%s exists", to)
                               : err_set_errno(err, errno, "%s", to);
    }
    if (code == ERR_OK) {
        code = backup_sync(dirname(copy), O_DIRECTORY, err);
    }
    free(copy);
    return code;
}

bool backup_remove(const char *partial)
{
    static const char *const endings[] = { "-journal", "-wal", "-shm" };

    for (int i = 0; i < COUNT_OF(endings); i++) {
        char *name = xasprintf("%s%s", partial, endings[i]);

        unlink(name);
        free(name);
    }
    return unlink(partial) == 0;
}

enum err_code backup_copy_database(struct tx *from, const char *to, struct err *err)
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
    if (code == ERR_OK && backup_check_whole(partial, err) != ERR_OK) {
        code = err_wrap(err, "nothing was written: the copy cannot be used");
    }
    if (code == ERR_OK) {
        code = backup_publish(partial, to, err);
    }
    if (code != ERR_OK) {
        backup_remove(partial);
    }
out:
    free(partial);
    return code;
}

/* WITNESSED was read before the database was: what lacks commits that were acknowledged
 * is no backup. */
static enum err_code check_commits(struct tx *tx, const struct commits *witnessed,
                                   struct err *err)
{
    struct commits found;

    if (commits_read(tx, &found, err) != ERR_OK) {
        return err->code;
    }
    return found.lineage && (found.lineage != witnessed->lineage ||
                             found.number >= witnessed->number)
               ? ERR_OK
               : err_set(err, ERR_CORRUPT,
                         "nothing was written: commits that were acknowledged are "
                         "missing (reprod fsck tells)");
}

enum err_code backup_database(const char *from, const char *to, struct err *err)
{
    const struct commits none = { 0 };
    struct commits witnessed;
    struct tx *tx;
    enum err_code code;

    if (access(to, F_OK) == 0) {
        return err_set(err, ERR_CONFLICT, "%s exists", to);
    }
    if (witness_ask(from, &none, &witnessed) != WITNESS_OF_ANOTHER) {
        witnessed = none;
    }
    code = connection_open_reader(from, BACKUP_BUSY_TIMEOUT_MS, &tx, err);
    if (code == ERR_OK) {
        code = witnessed.number ? check_commits(tx, &witnessed, err) : ERR_OK;
        if (code == ERR_OK) {
            code = backup_copy_database(tx, to, err);
        }
        tx_free(tx);
    }
    return code;
}
