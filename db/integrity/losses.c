#include "db/integrity/losses.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/array.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "db/tx.h"

enum err_code losses_read(struct tx *tx, struct loss *ret_loss, struct err *err)
{
    int64_t tables = 0;
    enum err_code code =
        tx_fetch_int(tx, &tables, err,
                     "SELECT count(*) FROM sqlite_schema WHERE name = 'lost_commits'");

    *ret_loss = (struct loss){ .open = false };
    if (code != ERR_OK || !tables) {
        return code;
    }
    code = tx_fetch(tx, TX_TARGETS(&ret_loss->witnessed, &ret_loss->found_ms), err,
                    "SELECT witnessed, found_ms FROM lost_commits"
                    " WHERE accepted_ms IS NULL ORDER BY witnessed DESC LIMIT 1");
    ret_loss->open = code == ERR_OK && ret_loss->witnessed > 0;
    return code;
}

static enum err_code copy_all(int from, int to, const char *name, struct err *err)
{
    ssize_t copied;

    do {
        copied = sendfile(to, from, NULL, 1 << 30);
    } while (copied > 0 || (copied < 0 && errno == EINTR));
    return copied == 0 && fsync(to) == 0 ? ERR_OK : err_set_errno(err, errno, "%s", name);
}

/* Logs that were kept: by their numbers, of which the first has no name. */
struct kept {
    char *prefix; /* PATH-wal.damaged */
    int64_t numbers[2 * LOSSES_LOGS_KEPT];
    int count;
};

static char *kept_name(const struct kept *kept, int64_t number)
{
    return number == 1 ? xstrdup(kept->prefix)
                       : xasprintf("%s-%" PRId64, kept->prefix, number);
}

/* What follows the prefix; 0: it is no such name. */
static int64_t number_of(const char *rest)
{
    char again[32];
    int64_t number = 1;

    if (*rest) {
        number = strtoll(rest + 1, NULL, 10);
        snprintf(again, sizeof again, "-%" PRId64, number);
        number = number > 1 && strcmp(again, rest) == 0 ? number : 0;
    }
    return number;
}

static int compare_numbers(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* In ascending order; those beyond what there is room for were not made by this. */
static enum err_code list_kept(struct kept *kept, struct err *err)
{
    char *copy = xstrdup(kept->prefix);
    const char *name = strrchr(kept->prefix, '/');
    const char *folder = dirname(copy);
    DIR *list = opendir(folder);
    enum err_code code = ERR_OK;
    const struct dirent *entry;

    name = name ? name + 1 : kept->prefix;
    if (!list) {
        code = err_set_errno(err, errno, "%s", folder);
    }
    while (list && kept->count < COUNT_OF(kept->numbers) && (entry = readdir(list))) {
        int64_t number = strncmp(entry->d_name, name, strlen(name)) == 0
                             ? number_of(entry->d_name + strlen(name))
                             : 0;

        if (number) {
            kept->numbers[kept->count++] = number;
        }
    }
    if (list) {
        closedir(list);
    }
    qsort(kept->numbers, (size_t)kept->count, sizeof kept->numbers[0], compare_numbers);
    free(copy);
    return code;
}

/* Whether the file NAME has the bytes of FROM. */
static bool has_bytes_of(const char *name, int from)
{
    char ours[1 << 13], theirs[sizeof ours];
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    ssize_t a = -1, b = -1;
    off_t at = 0;

    if (fd < 0) {
        return false;
    }
    do {
        a = pread(from, ours, sizeof ours, at);
        b = pread(fd, theirs, sizeof theirs, at);
        at += a;
    } while (a > 0 && a == b && memcmp(ours, theirs, (size_t)a) == 0);
    close(fd);
    return a == 0 && b == 0;
}

static enum err_code copy_to(int from, const char *name, struct err *err)
{
    int to = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
    enum err_code code;

    if (to < 0) {
        return err_set_errno(err, errno, "%s", name);
    }
    code = copy_all(from, to, name, err);
    close(to);
    if (code != ERR_OK) {
        unlink(name);
    }
    return code;
}

/* The oldest go, so that those that are kept do not fill the disk. */
static void drop_oldest(const struct kept *kept)
{
    for (int i = 0; i < kept->count - (LOSSES_LOGS_KEPT - 1); i++) {
        char *name = kept_name(kept, kept->numbers[i]);

        if (unlink(name) == 0) {
            log_warning(
                "%s was removed: of the logs that lost commits the latest %d are "
                "kept",
                name, LOSSES_LOGS_KEPT);
        }
        free(name);
    }
}

static enum err_code keep_log(int from, const char *log, struct err *err)
{
    struct kept kept = { .prefix = xasprintf("%s.damaged", log) };
    enum err_code code = list_kept(&kept, err);
    char *last = NULL, *next = NULL;

    if (code != ERR_OK) {
        goto out;
    }
    if (kept.count > 0) {
        last = kept_name(&kept, kept.numbers[kept.count - 1]);
        if (has_bytes_of(last, from)) {
            goto out;
        }
    }
    next = kept_name(&kept, kept.count ? kept.numbers[kept.count - 1] + 1 : 1);
    code = copy_to(from, next, err);
    if (code == ERR_OK) {
        log_warning("%s lost commits that were acknowledged: it is kept as %s", log,
                    next);
        drop_oldest(&kept);
    }
out:
    free(next);
    free(last);
    free(kept.prefix);
    return code;
}

enum err_code losses_set_log_aside(const char *path, struct err *err)
{
    char *log = xasprintf("%s-wal", path);
    int from = open(log, O_RDONLY | O_CLOEXEC);
    enum err_code code = ERR_OK;

    if (from >= 0) {
        code = keep_log(from, log, err);
        close(from);
    } else if (errno != ENOENT) {
        code = err_set_errno(err, errno, "%s", log);
    }
    free(log);
    return code;
}

enum err_code losses_are_kept(struct tx *tx, const struct commits *witnessed,
                              bool *ret_kept, struct err *err)
{
    struct loss loss;
    enum err_code code = losses_read(tx, &loss, err);

    *ret_kept = code == ERR_OK && loss.open && loss.witnessed >= witnessed->number;
    return code;
}

enum err_code losses_keep(struct tx *tx, const struct commits *found,
                          const struct commits *witnessed, int64_t now_ms,
                          struct err *err)
{
    return tx_run(tx, err,
                  "INSERT INTO lost_commits (last_number, witnessed, found_ms)"
                  " SELECT ?1, ?2, ?3 WHERE NOT EXISTS (SELECT 1 FROM lost_commits"
                  " WHERE accepted_ms IS NULL AND witnessed >= ?2)",
                  found->number, witnessed->number, now_ms);
}

enum err_code losses_accept(struct tx *tx, int64_t now_ms, struct err *err)
{
    return tx_run(tx, err,
                  "UPDATE lost_commits SET accepted_ms = ? WHERE accepted_ms IS NULL",
                  now_ms);
}
