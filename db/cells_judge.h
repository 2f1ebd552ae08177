/* Adding a finished run to its cell, judging a cell, and writing down what changed.
 *
 * Counts are sums, minima, maxima and sets, and what depends on order (runs since the
 * last failure) goes by run id, so any order of arrival gives the same cell.  Private to
 * db/. */
#ifndef DB_CELLS_JUDGE_H
#define DB_CELLS_JUDGE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/jobs/run.h"
#include "db/cells_rows.h"

struct run_summary; /* db/upkeep/summaries.h */
struct tx;

/* The cell of a case and an environment (numbers), made if there is none, with the
 * subject of that item of a job. */
enum err_code cells_place(struct tx *tx, int64_t case_key, int64_t environment,
                          int64_t job, int item, int64_t *ret_id, struct err *err);

/* What a cell is after a run was added. */
struct cell_effect {
    enum verdict verdict;
    bool changed;                 /* it was another */
    enum dissent_state agreement; /* as stored: before it is judged with all its runs */
};

/* Adds RUN, stored already as finished in cell run->cell, with its DIGESTS (completed
 * runs only; others pass 0), and judges the cell and, if it is a control, those that
 * depend on it.  Changes go to the history and the outbox. */
enum err_code cells_fold(struct tx *tx, const struct run_record *run,
                         const struct run_digest *digests, int digest_count,
                         struct cell_effect *ret_effect, struct err *err);

/* Whether a command is said to have been challenged alike with the counts A and B. */
bool cells_answered_alike(const struct challenges *a, const struct challenges *b);

/* What of that changes ROW and the rows below it, for a run and for runs that are folded
 * into one row.  The latter does not count what completed since a failure. */
enum err_code cells_fold_counts(struct tx *tx, struct cell_row *row,
                                const struct run_record *run,
                                const struct run_digest *digests, int digest_count,
                                struct err *err);
enum err_code cells_fold_summary(struct tx *tx, struct cell_row *row,
                                 const struct run_summary *summary, struct err *err);

/* Grows when CELL varies under further conditions, or in a further hour. */
enum err_code cells_count_varied(struct tx *tx, int64_t cell, int64_t *ret_count,
                                 struct err *err);

/* Counts in ROW which stored runs completed since its last failure. */
enum err_code cells_count_since_failure(struct tx *tx, struct cell_row *row,
                                        struct err *err);

/* A challenge (db/cases/challenges.h) of cell CELL ended: counts how it was answered and
 * judges as cells_fold does. */
enum err_code cells_challenged(struct tx *tx, int64_t cell, const struct run_record *run,
                               enum verdict *ret_verdict, bool *ret_changed,
                               struct err *err);

/* What verdict_judge makes of ROW's evidence and of the control cells as stored. */
enum err_code cell_rows_judge(struct tx *tx, const struct cell_row *row,
                              struct judgement *ret_judgement, struct err *err);

/* Whether what varied in cell CELL, a control, shows anything of others: it was seen to
 * compute what it should, and it is not only devices that differ. */
enum err_code cells_right_control(struct tx *tx, int64_t cell, bool *ret_right,
                                  struct err *err);

/* Whether JUDGEMENT makes something else of CELL, beyond what it says of it: another
 * verdict, or one that waits no longer. */
bool cells_is_change(const struct cell *cell, const struct judgement *judgement);

/* Adds ROW, as it is with JUDGEMENT, to history and outbox.  RUN: the one whose storing
 * changed it, "" if none. */
enum err_code cells_add_change(struct tx *tx, const struct cell_row *row,
                               const struct judgement *judgement, const char *run,
                               int64_t now_ms, struct err *err);

/* After ROW, as it was before, was judged and stored: who dissents now. */
enum err_code cells_store_dissenters(struct tx *tx, const struct cell_row *row,
                                     const struct judgement *judgement, const char *run,
                                     int64_t now_ms, struct err *err);

/* Judges the cells that depend on CONTROL, a cell. */
enum err_code cells_judge_dependants(struct tx *tx, int64_t control, const char *run,
                                     int64_t now_ms, struct err *err);

/* Judges cell ID and, if it is a control, the cells that depend on it: after something
 * else than its runs changed. */
enum err_code cells_judge_again(struct tx *tx, int64_t id, int64_t now_ms,
                                struct err *err);

/* Judges the cells of case CASE_KEY (a number) and of its siblings in every environment:
 * after the declaration of the case changed. */
enum err_code cells_judge_siblings(struct tx *tx, int64_t case_key, int64_t now_ms,
                                   struct err *err);

/* Which VERDICT_RULES the stored verdicts follow. */
enum err_code cells_judged_by(struct tx *tx, int64_t *ret_rules, struct err *err);

/* What follows where cells were judged by other rules than VERDICT_RULES: FOLLOW, in a
 * transaction of its own, which is rolled back if it fails.  Nothing if they were not. */
enum err_code cells_under_new_rules(struct tx *tx,
                                    enum err_code (*follow)(struct tx *tx, int64_t now_ms,
                                                            struct err *err),
                                    int64_t now_ms, struct err *err);

/* Judges all cells again, in a transaction of its own, if they were judged by other rules
 * than VERDICT_RULES: at the first start of a program that has others. */
enum err_code cells_judge_outdated(struct tx *tx, int64_t now_ms, struct err *err);

#endif
