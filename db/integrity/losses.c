#include "db/integrity/losses.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

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

enum err_code losses_set_log_aside(const char *path, struct err *err)
{
    char *log = xasprintf("%s-wal", path);
    char *kept = xasprintf("%s.damaged", log);
    int from = open(log, O_RDONLY | O_CLOEXEC);
    int to = -1;
    enum err_code code = ERR_OK;

    if (from < 0) {
        code = errno == ENOENT ? ERR_OK : err_set_errno(err, errno, "%s", log);
        goto out;
    }
    to = open(kept, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (to < 0) {
        code = errno == EEXIST ? ERR_OK : err_set_errno(err, errno, "%s", kept);
        goto out;
    }
    code = copy_all(from, to, kept, err);
    if (code != ERR_OK) {
        unlink(kept);
    }
out:
    if (from >= 0) {
        close(from);
    }
    if (to >= 0) {
        close(to);
    }
    free(kept);
    free(log);
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
