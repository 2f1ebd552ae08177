#include "db/integrity/opening.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "db/connection.h"
#include "db/integrity/restore.h"
#include "db/migrate.h"
#include "db/tx.h"

/* It reads at once: SQLite opens the log at the first read, and makes it anew if it was
 * removed by then. */
static enum err_code open_reader(const char *path, const struct opening *options,
                                 struct tx **ret_tx, struct err *err)
{
    int64_t ignored;

    return connection_open_beside(path, options->busy_timeout_ms, ret_tx, err) == ERR_OK
               ? tx_fetch_int(*ret_tx, &ignored, err, "PRAGMA schema_version")
               : err->code;
}

static void refuse(struct opened *opened, const char *why)
{
    err_set(&opened->refusal, ERR_CORRUPT, "%s", why);
}

/* Kept before anybody has the database open: from then on, the witness is not needed. */
static void keep_loss(const char *path, int64_t busy_timeout_ms,
                      const struct commits *found, const struct commits *witnessed)
{
    struct err err;

    if (connection_keep_loss(path, busy_timeout_ms, found, witnessed, clock_wall_ms(),
                             &err) != ERR_OK) {
        log_warning(
            "the loss is known from %s-seq alone, and could not be noted in the "
            "database: %s",
            path, err.message);
    }
}

/* A database that is gone is nothing to begin anew: its witness tells that there was
 * one. */
static enum err_code check_not_gone(const char *path, struct err *err)
{
    const struct commits none = { 0 };
    struct commits witnessed;
    struct stat st;

    if ((stat(path, &st) == 0 && st.st_size > 0) ||
        witness_ask(path, &none, &witnessed) != WITNESS_OF_ANOTHER ||
        witnessed.number == 0) {
        return ERR_OK;
    }
    return err_set(err, ERR_CORRUPT,
                   "%s is gone or empty, and %s-seq says that it had %" PRId64
                   " commits: put it back, restore a backup (reprod restore), or remove "
                   "%s-seq to begin anew",
                   path, path, witnessed.number, path);
}

/* A database whose count was taken away looks like one that never had any. */
static void refuse_uncounted(struct opened *opened, const char *path,
                             const struct commits *witnessed)
{
    char why[320], said[64] = "";

    if (witnessed->number > 0) {
        snprintf(said, sizeof said, ", and %" PRId64 " were durable", witnessed->number);
    }
    snprintf(
        why, sizeof why,
        "the count of commits was taken out of the database (table commits is "
        "empty%s): whether any are missing is not known; nothing runs and nothing is "
        "accepted until a backup is restored (reprod restore), or this is "
        "acknowledged (reprod fsck --accept-loss)",
        said);
    log_error("%s: %s", path, why);
    refuse(opened, why);
}

/* A database that lost commits counts none: one would make it look as if it had not lost
 * any. */
static enum err_code open_writer(struct opened *opened, const char *path,
                                 int64_t busy_timeout_ms, struct err *err)
{
    struct commits found, witnessed;
    char why[256];
    enum witness_word word =
        connection_ask_witness(path, busy_timeout_ms, &found, &witnessed);

    if (word == WITNESS_UNCOUNTED) {
        refuse_uncounted(opened, path, &witnessed);
        return connection_open_beside(path, busy_timeout_ms, &opened->writer, err);
    }
    if (word != WITNESS_AHEAD) {
        if (word != WITNESS_AGREES && found.number > 0) {
            log_warning("%s-seq %s: whether commits were lost before now is not known",
                        path,
                        word == WITNESS_MISSING      ? "is missing"
                        : word == WITNESS_UNREADABLE ? "cannot be read"
                                                     : "is of another database");
        }
        return connection_open_writer(path, busy_timeout_ms, &opened->writer, err);
    }
    snprintf(
        why, sizeof why,
        "commits that were acknowledged are missing: the last of the database is %" PRId64
        ", and %" PRId64
        " was durable; nothing runs and nothing is accepted until a "
        "backup is restored (reprod restore), or the loss is acknowledged (reprod "
        "fsck --accept-loss)",
        found.number, witnessed.number);
    refuse(opened, why);
    keep_loss(path, busy_timeout_ms, &found, &witnessed);
    return connection_open_beside(path, busy_timeout_ms, &opened->writer, err);
}

