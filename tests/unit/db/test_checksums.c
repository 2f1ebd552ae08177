/* Rows that are no longer what was stored: found, never folded, never green. */
#include "tests/unit/db/cells_fixture.h"
#include "tests/unit/db/edit_fixture.h"

#include <sqlite3.h>

#include "db/integrity/cell_repair.h"
#include "db/integrity/quarantine.h"
#include "db/tx.h"

struct found {
    int count;
    char table[64], key[64];
};

static void take_found(void *arg, const char *table, const char *key, int64_t cell)
{
    struct found *found = arg;

    (void)cell;
    found->count++;
    snprintf(found->table, sizeof found->table, "%s", table);
    snprintf(found->key, sizeof found->key, "%s", key);
}

static enum err_code look(struct tx *tx, void *arg, struct err *err)
{
    int64_t rows;

    return checksums_check(tx, take_found, arg, &rows, err);
}

static struct found damaged(struct fixture *f)
{
    struct found found = { 0 };

    fixture_read(f, look, &found);
    return found;
}

static enum err_code repair(struct tx *tx, void *arg, struct err *err)
{
    enum cell_repair repaired;
    enum err_code code = cell_repair(tx, *(int64_t *)arg, 5000, &repaired, err);

    *(int64_t *)arg = repaired;
    return code;
}

static enum cell_repair repair_cell(struct fixture *f, const char *variant)
{
    int64_t cell = fixture_cell(f, variant).id;

    fixture_write(f, repair, &cell);
    return (enum cell_repair)cell;
}

/* `unordered` varied in run 1, `ordered` gave one digest in runs 2 and 3: green. */
static void make_green(struct fixture *f)
{
    insert_job(f);
    vary(f, 1);
    store(f, completed(2, ORDERED));
    store(f, completed(3, ORDERED));
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_REPRODUCIBLE);
    assert_int_equal(damaged(f).count, 0);
}

/* One change in each table that has sums. */
static void test_any_edited_row_is_found(void **state)
{
    static const char *const edits[][2] = {
        { "run", "UPDATE run SET weight_sum = '3ff0000000000001' WHERE id LIKE '%0002'" },
        { "run", "UPDATE run SET refused = 0, cause = 'x' WHERE id LIKE '%0002'" },
        { "run", "UPDATE run SET sum = NULL WHERE id LIKE '%0002'" },
        { "run",
          "UPDATE run_digest SET first_iteration = first_iteration + 1"
          " WHERE run LIKE '%0001' AND first_iteration = 1" },
        { "run", "DELETE FROM run_check WHERE run LIKE '%0001'" },
        { "cell", "UPDATE cell SET reason = reason || '.' WHERE distinct_digests = 1" },
        { "cell_history",
          "UPDATE cell_history SET runs = runs + 1 WHERE cell = 1"
          " AND at_ms = (SELECT max(at_ms) FROM cell_history WHERE cell = 1)" },
        { "job", "UPDATE job SET request = '{\"a\":1}'" },
        { "job", "UPDATE job SET timeout_ms = timeout_ms + 1" },
        { "job_item", "UPDATE job_item SET runs_wanted = runs_wanted + 1 WHERE seq = 0" },
        { "case_key", "UPDATE case_key SET is_control = 1 WHERE variant = 'ordered'" },
        { "environment", "UPDATE environment SET title = title || 'x'" },
    };

    for (int i = 0; i < (int)(sizeof edits / sizeof edits[0]); i++) {
        struct fixture *f = *state;
        struct found found;

        fixture_close(f);
        fixture_remove(f);
        fixture_open(f);
        make_green(f);
        edit(f, edits[i][1]);
        found = damaged(f);
        if (found.count != 1) {
            fail_msg("%s: %d found", edits[i][1], found.count);
        }
        assert_string_equal(found.table, edits[i][0]);
    }
}

/* The digest of a run turns to another: its cell is not built anew from that. */
static void test_a_damaged_run_is_no_evidence(void **state)
{
    struct fixture *f = *state;
    struct cell cell;

    make_green(f);
    edit(f, "UPDATE run SET outcome = 'lost' WHERE id LIKE '%2'");
    assert_int_equal(repair_cell(f, "ordered"), CELL_ISOLATED);
    cell = fixture_cell(f, "ordered");
    assert_int_equal(cell.verdict, VERDICT_INCONCLUSIVE);
    assert_non_null(strstr(cell.reason, "run 01R00000000000000000000002"));
    assert_int_equal(cell.evidence.runs[OUTCOME_COMPLETED], 2);
    store(f, completed(4, ORDERED)); /* further runs do not heal it */
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_INCONCLUSIVE);
}

