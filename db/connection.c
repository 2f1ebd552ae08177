#include "db/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "daemon/base/buf.h"
#include "daemon/base/clock.h"
#include "daemon/base/id.h"
#include "daemon/base/mem.h"
#include "db/cells_judge.h"
#include "db/files.h"
#include "db/integrity/checksums.h"
#include "db/integrity/losses.h"
#include "db/integrity/row_sum.h"
#include "db/integrity/totals.h"
#include "db/migrate.h"
#include "db/tx.h"
#include "db/upkeep/infinite.h"

enum {
    HEADER_BYTES = 100, /* sqlite.org/fileformat2.html, section 1.3 */
    HEADER_USER_VERSION = 60,
    HEADER_APPLICATION_ID = 68,
    PROGRESS_OPCODES = 1000 /* some 20 microseconds between looks at the clock */
};

static const struct {
    unsigned long f_type; /* statfs(2), linux/magic.h, or the file system's own source */
    const char *name;
} refused[] = {
    { 0x6969, "NFS" },        { 0x517b, "SMB" },        { 0xff534d42, "CIFS" },
    { 0xfe534d42, "SMB2" },   { 0x564c, "NCP" },        { 0x73757245, "Coda" },
    { 0x5346414f, "AFS" },    { 0x6b414653, "AFS" },    { 0x01021997, "9P" },
    { 0x00c36400, "Ceph" },   { 0x0bd00bd0, "Lustre" }, { 0x47504653, "GPFS" },
    { 0x19830326, "BeeGFS" }, { 0xaad7aaea, "PanFS" },  { 0x20030528, "OrangeFS" },
    { 0x7461636f, "OCFS2" },  { 0x01161970, "GFS2" },   { 0x013111a8, "IBRIX" },
    { 0xbacbacbc, "VMHGFS" }, { 0x786f4256, "VBOXSF" },
};

static const unsigned long FUSE = 0x65735546;

const char *filesystem_refused(long f_type, const char *mount_type)
{
    /* 32 bits in every case; some systems sign-extend them. */
    unsigned long type = (unsigned long)f_type & 0xffffffff;

    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        if (refused[i].f_type == type) {
            return refused[i].name;
        }
    }
    if (type == FUSE && strcmp(mount_type, "fuseblk") != 0 &&
        strcmp(mount_type, "fuse.fuse-overlayfs") != 0) {
        return *mount_type ? mount_type : "FUSE";
    }
    return NULL;
}

/* The type of the mount that holds DEVICE; "" if it is not found.  Lines are
 * "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAGS…] - TYPE SOURCE OPTIONS" (proc(5)). */
static void mount_type(dev_t device, char *ret_type, size_t size)
{
    FILE *file = fopen("/proc/self/mountinfo", "re");
    char *line = NULL;
    size_t capacity = 0;
    char wanted[32];

    *ret_type = '\0';
    if (!file) {
        return;
    }
    snprintf(wanted, sizeof wanted, "%u:%u", major(device), minor(device));
    while (getline(&line, &capacity, file) > 0) {
        char found[32];
        char type[64];
        const char *rest = strstr(line, " - ");

        if (rest && sscanf(line, "%*s %*s %31s", found) == 1 &&
            strcmp(found, wanted) == 0 && sscanf(rest, " - %63s", type) == 1) {
            copy_text(ret_type, size, type);
        }
    }
    free(line);
    fclose(file);
}

enum err_code filesystem_check(const char *path, struct err *err)
{
    char *copy = xstrdup(path);
    const char *directory = dirname(copy);
    enum err_code code = ERR_OK;
    struct statfs fs;
    struct stat st;
    char type[64];
    const char *name;

    if (statfs(directory, &fs) != 0 || stat(directory, &st) != 0) {
        code = err_set_errno(err, errno, "%s", directory);
        goto out;
    }
    mount_type(st.st_dev, type, sizeof type);
    name = filesystem_refused((long)fs.f_type, type);
    if (name) {
        code = err_set(err, ERR_UNSUPPORTED,
                       "%s is on %s: a database there would be damaged in silence; use a "
                       "local disk",
                       directory, name);
    }
out:
    free(copy);
    return code;
}

static uint32_t big_endian(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 |
           bytes[3];
}

static enum err_code check_header(const char *path, const uint8_t *header, ssize_t length,
                                  struct err *err)
{
    uint32_t version;

