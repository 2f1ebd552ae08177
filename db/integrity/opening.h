/* A database as it is opened to be served: locked, whole as far as its witness knows,
 * migrated, with all connections that will ever be made to it.
 *
 * What is refused before anything is changed: another reprod serves it, its file system
 * cannot hold it, it is damaged, foreign or newer, or it is gone and its witness tells
 * that there was one.  What is opened all the same, but takes no writes: a database that
 * lost commits, and one that is only to be read.  Private to db/. */
#ifndef DB_INTEGRITY_OPENING_H
#define DB_INTEGRITY_OPENING_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "db/files.h"
#include "db/integrity/witness.h"

struct tx;

struct opening {
    int readers;
    bool read_only; /* a backup, which nobody changes: nothing is locked or made */
    int64_t busy_timeout_ms;
};

struct opened {
    struct files_lock lock;
    struct files files;
    struct witness witness; /* whoever writes keeps it */
    struct err refusal;     /* of all writes; ERR_OK: none */
    struct tx *writer;      /* of a database that takes no writes, one more reader */
    struct tx **readers;
    int reader_count;
    struct tx *background;
};

/* Opens PATH; errors as store_open has.  In any case RET_OPENED is then to be closed with
 * opening_close, when no thread uses it any more. */
enum err_code opening_open(const char *path, const struct opening *options,
                           struct opened *ret_opened, struct err *err);
void opening_close(struct opened *opened);

#endif
