/* In a view of environments a letter speaks of environments: bits that were measured
 * under load in one of them alone have none. */
#include "tests/unit/db/cells_fixture.h"

#include "db/tx.h"
#include "db/views/classes.h"

enum { COLUMNS_MAX = 4 };

/* The row of `ordered`: its letters, '.' for none, '!' apart, ' ' not measured; the
 * environment that was used first comes last. */
struct seen {
    char letters[COLUMNS_MAX + 1];
    bool differs, varies;
};

static enum err_code look(struct tx *tx, void *arg, struct err *err)
{
    const struct classes_filter filter = { .subject = SUBJECT_COUNT, .now_ms = 100000 };
    struct seen *seen = arg;
    struct classes classes;

    assert_int_equal(classes_read_environments(tx, &filter, &classes, err), ERR_OK);
    for (int r = 0; r < classes.row_count; r++) {
        const struct class_row *row = &classes.rows[r];

        if (strcmp(row->key.variant, "ordered") != 0) {
            continue;
        }
        for (int c = 0; c < classes.column_count; c++) {
            const struct class_entry *e = &row->entries[c];
            int letter = classes_letter(row, e);

            seen->letters[c] = !e->cell     ? ' '
                               : e->apart   ? '!'
                               : letter < 0 ? '.'
                                            : (char)('A' + letter);
            assert_true(!e->apart || letter < 0);
        }
        seen->differs = row->differs;
        seen->varies = row->varies;
    }
    classes_release(&classes);
    return ERR_OK;
}

/* N is the number of a run, and the time. */
static void measure(struct fixture *f, int n, int item, int environment, int digest)
{
    struct fixture_run r = completed(n, item);

    r.environment = environment;
    r.digest = digest;
    store(f, r);
}

static void check(struct fixture *f, const char *letters, bool differs)
{
    struct seen seen = { .letters = "" };

    fixture_write(f, look, &seen);
    assert_string_equal(seen.letters, letters);
    assert_int_equal(seen.differs, differs);
}

static void test_load_gives_no_letter(void **state)
{
    struct fixture *f = *state;

    insert_job(f);
    measure(f, 1, ORDERED, 1, 5);
    measure(f, 2, ORDERED, 1, 5);
    measure(f, 3, ORDERED_LOADED, 2, 6);
    measure(f, 4, ORDERED_LOADED, 2, 6);
    check(f, "!A", false);
    /* Measured without load, too, it is compared by that. */
    measure(f, 5, ORDERED, 2, 5);
    check(f, "AA", false);
    measure(f, 6, ORDERED, 3, 7);
    check(f, "ABB", true);
}

/* Where most were measured under load, the one that was not is apart. */
static void test_most_decide_the_conditions(void **state)
{
    struct fixture *f = *state;

    insert_job(f);
    measure(f, 1, ORDERED, 1, 5);
    measure(f, 2, ORDERED_LOADED, 2, 6);
    measure(f, 3, ORDERED_LOADED, 3, 7);
    check(f, "AB!", true);
    measure(f, 4, ORDERED_LOADED, 1, 7);
    check(f, "ABA", true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_load_gives_no_letter),
        STORE_TEST(test_most_decide_the_conditions),
    };

    return cmocka_run_group_tests_name("class conditions", tests, NULL, NULL);
}