/* Readers of a file that nobody changes; its writer is one, too. */
static enum err_code open_frozen(struct opened *opened, const char *path,
                                 const struct opening *options, struct err *err)
{
    enum err_code code = connection_open_frozen(path, &opened->writer, err);
    int64_t version = 0;

    for (int i = 0; i < options->readers && code == ERR_OK; i++) {
        code = connection_open_frozen(path, &opened->readers[i], err);
    }
    if (code == ERR_OK) {
        code = connection_open_frozen(path, &opened->background, err);
    }
    if (code == ERR_OK) {
        code = tx_fetch_int(opened->writer, &version, err, "PRAGMA user_version");
    }
    if (code == ERR_OK && version != migrate_current()) {
        code = err_set(err, ERR_CONFLICT,
                       "%s has schema %d, this program needs %d: restore it", path,
                       (int)version, migrate_current());
    }
    refuse(opened, "this service only reads");
    return code;
}

static enum err_code open_connections(struct opened *opened, const char *path,
                                      const struct opening *options, struct err *err)
{
    enum err_code code = check_not_gone(path, err);

    if (code == ERR_OK) {
        code = open_writer(opened, path, options->busy_timeout_ms, err);
    }
    for (int i = 0; i < options->readers && code == ERR_OK; i++) {
        code = open_reader(path, options, &opened->readers[i], err);
    }
    return code == ERR_OK ? open_reader(path, options, &opened->background, err) : code;
}

/* What a restore left is finished first, and the database may be another file then. */
static enum err_code lock_files(struct opened *opened, const char *path, struct err *err)
{
    bool replaced;

    if (files_lock(path, &opened->lock, err) != ERR_OK ||
        restore_resume(path, &replaced, err) != ERR_OK) {
        return err->code;
    }
    if (!replaced) {
        return ERR_OK;
    }
    files_unlock(&opened->lock);
    return files_lock(path, &opened->lock, err);
}

/* Which files they are is known once they were opened. */
static enum err_code open_files(struct opened *opened, const char *path,
                                const struct opening *options, struct err *err)
{
    struct commits commits;

    if ((options->read_only ? open_frozen : open_connections)(opened, path, options,
                                                              err) != ERR_OK) {
        return err->code;
    }
    files_init(&opened->files, path);
    if (opened->refusal.code == ERR_OK &&
        commits_read(opened->writer, &commits, err) == ERR_OK) {
        witness_open(&opened->witness, path, &commits);
    }
    return ERR_OK;
}

/* SQLite says only that it could not write. */
static void name_disk(const char *path, struct err *err)
{
    struct err disk;

    if (files_check_room(path, &disk) != ERR_OK) {
        *err = disk;
    }
}

enum err_code opening_open(const char *path, const struct opening *options,
                           struct opened *ret_opened, struct err *err)
{
    size_t readers = (size_t)options->readers;
    enum err_code code;

    *ret_opened =
        (struct opened){ .lock = FILES_UNLOCKED, .reader_count = options->readers };
    ret_opened->readers = xcalloc(readers, sizeof(struct tx *));
    if (!options->read_only && (filesystem_check(path, err) != ERR_OK ||
                                lock_files(ret_opened, path, err) != ERR_OK)) {
        return err->code;
    }
    code = open_files(ret_opened, path, options, err);
    if (code == ERR_IO) {
        name_disk(path, err);
    }
    return code;
}

void opening_close(struct opened *opened)
{
    for (int i = 0; i < opened->reader_count; i++) {
        tx_free(opened->readers[i]);
    }
    free(opened->readers);
    tx_free(opened->background);
    tx_free(opened->writer); /* the last one: writes the log back and removes it */
    files_release(&opened->files);
    witness_close(&opened->witness);
    files_unlock(&opened->lock); /* SQLite's own locks are gone by now */
}