    if (length < HEADER_BYTES || memcmp(header, "SQLite format 3", 16) != 0) {
        return err_set(err, ERR_CORRUPT, "%s is not a database", path);
    }
    if (big_endian(header + HEADER_APPLICATION_ID) != MIGRATE_APPLICATION_ID) {
        return err_set(err, ERR_CORRUPT, "%s is a database of another program", path);
    }
    version = big_endian(header + HEADER_USER_VERSION);
    if (version > (uint32_t)migrate_current()) {
        return err_set(err, ERR_NEWER,
                       "%s has schema %" PRIu32
                       ", this program knows up to %d: use the "
                       "newer reprod that made it",
                       path, version, migrate_current());
    }
    return ERR_OK;
}

enum err_code connection_check_file(const char *path, struct err *err)
{
    uint8_t header[HEADER_BYTES];
    enum err_code code = ERR_OK;
    ssize_t length;
    int fd;

    if (files_restoring(path)) {
        return err_set(err, ERR_CONFLICT,
                       "%s: a restore was not finished: start the service, which "
                       "finishes it",
                       path);
    }
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT ? ERR_OK : err_set_errno(err, errno, "%s", path);
    }
    length = pread(fd, header, sizeof header, 0);
    if (length < 0) {
        code = err_set_errno(err, errno, "%s", path);
    } else if (length > 0) {
        code = check_header(path, header, length, err);
    }
    close(fd);
    return code;
}

static int past_deadline(void *arg)
{
    const struct tx *tx = arg;

    return tx->deadline_ns && clock_monotonic_ns() > tx->deadline_ns;
}

/* Nobody asks how much memory SQLite has, and counting it takes a lock at every
 * allocation, which the writer shares with all readers. */
