/* Runs that arrive in any order give the same tables. */
#ifndef TESTS_UNIT_DB_ORDERS_FIXTURE_H
#define TESTS_UNIT_DB_ORDERS_FIXTURE_H

#include "tests/unit/db/store_fixture.h"

#include <sqlite3.h>

#include "daemon/base/buf.h"
#include "db/tx.h"

static inline uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

/* How much that is drawn a test tries: MOST in one stage of make test-deep, FEW
 * elsewhere. */
static inline int how_many(int few, int most)
{
    return getenv("REPROD_TEST_MOST") ? most : few;
}

/* The numbers below COUNT in the order of SEED; 0: ascending.  The first run of a case
 * makes its cell, whose number follows: it stays the first. */
static inline void orders_fill(int *order, int count, uint32_t seed)
{
    for (int i = 0; i < count; i++) {
        order[i] = i;
    }
    for (int i = count - 1; seed > 0 && i > 1; i--) {
        int j = 1 + (int)(next_random(&seed) % (uint32_t)i);
        int swapped = order[i];

        order[i] = order[j];
        order[j] = swapped;
    }
}

/* Adds the rows of each of QUERIES, which end with NULL, to TEXT. */
static inline enum err_code orders_print(struct tx *tx, const char *const *queries,
                                         struct buf *text, struct err *err)
{
    for (; *queries; queries++) {
        struct query q;

        query_begin(&q, tx, *queries);
        while (query_step(&q)) {
            for (int i = 0; i < sqlite3_column_count(q.statement); i++) {
                buf_printf(text, "%s|", query_borrow_text(&q));
            }
            buf_puts(text, "\n");
        }
        if (query_end(&q, err) != ERR_OK) {
            return err->code;
        }
    }
    return ERR_OK;
}

/* FIRST is what TABLES_OF_ORDER gives for seed 0; REPROD_ORDERS says of how many. */
static inline void orders_check(char *(*tables_of_order)(uint32_t seed),
                                const char *first)
{
    const char *more = getenv("REPROD_ORDERS");
    long orders = more ? strtol(more, NULL, 10) : 6;

    for (long seed = 1; seed <= orders; seed++) {
        char *other = tables_of_order((uint32_t)seed);

        assert_string_equal(other, first);
        free(other);
    }
}

#endif
