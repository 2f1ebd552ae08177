#include "db/integrity/restore.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/array.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "db/backup.h"
#include "db/files.h"
#include "db/integrity/backup_copy.h"
#include "db/integrity/witness.h"
#include "db/tx.h"

struct restore {
    const char *path;
    char *copy, *marker, *kept; /* kept: NULL while it is not known */
};

static void names_init(struct restore *r, const char *path)
{
    *r = (struct restore){ .path = path,
                           .copy = xasprintf("%s.restored", path),
                           .marker = xasprintf("%s.restoring", path) };
}

static void names_release(struct restore *r)
{
    free(r->copy);
    free(r->marker);
    free(r->kept);
}

/* "reprod.db.replaced-2026-11-24T03:40:00.000Z" */
static char *kept_name(const char *path, const char *at)
{
    return xasprintf("%s.replaced-%s", path, at);
}

static enum err_code sync_folder(const char *path, struct err *err)
{
    char *copy = xstrdup(path);
    enum err_code code = backup_sync(dirname(copy), O_DIRECTORY, err);

    free(copy);
    return code;
}

/* The marker: a time, which is part of a name. */

static enum err_code write_marker(const struct restore *r, const char *at,
                                  struct err *err)
{
    char *partial = xasprintf("%s.partial", r->marker);
    FILE *file = fopen(partial, "we");
    enum err_code code = ERR_OK;

    if (!file) {
        code = err_set_errno(err, errno, "%s", partial);
    } else {
        bool written = fputs(at, file) >= 0 && fflush(file) == 0;

        code = written ? ERR_OK : err_set_errno(err, errno, "%s", partial);
        fclose(file);
    }
    if (code == ERR_OK) {
        code = backup_publish(partial, r->marker, err);
    }
    if (code != ERR_OK) {
        unlink(partial);
    }
    free(partial);
    return code;
}

static enum err_code read_marker(struct restore *r, struct err *err)
{
    char at[CLOCK_RFC3339_SIZE] = "";
    FILE *file = fopen(r->marker, "re");
    size_t length;

    if (!file) {
        return err_set_errno(err, errno, "%s", r->marker);
    }
    length = fread(at, 1, sizeof at - 1, file);
    fclose(file);
    if (length != sizeof at - 1 || strspn(at, "0123456789-T:.Z") != length) {
        return err_set(err, ERR_CORRUPT,
                       "%s, which a restore left, says no time: look which of the files "
                       "beside it is the database, and remove it",
                       r->marker);
    }
    r->kept = kept_name(r->path, at);
    return ERR_OK;
}

/* Forward. Each step may have been done before. */

/* A file that is not there moved already, or never was. */
static enum err_code move(const char *from, const char *to, const char *ending,
                          struct err *err)
{
    char *old = xasprintf("%s%s", from, ending);
    char *new = xasprintf("%s%s", to, ending);
    enum err_code code = ERR_OK;

    if (renameat2(AT_FDCWD, old, AT_FDCWD, new, RENAME_NOREPLACE) != 0 &&
        errno != ENOENT) {
        code = err_set_errno(err, errno, "%s to %s", old, new);
    }
    free(old);
    free(new);
    return code;
}

static enum err_code keep_old(const struct restore *r, struct err *err)
{
    if (access(r->kept, F_OK) == 0) {
        return ERR_OK; /* what is at PATH now is that, or what locking it made */
    }
    return link(r->path, r->kept) == 0 || errno == ENOENT
               ? ERR_OK
               : move(r->path, r->kept, "", err);
}

/* The log goes before the new database comes: it would be taken for its own. */
static enum err_code put_in_place(const struct restore *r, struct err *err)
{
    if (keep_old(r, err) != ERR_OK || move(r->path, r->kept, "-wal", err) != ERR_OK ||
        move(r->path, r->kept, "-shm", err) != ERR_OK ||
        sync_folder(r->path, err) != ERR_OK) {
        return err->code;
    }
    return rename(r->copy, r->path) == 0
               ? ERR_OK
               : err_set_errno(err, errno, "%s to %s", r->copy, r->path);
}

/* What was restored is behind what was acknowledged, and somebody wants it so. */
static void witness_anew(const char *path)
{
    struct witness witness;
    struct commits commits;
    struct err ignored;
    struct tx *tx;

    if (backup_open(path, &tx, &ignored) == ERR_OK) {
        if (commits_read(tx, &commits, &ignored) == ERR_OK) {
            witness_open(&witness, path, &commits);
            witness_close(&witness);
        }
        tx_free(tx);
    }
}