/* A run that showed another digest, edited to the one of the others. */
static void test_no_green_from_an_edited_run(void **state)
{
    struct fixture *f = *state;
    struct fixture_run other = completed(4, ORDERED);

    make_green(f);
    other.digest = 77;
    store(f, other);
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_VARIES);
    edit(f,
         "UPDATE run SET digest = (SELECT digest FROM run WHERE id LIKE '%2')"
         " WHERE id LIKE '%4'");
    assert_int_equal(repair_cell(f, "ordered"), CELL_ISOLATED);
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_INCONCLUSIVE);
}

/* ... or taken away. */
static void test_no_green_from_a_missing_run(void **state)
{
    struct fixture *f = *state;
    struct fixture_run other = completed(4, ORDERED);

    make_green(f);
    other.digest = 77;
    store(f, other);
    edit(f, "DELETE FROM run WHERE id LIKE '%4'");
    assert_int_equal(repair_cell(f, "ordered"), CELL_ISOLATED);
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_INCONCLUSIVE);
}

/* A control in quarantine vouches for nothing. */
static void test_a_damaged_control_does_not_vouch(void **state)
{
    struct fixture *f = *state;

    make_green(f);
    edit(f, "UPDATE run SET loss = '1' WHERE id LIKE '%1'");
    assert_int_equal(repair_cell(f, "unordered"), CELL_ISOLATED);
    assert_int_equal(verdict_of(f, "unordered"), VERDICT_INCONCLUSIVE);
    assert_int_not_equal(verdict_of(f, "ordered"), VERDICT_REPRODUCIBLE);
}

/* At once, before anybody looked; and from whose runs it is known what it is. */
static void test_an_edited_cell_is_not_served(void **state)
{
    struct fixture *f = *state;
    struct cell before, after;

    make_green(f);
    before = fixture_cell(f, "ordered");
    edit(f,
         "UPDATE cell SET completed = 99, changed_ms = 1, subject = 'library',"
         " subject_name = 'cuDNN' WHERE verdict = 'reproducible'");
    after = fixture_cell(f, "ordered");
    assert_int_equal(after.verdict, VERDICT_INCONCLUSIVE);
    assert_non_null(strstr(after.reason, "not what was stored"));
    assert_int_equal(repair_cell(f, "ordered"), CELL_REBUILT);
    after = fixture_cell(f, "ordered");
    assert_int_equal(after.verdict, VERDICT_REPRODUCIBLE);
    assert_int_equal(after.subject, before.subject);
    assert_int_equal(after.changed_ms, before.changed_ms);
    assert_int_equal(after.evidence.runs[OUTCOME_COMPLETED], 2);
    fixture_check_cells(f);
}

/* A run that ends meets the damage first. */
static void test_nothing_is_added_to_an_edited_cell(void **state)
{
    struct fixture *f = *state;

    make_green(f);
    edit(f, "UPDATE cell SET completed = 99 WHERE verdict = 'reproducible'");
    store(f, completed(4, ORDERED));
    assert_int_equal(fixture_cell(f, "ordered").evidence.runs[OUTCOME_COMPLETED], 3);
    assert_int_equal(verdict_of(f, "ordered"), VERDICT_REPRODUCIBLE);
    fixture_check_cells(f);
}

static enum err_code cancel(struct tx *tx, void *arg, struct err *err)
{
    return jobs_cancel(tx, arg, 9000, err);
}

/* What is damaged stays so when other columns change. */
static void test_a_change_does_not_hide_damage(void **state)
{
    char id[ID_SIZE];
    struct fixture *f = *state;

    make_green(f);
    edit(f, "UPDATE job SET request = '{\"a\":1}'");
    fixture_id('J', 1, id);
    fixture_write(f, cancel, id);
    assert_string_equal(damaged(f).table, "job");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_any_edited_row_is_found),
        STORE_TEST(test_a_damaged_run_is_no_evidence),
        STORE_TEST(test_no_green_from_an_edited_run),
        STORE_TEST(test_no_green_from_a_missing_run),
        STORE_TEST(test_a_damaged_control_does_not_vouch),
        STORE_TEST(test_an_edited_cell_is_not_served),
        STORE_TEST(test_nothing_is_added_to_an_edited_cell),
        STORE_TEST(test_a_change_does_not_hide_damage),
    };

    return cmocka_run_group_tests_name("checksums", tests, NULL, NULL);
}
