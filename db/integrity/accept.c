#include "db/integrity/accept.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/base/mem.h"
#include "db/connection.h"
#include "db/files.h"
#include "db/fsck.h"
#include "db/integrity/cell_repair.h"
#include "db/integrity/checksums.h"
#include "db/integrity/losses.h"
#include "db/integrity/quarantine.h"
#include "db/integrity/totals.h"
#include "db/integrity/witness.h"
#include "db/tx.h"

enum { BUSY_TIMEOUT_MS = 5000 };

struct acceptance {
    struct tx *tx;
    int64_t now_ms, count;
    void (*report)(void *arg, const char *line);
    void *arg;
    struct err err; /* of what could not be written down */
};

static void write_down(struct acceptance *a, const char *line)
{
    a->count++;
    a->report(a->arg, line);
    if (a->err.code == ERR_OK) {
        tx_run(a->tx, &a->err, "INSERT INTO accepted_loss (at_ms, what) VALUES (?, ?)",
               a->now_ms, line);
    }
}

static void take_row(void *arg, const char *table, const char *key, int64_t cell)
{
    char line[160];

    (void)cell;
    snprintf(line, sizeof line, "%s %.100s is taken as it is", table, key);
    write_down(arg, line);
}

/* The number goes on behind the last one that was durable. */
static enum err_code accept_commits(struct acceptance *a, const struct commits *found,
                                    const struct commits *witnessed, struct err *err)
{
    char line[160];

    snprintf(line, sizeof line, "commits %" PRId64 " to %" PRId64 " are lost",
             found->number + 1, witnessed->number);
    write_down(a, line);
    return losses_accept(a->tx, a->now_ms, err) == ERR_OK
               ? tx_run(a->tx, err, "UPDATE commits SET number = ?",
                        witnessed->number + 1)
               : err->code;
}

/* A count of this database goes on, for whatever it has. */
static enum err_code accept_uncounted(struct acceptance *a,
                                      const struct commits *witnessed, struct err *err)
{
    char line[160];

    snprintf(line, sizeof line,
             "the count of commits was taken away, and goes on at %" PRId64
             ": which are lost is not known",
             witnessed->number + 1);
    write_down(a, line);
    return losses_accept(a->tx, a->now_ms, err) == ERR_OK
               ? tx_run(a->tx, err,
                        "INSERT INTO commits VALUES (iif(?1, ?1, random()), ?2)",
                        witnessed->lineage, witnessed->number + 1)
               : err->code;
}

static enum err_code accept_quarantine(struct acceptance *a, struct err *err)
{
    int64_t count;
    char line[160];

    if (quarantine_accept(a->tx, a->now_ms, &count, err) != ERR_OK) {
        return err->code;
    }
    if (count) {
        snprintf(line, sizeof line, "%" PRId64 " in quarantine stay there", count);
        write_down(a, line);
    }
    return ERR_OK;
}

static void take_table(void *arg, const char *line)
{
    write_down(arg, line);
}

static enum err_code accept_totals(struct acceptance *a, struct err *err)
{
    int64_t ignored;

    return totals_check(a->tx, take_table, a, &ignored, err) == ERR_OK
               ? totals_accept(a->tx, err)
               : err->code;
}

static enum err_code accept_all(struct acceptance *a, enum witness_word word,
                                const struct commits *found,
                                const struct commits *witnessed, struct err *err)
{
    if (tx_run(a->tx, err, "BEGIN IMMEDIATE") != ERR_OK ||
        (word == WITNESS_AHEAD && accept_commits(a, found, witnessed, err) != ERR_OK) ||
        (word == WITNESS_UNCOUNTED && accept_uncounted(a, witnessed, err) != ERR_OK) ||
        accept_quarantine(a, err) != ERR_OK || accept_totals(a, err) != ERR_OK ||
        checksums_accept(a->tx, take_row, a, err) != ERR_OK) {
        return err->code;
    }
    if (a->err.code != ERR_OK) {
        *err = a->err;
        return err->code;
    }
    return tx_run(a->tx, err, "COMMIT");
}

static enum err_code accept_locked(struct acceptance *a, const char *path,
                                   struct err *err)
{
    struct commits found, witnessed;
    struct witness witness;
    enum witness_word word =
        connection_ask_witness(path, BUSY_TIMEOUT_MS, &found, &witnessed);
    enum err_code code = ERR_OK;

