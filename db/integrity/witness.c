#include "db/integrity/witness.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/mem.h"
#include "db/tx.h"

enum err_code commits_read(struct tx *tx, struct commits *ret_commits, struct err *err)
{
    *ret_commits = (struct commits){ 0 };
    return tx_fetch(tx, TX_TARGETS(&ret_commits->lineage, &ret_commits->number), err,
                    "SELECT lineage, number FROM commits");
}

enum err_code commits_count(struct tx *tx, struct commits *ret_commits, struct err *err)
{
    return tx_fetch(tx, TX_TARGETS(&ret_commits->lineage, &ret_commits->number), err,
                    "UPDATE commits SET number = number + 1 RETURNING lineage, number");
}

/* "reprod commit 00000000000000000012 of 0123456789abcdef check 0123456789abcdef\n": one
 * sector, so it is there as a whole or not at all. */
enum { RECORD_BYTES = 80 };
#define RECORD "reprod commit %020" PRId64 " of %016" PRIx64 " check %016" PRIx64 "\n"

static uint64_t check_of(const struct commits *commits)
{
    uint64_t sum = (uint64_t)commits->lineage * 0xbf58476d1ce4e5b9;

    sum ^= sum >> 29;
    return (sum ^ (uint64_t)commits->number) * 0x94d049bb133111eb;
}

static int write_record(const struct commits *commits, char *ret_record, size_t size)
{
    return snprintf(ret_record, size, RECORD, commits->number, (uint64_t)commits->lineage,
                    check_of(commits));
}

static char *path_of(const char *database)
{
    return xasprintf("%s-seq", database);
}

/* Whether RECORD is one, byte by byte. */
static bool read_record(const char *record, struct commits *ret_commits)
{
    char again[RECORD_BYTES + 1];
    uint64_t lineage, check;

    if (sscanf(record, "reprod commit %" SCNd64 " of %" SCNx64 " check %" SCNx64,
               &ret_commits->number, &lineage, &check) != 3) {
        return false;
    }
    ret_commits->lineage = (int64_t)lineage;
    write_record(ret_commits, again, sizeof again);
    return strcmp(record, again) == 0;
}

enum witness_word witness_ask(const char *path, const struct commits *found,
                              struct commits *ret_witnessed)
{
    char record[RECORD_BYTES + 1] = "";
    char *name = path_of(path);
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    ssize_t length;

    free(name);
    *ret_witnessed = (struct commits){ 0 };
    if (fd < 0) {
        return errno == ENOENT ? WITNESS_MISSING : WITNESS_UNREADABLE;
    }
    length = pread(fd, record, RECORD_BYTES, 0);
    close(fd);
    if (length <= 0 || !read_record(record, ret_witnessed)) {
        return WITNESS_UNREADABLE;
    }
    if (ret_witnessed->lineage != found->lineage) {
        return WITNESS_OF_ANOTHER;
    }
    return ret_witnessed->number > found->number ? WITNESS_AHEAD : WITNESS_AGREES;
}

static enum err_code sync_folder(const char *path)
{
    char *copy = xstrdup(path);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = fd >= 0 ? fsync(fd) : -1;

    if (fd >= 0) {
        close(fd);
    }
    free(copy);
    return rc == 0 ? ERR_OK : ERR_IO;
}

/* A new file under another name first: at no time is there a witness that says less. */
static bool make_file(struct witness *w)
{
    char *fresh = xasprintf("%s.new", w->path);
    char record[RECORD_BYTES + 1];
    int length = write_record(&w->last, record, sizeof record);
    int fd = open(fresh, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                  S_IRUSR | S_IWUSR);
    bool made = fd >= 0 && pwrite(fd, record, (size_t)length, 0) == length &&
                fsync(fd) == 0 && rename(fresh, w->path) == 0 &&
                sync_folder(w->path) == ERR_OK;

    if (made) {
        if (w->fd >= 0) {
            close(w->fd);
        }
        w->fd = fd;
    } else if (fd >= 0) {
        close(fd);
        unlink(fresh);
    }
    free(fresh);
    return made;
}

void witness_open(struct witness *w, const char *database, const struct commits *commits)
{
    w->path = path_of(database);
    w->last = *commits;
    w->fd = open(w->path, O_RDWR | O_CLOEXEC);
    if (w->fd >= 0 || make_file(w)) {
        witness_write(w, commits);
    }
}

void witness_close(struct witness *w)
{
    if (w->path && w->fd >= 0) {
        fsync(w->fd);
        close(w->fd);
    }
    free(w->path);
    w->path = NULL;
}

enum err_code witness_follows(const struct witness *w, struct tx *tx, struct err *err)
{
    struct commits found;

    if (!w->path) {
        return ERR_OK;
    }
    if (commits_read(tx, &found, err) != ERR_OK) {
        return err->code;
    }
    return found.lineage == w->last.lineage && found.number >= w->last.number
               ? ERR_OK
               : err_set(
                     err, ERR_IO,
                     "the count of commits in the database was taken away or set back "
                     "while it is served: a loss would not be seen; put it back "
                     "(table commits: %" PRId64 ", %" PRId64 "), or restart reprod",
                     w->last.lineage, w->last.number);
}

void witness_write(struct witness *w, const struct commits *commits)
{
    char record[RECORD_BYTES + 1];
    int length = write_record(commits, record, sizeof record);

    w->last = *commits;
    if (w->fd >= 0 && pwrite(w->fd, record, (size_t)length, 0) != length) {
        return; /* an older witness says less, and nothing wrong */
    }
}

/* Whether what the path names is the open file. */
static bool is_there(const struct witness *w)
{
    struct stat there, ours;

    if (stat(w->path, &there) != 0) {
        return errno != ENOENT && errno != ENOTDIR;
    }
    return fstat(w->fd, &ours) != 0 ||
           (there.st_ino == ours.st_ino && there.st_dev == ours.st_dev);
}

static bool says_it(const struct witness *w)
{
    char record[RECORD_BYTES + 1], found[RECORD_BYTES + 1] = "";

    write_record(&w->last, record, sizeof record);
    return pread(w->fd, found, RECORD_BYTES, 0) < 0 || strcmp(record, found) == 0;
}

enum witness_kept witness_keep(struct witness *w)
{
    if (!w->path || (w->fd >= 0 && is_there(w) && says_it(w))) {
        return WITNESS_STANDS;
    }
    return make_file(w) ? WITNESS_REMADE : WITNESS_GONE;
}
