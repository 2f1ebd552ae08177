/* A witness of the last commit, beside the database: REPROD.DB-seq.
 *
 * SQLite takes a write-ahead log up to its first damaged frame: commits behind it are
 * gone, though they were acknowledged, and nothing says so.  So each commit counts one up
 * in the database (table commits), and when it is durable its number is written here.  A
 * database that has a lower one has lost commits.  A higher one is normal: the service
 * was killed between the two writes, so the witness is never ahead of what is durable.
 *
 * The witness itself is not synced at each commit: after a power cut it may be older than
 * the database, and then says less.  It is a text of a fixed length, with a checksum;
 * which database it is of (its lineage) is in it, too. */
#ifndef DB_INTEGRITY_WITNESS_H
#define DB_INTEGRITY_WITNESS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"

struct tx;

struct commits {
    int64_t lineage; /* of the database, for ever */
    int64_t number;  /* of its last commit */
};

/* What the database of TX says; all 0: it counts none, since its row was taken away. */
enum err_code commits_read(struct tx *tx, struct commits *ret_commits, struct err *err);

/* Counts one up, in the transaction that TX is in. */
enum err_code commits_count(struct tx *tx, struct commits *ret_commits, struct err *err);

enum witness_word {
    WITNESS_AGREES, /* or is older */
    WITNESS_MISSING,
    WITNESS_UNREADABLE,
    WITNESS_OF_ANOTHER, /* database */
    WITNESS_AHEAD,      /* commits were lost */
    WITNESS_UNCOUNTED   /* the database counts none (connection_ask_witness) */
};

/* What the witness of the database PATH says of FOUND. */
enum witness_word witness_ask(const char *path, const struct commits *found,
                              struct commits *ret_witnessed);

/* The witness that a service keeps. */
struct witness {
    char *path;          /* NULL: none is kept */
    int fd;              /* -1: it could not be made */
    struct commits last; /* what it says */
};

/* Opens the witness of DATABASE, or makes it, for its owner alone, and lets it say
 * COMMITS.  Closed with witness_close, which makes durable what it says. */
void witness_open(struct witness *witness, const char *database,
                  const struct commits *commits);
void witness_close(struct witness *witness);

/* Whether the database of TX goes on from what WITNESS says: ERR_IO where somebody took
 * its count away or set it back, since a loss would not be seen then. */
enum err_code witness_follows(const struct witness *witness, struct tx *tx,
                              struct err *err);

/* COMMITS is durable. */
void witness_write(struct witness *witness, const struct commits *commits);

/* Whether the file is still there and says what was written; else it is made anew,
 * durably, from what is known.  What cannot be looked at stands. */
enum witness_kept {
    WITNESS_STANDS,
    WITNESS_REMADE,
    WITNESS_GONE /* and cannot be made anew */
} witness_keep(struct witness *witness);

#endif
