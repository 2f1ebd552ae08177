/* What tests of challenges share: a job of a command and its control, and runs of it,
 * asked for their own inputs or for others. */
#ifndef TESTS_UNIT_DB_CHALLENGES_FIXTURE_H
#define TESTS_UNIT_DB_CHALLENGES_FIXTURE_H

#include "tests/unit/db/store_fixture.h"

#include "db/fsck.h"

enum { CONTROL, STEADY, STEADY_LOADED, STEADY_ELSEWHERE, ITEMS };
enum { SEED = 7000, OTHER_INPUT = 40, OTHER_DIGEST = 60 };

/* Job 1: a command, its control, the command under load, and on another device.  NAME
 * NULL: a command of the configuration; else the framework of stack STACK. */
static inline void insert_items_of(struct fixture *f, const char *stack, const char *name,
                                   bool unseeded)
{
    struct job_item items[ITEMS];
    struct fixture_job j = fixture_job(1, items, ITEMS);

    for (int i = 0; i < ITEMS; i++) {
        items[i] = fixture_item(i == CONTROL ? "unordered" : "ordered",
                                i == STEADY_ELSEWHERE ? "cpu:b" : "cpu:a", 100);
        snprintf(items[i].stack, sizeof items[i].stack, "%s", stack);
        items[i].unseeded = unseeded;
        if (name) {
            items[i].subject = SUBJECT_FRAMEWORK;
            snprintf(items[i].subject_name, sizeof items[i].subject_name, "%s", name);
        }
    }
    run_options_read("{\"contention\":4}", &items[STEADY_LOADED].options);
    fixture_write(f, fixture_insert_job, &j);
}

static inline void insert_items(struct fixture *f, bool unseeded)
{
    insert_items_of(f, "external", NULL, unseeded);
}

static inline struct fixture_run run_of(int n, int item)
{
    return (struct fixture_run){ .n = n,
                                 .job = 1,
                                 .item = item,
                                 .outcome = OUTCOME_COMPLETED,
                                 .environment = 1,
                                 .distinct = item == CONTROL ? 3 : 1 };
}

/* One that is answered with another digest, computed from other inputs. */
static inline struct fixture_run challenge(int n, int item)
{
    struct fixture_run r = run_of(n, item);

    r.seed = SEED + (uint64_t)n;
    r.input = OTHER_INPUT + n;
    r.digest = OTHER_DIGEST + 4 * n;
    return r;
}

static inline struct fixture_run store_run(struct fixture *f, struct fixture_run r)
{
    fixture_write(f, fixture_whole_run, &r);
    assert_int_equal(r.is_challenge, r.seed != 0);
    assert_int_equal(r.effect.is_challenge, r.seed != 0);
    return r;
}

/* Two runs with one digest beside a control that varied and passed its challenge. */
static inline void make_steady(struct fixture *f)
{
    insert_items(f, false);
    store_run(f, run_of(1, CONTROL));
    store_run(f, challenge(2, CONTROL));
    store_run(f, run_of(3, STEADY));
    store_run(f, run_of(4, STEADY));
}

static inline void assert_cell(struct fixture *f, const char *variant,
                               enum verdict verdict, const char *part)
{
    struct cell cell = fixture_cell(f, variant);

    assert_int_equal(cell.verdict, verdict);
    if (!strstr(cell.reason, part)) {
        fail_msg("\"%s\" lacks \"%s\"", cell.reason, part);
    }
}

static inline void assert_challenges(struct fixture *f, int64_t passed, int64_t repeated,
                                     int64_t unchanged, int64_t failed)
{
    struct challenges c = fixture_cell(f, "ordered").evidence.challenges;

    assert_int_equal(c.passed, passed);
    assert_int_equal(c.repeated, repeated);
    assert_int_equal(c.unchanged, unchanged);
    assert_int_equal(c.failed, failed);
}

static inline void print_line(void *arg, const char *line)
{
    (void)arg;
    printf("%s\n", line);
}

/* Nothing of what is stored contradicts what the runs give: cells, jobs, inputs. */
static inline void check_all(struct fixture *f)
{
    struct fsck_counts counts;
    struct err err;

    fixture_close(f);
    assert_int_equal(fsck_database(f->path, print_line, NULL, &counts, &err), ERR_OK);
    assert_int_equal(counts.damaged + counts.dangling + counts.jobs_differing +
                         counts.cells_differing,
                     0);
    fixture_open(f);
}

#endif