static enum err_code finish(const struct restore *r, bool *ret_replaced, struct err *err)
{
    *ret_replaced = access(r->copy, F_OK) == 0;
    if (*ret_replaced && put_in_place(r, err) != ERR_OK) {
        return err->code;
    }
    if (move(r->path, r->kept, "-seq", err) != ERR_OK ||
        sync_folder(r->path, err) != ERR_OK) {
        return err->code;
    }
    if (unlink(r->marker) != 0) {
        return err_set_errno(err, errno, "%s", r->marker);
    }
    witness_anew(r->path);
    return ERR_OK;
}

/* Back, after an error: as long as the copy has not taken its place. */

static bool is_same_file(const char *a, const char *b)
{
    struct stat of_a, of_b;

    return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && of_a.st_ino == of_b.st_ino &&
           of_a.st_dev == of_b.st_dev;
}

static enum err_code go_back(const struct restore *r)
{
    struct err ignored;

    if (move(r->kept, r->path, "-wal", &ignored) != ERR_OK ||
        move(r->kept, r->path, "-shm", &ignored) != ERR_OK) {
        return ERR_IO;
    }
    if (is_same_file(r->kept, r->path)) {
        unlink(r->kept);
    } else if (move(r->kept, r->path, "", &ignored) != ERR_OK) {
        return ERR_IO;
    }
    return unlink(r->marker) == 0 ? ERR_OK : ERR_IO;
}

static void leave(const struct restore *r, struct err *err)
{
    if (access(r->copy, F_OK) == 0 && go_back(r) == ERR_OK) {
        unlink(r->copy);
    } else {
        err_wrap(err, "the next start finishes the restore");
    }
}

static enum err_code copy_backup(const char *backup, const char *to, struct err *err)
{
    struct tx *tx;
    enum err_code code = backup_open(backup, &tx, err);

    if (code == ERR_OK) {
        code = backup_copy_database(tx, to, err);
        tx_free(tx);
    }
    return code;
}

static enum err_code replace(struct restore *r, const char *backup, int64_t now_ms,
                             struct err *err)
{
    char at[CLOCK_RFC3339_SIZE];
    bool ignored;

    clock_rfc3339(now_ms, at);
    r->kept = kept_name(r->path, at);
    if (access(r->kept, F_OK) == 0) {
        return err_set(err, ERR_CONFLICT, "%s exists", r->kept);
    }
    if (copy_backup(backup, r->copy, err) != ERR_OK) {
        return err->code;
    }
    if (write_marker(r, at, err) != ERR_OK) {
        unlink(r->copy);
        return err->code;
    }
    if (finish(r, &ignored, err) != ERR_OK) {
        leave(r, err);
        return err->code;
    }
    return ERR_OK;
}

/* Of a restore that was killed while it copied. */
static void forget_copy(const struct restore *r)
{
    char *partial = xasprintf("%s.partial", r->copy);
    char *marker = xasprintf("%s.partial", r->marker);
    bool was_there = backup_remove(partial);

    unlink(marker);
    was_there = backup_remove(r->copy) || was_there;
    if (was_there) {
        log_warning(
            "a restore of %s was begun and did not end: nothing was changed, and "
            "its copy is removed",
            r->path);
    }
    free(marker);
    free(partial);
}

enum err_code restore_resume(const char *path, bool *ret_replaced, struct err *err)
{
    struct restore r;
    enum err_code code = ERR_OK;

    *ret_replaced = false;
    names_init(&r, path);
    if (!files_restoring(path)) {
        forget_copy(&r);
    } else {
        code = read_marker(&r, err);
        if (code == ERR_OK) {
            code = finish(&r, ret_replaced, err);
        }
        if (code == ERR_OK) {
            log_warning(
                "a restore of %s did not end: it is finished, and what was there "
                "is %s",
                path, r.kept);
        }
    }
    names_release(&r);
    return code;
}

/* PATH is locked. */
static enum err_code restore_locked(const char *backup, const char *path, int64_t now_ms,
                                    char **ret_kept, struct err *err)
{
    struct restore r;
    bool ignored;
    enum err_code code = restore_resume(path, &ignored, err);

    names_init(&r, path);
    if (code == ERR_OK) {
        code = replace(&r, backup, now_ms, err);
    }
    if (code == ERR_OK) {
        *ret_kept = xstrdup(r.kept);
    }
    names_release(&r);
    return code;
}

enum err_code backup_restore(const char *backup, const char *path, int64_t now_ms,
                             char **ret_kept, struct err *err)
{
    struct files_lock lock;
    enum err_code code;

    *ret_kept = NULL;
    if (backup_check_whole(backup, err) != ERR_OK) {
        return err_wrap(err, "%s cannot be restored", backup);
    }
    code = files_lock(path, &lock, err);
    if (code == ERR_OK) {
        code = restore_locked(backup, path, now_ms, ret_kept, err);
    }
    files_unlock(&lock);
    return code;
}
