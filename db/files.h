/* The files of a database that is served: the database, its log and the log's index.
 *
 * SQLite goes on with open descriptors: what it writes to a file that was removed, moved
 * away or replaced is gone, and it reports success.  So whoever acknowledges a write
 * looks here first. */
#ifndef DB_FILES_H
#define DB_FILES_H

#include <stdbool.h>
#include <sys/types.h>

#include "daemon/base/err.h"

enum { FILES_COUNT = 3 };

struct files {
    struct file {
        char *path;
        dev_t device;
        ino_t inode; /* 0: it was not there yet */
    } list[FILES_COUNT];
};

/* Remembers which files there are now at PATH; freed with files_release. */
void files_init(struct files *files, const char *path);
void files_release(struct files *files);

/* Whether the paths still name the same files; one that appears later is remembered.
 * ERR_IO says which does not. */
enum err_code files_check(struct files *files, struct err *err);

/* The same once something was committed into them: a file that cannot be looked at may be
 * there, and whoever was told that nothing is stored would store it again. */
enum err_code files_check_stored(struct files *files, struct err *err);

/* Who serves a database, or puts another in its place, holds its lock and, where others
 * cannot read that, the lock of its folder. */
struct files_lock {
    int folder, database; /* descriptors; -1: none */
};
#define FILES_UNLOCKED                                                                   \
    (struct files_lock)                                                                  \
    {                                                                                    \
        -1, -1                                                                           \
    }

/* A database that is not there is made, empty, and can be read by its owner alone.
 * ERR_BUSY: another process holds a lock, and
 * did so for two seconds (a process that a killed service had just forked has its
 * descriptors until it executes another program); ERR_IO.  Unlocked in any case, also
 * after an error, and not before SQLite closed the database: that ends all locks that
 * this process has on it. */
enum err_code files_lock(const char *path, struct files_lock *ret_lock, struct err *err);
void files_unlock(struct files_lock *lock);

/* Whether the beginning of the database can be read and is that of one: ERR_IO.  SQLite
 * keeps what it has read, and would not notice for long.  (No descriptor of it may be
 * opened and closed for this: see above.) */
enum err_code files_check_head(const struct files_lock *lock, const char *path,
                               struct err *err);

/* Whether a backup is being put in the place of PATH (db/integrity/restore.h), or whoever
 * did it was killed: until that is finished, PATH may lack its log. */
bool files_restoring(const char *path);

/* Whether the file system of PATH takes more: ERR_IO if it is mounted read-only, or has
 * less than FILES_ROOM_BYTES left for this user. */
enum { FILES_ROOM_BYTES = 1 << 20 };
enum err_code files_check_room(const char *path, struct err *err);

#endif