    if (word == WITNESS_AHEAD) { /* nobody may have kept its log yet */
        code = connection_keep_loss(path, BUSY_TIMEOUT_MS, &found, &witnessed, a->now_ms,
                                    err);
    }
    if (code == ERR_OK) {
        code = connection_open_writer(path, BUSY_TIMEOUT_MS, &a->tx, err);
    }
    if (code == ERR_OK) {
        code = accept_all(a, word, &found, &witnessed, err);
    }
    if (code == ERR_OK && (word == WITNESS_AHEAD || word == WITNESS_UNCOUNTED)) {
        code = commits_read(a->tx, &found, err);
        if (code == ERR_OK) {
            witness_open(&witness, path, &found);
            witness_close(&witness);
        }
    }
    tx_free(a->tx);
    return code;
}

/* What fsck tells. */
struct faults {
    char **lines;
    int64_t *cells; /* that differ; neighbours are not the same */
    int line_count, cell_count;
};

static void take_fault(void *arg, const char *line)
{
    struct faults *f = arg;

    f->lines = xgrow(f->lines, f->line_count, sizeof *f->lines);
    f->lines[f->line_count++] = xstrdup(line);
}

static void take_cell(void *arg, int64_t cell)
{
    struct faults *f = arg;

    if (f->cell_count == 0 || f->cells[f->cell_count - 1] != cell) {
        f->cells = xgrow(f->cells, f->cell_count, sizeof *f->cells);
        f->cells[f->cell_count++] = cell;
    }
}

static void pass_over(void *arg, const char *line)
{
    (void)arg;
    (void)line;
}

/* Built anew from its runs, or in quarantine. */
static enum err_code repair(struct acceptance *a, int64_t cell, struct err *err)
{
    enum cell_repair repair;
    char line[80];

    if (cell_repair(a->tx, cell, a->now_ms, &repair, err) != ERR_OK) {
        return err->code;
    }
    if (repair == CELL_REBUILT) {
        snprintf(line, sizeof line, "cell %" PRId64 " was built anew from its runs",
                 cell);
        write_down(a, line);
    }
    return ERR_OK;
}

static enum err_code write_faults(struct acceptance *a, const struct faults *f,
                                  struct err *err)
{
    enum err_code code = tx_run(a->tx, err, "BEGIN IMMEDIATE");

    for (int i = 0; i < f->cell_count && code == ERR_OK; i++) {
        code = repair(a, f->cells[i], err);
    }
    if (code != ERR_OK || accept_quarantine(a, err) != ERR_OK) {
        return err->code;
    }
    for (int i = 0; i < f->line_count; i++) {
        write_down(a, f->lines[i]);
    }
    if (a->err.code != ERR_OK) {
        *err = a->err;
        return err->code;
    }
    return tx_run(a->tx, err, "COMMIT");
}

/* What contradicts what is there, once that is taken as it is.  fsck opens the file, so
 * nothing else of this process may have it open. */
static enum err_code accept_faults(struct acceptance *a, const char *path,
                                   struct err *err)
{
    struct faults f = { .line_count = 0 };
    const struct fsck fsck = { .readers = (int)sysconf(_SC_NPROCESSORS_ONLN),
                               .now_ms = a->now_ms,
                               .report = pass_over,
                               .may_acknowledge = take_fault,
                               .cell_differs = take_cell,
                               .arg = &f };
    struct fsck_counts counts;
    enum err_code code = fsck_file(path, &fsck, &counts, err);

    if (code == ERR_OK && (f.line_count || f.cell_count)) {
        code = connection_open_writer(path, BUSY_TIMEOUT_MS, &a->tx, err);
        if (code == ERR_OK) {
            code = write_faults(a, &f, err);
            tx_free(a->tx);
        }
    }
    for (int i = 0; i < f.line_count; i++) {
        free(f.lines[i]);
    }
    free(f.lines);
    free(f.cells);
    return code;
}

enum err_code accept_loss(const char *path, int64_t now_ms,
                          void (*report)(void *arg, const char *line), void *arg,
                          int64_t *ret_count, struct err *err)
{
    struct acceptance a = { .now_ms = now_ms, .report = report, .arg = arg };
    struct files_lock lock;
    enum err_code code = files_lock(path, &lock, err);

    if (code == ERR_OK) {
        code = accept_locked(&a, path, err);
    }
    if (code == ERR_OK) {
        code = accept_faults(&a, path, err);
    }
    files_unlock(&lock);
    *ret_count = a.count;
    return code;
}