static void configure(void)
{
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

/* NULL on failure. */
static struct tx *open_file(const char *path, int flags, int64_t busy_timeout_ms,
                            struct err *err)
{
    static pthread_once_t configured = PTHREAD_ONCE_INIT;
    sqlite3 *db = NULL;
    struct tx *tx;
    int rc;

    pthread_once(&configured, configure);
    rc = sqlite3_open_v2(path, &db, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
                         NULL);

    if (rc != SQLITE_OK) {
        tx_error(db, rc, err);
        err_wrap(err, "%s", path);
        sqlite3_close(db);
        return NULL;
    }
    sqlite3_busy_timeout(db, (int)busy_timeout_ms);
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    rc = row_sum_register(db);
    if (rc != SQLITE_OK) {
        tx_error(db, rc, err);
        sqlite3_close(db);
        return NULL;
    }
    tx = tx_new(db);
    sqlite3_progress_handler(db, PROGRESS_OPCODES, past_deadline, tx);
    return tx;
}

static enum err_code read_pragma(struct tx *tx, const char *sql, int64_t *ret_value,
                                 struct err *err)
{
    *ret_value = -1;
    return tx_fetch_int(tx, ret_value, err, sql);
}

/* The identity is written first and outside the log, so that the bytes of the file tell
 * from its first moment whose it is. */
static enum err_code claim_file(struct tx *tx, struct err *err)
{
    char sql[64];
    int64_t application;
    int rc;

    if (read_pragma(tx, "PRAGMA application_id", &application, err) != ERR_OK) {
        return err->code;
    }
    if (application == MIGRATE_APPLICATION_ID) {
        return ERR_OK;
    }
    snprintf(sql, sizeof sql, "PRAGMA application_id = %d", MIGRATE_APPLICATION_ID);
    rc = sqlite3_exec(tx->db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? ERR_OK : tx_error(tx->db, rc, err);
}

/* The pages that hundreds of devices change in turn fit in 16 MB.  More would cost more:
 * SQLite looks at each page that it keeps after a commit. */
static enum err_code set_up_writer(struct tx *tx, struct err *err)
{
    int rc = sqlite3_exec(tx->db,
                          "PRAGMA journal_mode = WAL;"
                          "PRAGMA synchronous = FULL;"
                          "PRAGMA journal_size_limit = 8388608;"
                          "PRAGMA cache_size = -16384;"
                          "PRAGMA secure_delete = OFF;"
                          "PRAGMA foreign_keys = OFF;",
                          NULL, NULL, NULL);

    return rc == SQLITE_OK ? ERR_OK : tx_error(tx->db, rc, err);
}

static enum err_code quick_check(struct tx *tx, struct err *err)
{
    char found[256] = "";

    if (tx_fetch(tx, TX_TARGETS(found), err, "PRAGMA quick_check(1)") != ERR_OK) {
        return err->code;
    }
    return strcmp(found, "ok") == 0 ? ERR_OK : tx_integrity(found, err);
}

/* What the header could not tell, because the log may hold a later state than the file.
 */
static enum err_code check_content(struct tx *tx, bool unclean, struct err *err)
{
    int64_t version;
    int64_t application;
    int64_t tables;

    if (read_pragma(tx, "PRAGMA user_version", &version, err) != ERR_OK ||
        read_pragma(tx, "PRAGMA application_id", &application, err) != ERR_OK ||
        read_pragma(tx, "SELECT count(*) FROM sqlite_schema", &tables, err) != ERR_OK) {
        return err->code;
    }
    if ((application || tables) && application != MIGRATE_APPLICATION_ID) {
        return err_set(err, ERR_CORRUPT, "it is a database of another program");
    }
    if (version > migrate_current()) {
        return err_set(err, ERR_NEWER, "it has schema %" PRId64 ", this program knows %d",
                       version, migrate_current());
    }
    return unclean ? quick_check(tx, err) : ERR_OK;
}

/* SQLite removes the log when the last connection closes. */
static bool ended_unclean(const char *path)
{
    char *log = xasprintf("%s-wal", path);
    struct stat st;
    bool unclean = stat(log, &st) == 0 && st.st_size > 0;

    free(log);
    return unclean && stat(path, &st) == 0 && st.st_size <= CONNECTION_CHECK_BYTES;
}

/* The ids of two runs tell which was later, whatever the clock did since, and the id of a
 * run that its device was in a new state by then. */
static enum err_code follow_ids(struct tx *tx, struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT ifnull(max((SELECT ifnull(max(id), '') FROM run),"
                " (SELECT ifnull(max(id), '') FROM job),"
                " (SELECT ifnull(max(since), '') FROM device_state)), '')");
    if (query_step(&q)) {
        const char *id = query_borrow_text(&q);

        if (id_valid(id)) {
            id_follow(id);
        }
    }
    return query_end(&q, err);
}

static enum err_code prepare_writer(struct tx *tx, bool unclean, struct err *err)
{
    if (sqlite3_db_readonly(tx->db, "main")) {
        return err_set(err, ERR_IO, "it is not writable");
    }
    if (check_content(tx, unclean, err) != ERR_OK) {
        return err->code;
    }
    sqlite3_db_config(tx->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    if (claim_file(tx, err) != ERR_OK || set_up_writer(tx, err) != ERR_OK ||
        migrate_latest(tx->db, err) != ERR_OK) {
        return err->code;
    }
    /* What a savepoint may have to put back: in memory, not in a file that is written for
     * every page of every write.  Migrations sort all runs, which memory may not hold. */
    if (tx_run(tx, err, "PRAGMA temp_store = MEMORY") != ERR_OK ||
        tx_run(tx, err, "PRAGMA foreign_keys = ON") != ERR_OK ||
        checksums_watch(tx, err) != ERR_OK || totals_watch(tx, err) != ERR_OK ||
        follow_ids(tx, err) != ERR_OK ||
        infinite_runs_refuse_outdated(tx, clock_wall_ms(), err) != ERR_OK) {
        return err->code;
    }
    return cells_judge_outdated(tx, clock_wall_ms(), err);
}

enum err_code connection_open_writer(const char *path, int64_t busy_timeout_ms,
                                     struct tx **ret_tx, struct err *err)
{
    bool unclean = ended_unclean(path);
    struct tx *tx;

    if (connection_check_file(path, err) != ERR_OK) {
        return err->code;
    }
    tx =
        open_file(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, busy_timeout_ms, err);
    if (!tx) {
        return err->code;
    }
    /* What is refused stays as it is, its log included. */
    sqlite3_db_config(tx->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    if (prepare_writer(tx, unclean, err) != ERR_OK) {
        tx_free(tx);
        return err_wrap(err, "%s", path);
    }
    *ret_tx = tx;
    return ERR_OK;
}

enum err_code connection_open_beside(const char *path, int64_t busy_timeout_ms,
                                     struct tx **ret_tx, struct err *err)
{
    *ret_tx = open_file(path, SQLITE_OPEN_READONLY, busy_timeout_ms, err);
    return *ret_tx ? ERR_OK : err->code;
}

enum err_code connection_open_to_mark(const char *path, int64_t busy_timeout_ms,
                                      struct tx **ret_tx, struct err *err)
{
    *ret_tx = open_file(path, SQLITE_OPEN_READWRITE, busy_timeout_ms, err);
    if (!*ret_tx) {
        return err->code;
    }
    if (sqlite3_db_readonly((*ret_tx)->db, "main")) {
        tx_free(*ret_tx);
        *ret_tx = NULL;
        return err_set(err, ERR_IO, "%s is not writable", path);
    }
    if (tx_run(*ret_tx, err, "PRAGMA synchronous = NORMAL") != ERR_OK) {
        tx_free(*ret_tx);
        *ret_tx = NULL;
        return err->code;
    }
    return ERR_OK;
}

/* A start makes a database of an empty file; who reads needs one. */
static enum err_code check_not_empty(const char *path, struct err *err)
{
    struct stat st;

    return stat(path, &st) == 0 && st.st_size == 0
               ? err_set(err, ERR_CORRUPT, "%s is empty: there is no database in it",
                         path)
               : ERR_OK;
}

enum err_code connection_open_reader(const char *path, int64_t busy_timeout_ms,
                                     struct tx **ret_tx, struct err *err)
{
    if (access(path, F_OK) != 0) {
        return err_set(err, ERR_NOT_FOUND, "%s does not exist", path);
    }
    if (check_not_empty(path, err) != ERR_OK ||
        connection_check_file(path, err) != ERR_OK) {
        return err->code;
    }
    return connection_open_beside(path, busy_timeout_ms, ret_tx, err);
}

/* "file:PATH?immutable=1" (sqlite.org/uri.html). */
static char *frozen_uri(const char *path)
{
    struct buf uri = BUF_INIT;

    buf_puts(&uri, "file:");
    for (; *path; path++) {
        if (strchr("%?#", *path)) {
            buf_printf(&uri, "%%%02x", (unsigned char)*path);
        } else {
            buf_putc(&uri, *path);
        }
    }
    buf_puts(&uri, "?immutable=1");
    return buf_detach(&uri, NULL);
}

enum err_code connection_open_frozen(const char *path, struct tx **ret_tx,
                                     struct err *err)
{
    char *log = xasprintf("%s-wal", path);
    char *uri = NULL;
    struct stat st;

    if (access(path, R_OK) != 0) {
        err_set_errno(err, errno, "%s", path);
    } else if (stat(log, &st) == 0 && st.st_size > 0) {
        err_set(err, ERR_CONFLICT,
                "%s is served or was not closed: only a backup can be read so", path);
    } else if (check_not_empty(path, err) == ERR_OK &&
               connection_check_file(path, err) == ERR_OK) {
        uri = frozen_uri(path);
        *ret_tx = open_file(uri, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, 0, err);
        err->code = *ret_tx ? ERR_OK : err->code;
    }
    free(log);
    free(uri);
    return err->code;
}

enum witness_word connection_ask_witness(const char *path, int64_t busy_timeout_ms,
                                         struct commits *ret_found,
                                         struct commits *ret_witnessed)
{
    enum witness_word word = WITNESS_AGREES;
    struct tx *tx = NULL;
    struct loss loss;
    struct err ignored;
    struct stat st;

    *ret_found = *ret_witnessed = (struct commits){ 0 };
    if (stat(path, &st) != 0 || st.st_size == 0 ||
        connection_open_reader(path, busy_timeout_ms, &tx, &ignored) != ERR_OK) {
        return word;
    }
    sqlite3_db_config(tx->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    if (commits_read(tx, ret_found, &ignored) == ERR_OK) {
        word = witness_ask(path, ret_found, ret_witnessed);
        if (!ret_found->lineage) {
            word = WITNESS_UNCOUNTED;
        } else if (losses_read(tx, &loss, &ignored) == ERR_OK && loss.open &&
                   (word != WITNESS_AHEAD || loss.witnessed > ret_witnessed->number)) {
            word = WITNESS_AHEAD;
            *ret_witnessed = (struct commits){ ret_found->lineage, loss.witnessed };
        }
    }
    tx_free(tx);
    return word;
}

enum err_code connection_keep_loss(const char *path, int64_t busy_timeout_ms,
                                   const struct commits *found,
                                   const struct commits *witnessed, int64_t now_ms,
                                   struct err *err)
{
    struct tx *tx;
    bool kept = false;
    enum err_code code = connection_open_to_mark(path, busy_timeout_ms, &tx, err);

    if (code != ERR_OK) {
        return code; /* nobody writes what would take the log's place */
    }
    sqlite3_db_config(tx->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    code = losses_are_kept(tx, witnessed, &kept, err);
    if (code == ERR_OK && !kept) {
        code = losses_set_log_aside(path, err);
    }
    if (code == ERR_OK) {
        code = tx_run(tx, err, "PRAGMA synchronous = FULL");
    }
    if (code == ERR_OK) {
        code = totals_watch_one(tx, "lost_commits", err);
    }
    if (code == ERR_OK) {
        code = losses_keep(tx, found, witnessed, now_ms, err);
    }
    tx_free(tx);
    return code;
}
