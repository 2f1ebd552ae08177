#include "db/integrity/row_sum.h"

#include <stdint.h>
#include <string.h>

/* The sum.  Each step is a bijection of the state for a given word and of the word for a
 * given state, so two inputs that differ in one word never give the same sum. */

static const uint64_t START = 0x9e3779b97f4a7c15;

static uint64_t add_word(uint64_t sum, uint64_t word)
{
    sum = (sum ^ word) * 0xbf58476d1ce4e5b9;
    return sum ^ sum >> 29;
}

static uint64_t add_bytes(uint64_t sum, const void *bytes, int length)
{
    const uint8_t *at = bytes;
    uint64_t word;

    for (; length >= (int)sizeof word; length -= (int)sizeof word, at += sizeof word) {
        memcpy(&word, at, sizeof word);
        sum = add_word(sum, word);
    }
    if (length > 0) {
        word = 0;
        memcpy(&word, at, (size_t)length);
        sum = add_word(sum, word);
    }
    return sum;
}

static uint64_t add_value(uint64_t sum, sqlite3_value *value)
{
    int type = sqlite3_value_type(value);
    double real;
    uint64_t word;

    switch (type) {
    case SQLITE_INTEGER:
        return add_word(add_word(sum, 1), (uint64_t)sqlite3_value_int64(value));
    case SQLITE_FLOAT:
        real = sqlite3_value_double(value);
        memcpy(&word, &real, sizeof word);
        return add_word(add_word(sum, 2), word);
    case SQLITE_NULL:
        return add_word(sum, 3);
    default: {
        const void *bytes = type == SQLITE_TEXT ? (const void *)sqlite3_value_text(value)
                                                : sqlite3_value_blob(value);
        int length = sqlite3_value_bytes(value);

        sum = add_word(sum, type == SQLITE_TEXT ? 4 : 5);
        return add_bytes(add_word(sum, (uint64_t)length), bytes, length);
    }
    }
}

static uint64_t sum_values(int count, sqlite3_value **values)
{
    uint64_t sum = START;

    for (int i = 0; i < count; i++) {
        sum = add_value(sum, values[i]);
    }
    return sum;
}

static void row_sum(sqlite3_context *context, int count, sqlite3_value **values)
{
    sqlite3_result_int64(context, (int64_t)sum_values(count, values));
}

static void rows_step(sqlite3_context *context, int count, sqlite3_value **values)
{
    uint64_t *total = sqlite3_aggregate_context(context, sizeof *total);

    if (total) {
        *total += sum_values(count, values);
    } else {
        sqlite3_result_error_nomem(context);
    }
}

static void rows_final(sqlite3_context *context)
{
    const uint64_t *total = sqlite3_aggregate_context(context, 0);

    sqlite3_result_int64(context, total ? (int64_t)*total : 0);
}

/* Of sums: NULL is that of a row that has none. */
static void xor_two(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    sqlite3_result_int64(context,
                         sqlite3_value_int64(values[0]) ^ sqlite3_value_int64(values[1]));
}

static void xor_step(sqlite3_context *context, int count, sqlite3_value **values)
{
    int64_t *total = sqlite3_aggregate_context(context, sizeof *total);

    (void)count;
    if (total) {
        *total ^= sqlite3_value_int64(values[0]);
    } else {
        sqlite3_result_error_nomem(context);
    }
}

int row_sum_register(sqlite3 *db)
{
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
    int rc =
        sqlite3_create_function(db, "reprod_sum", -1, flags, NULL, row_sum, NULL, NULL);

    if (rc == SQLITE_OK) {
        rc = sqlite3_create_function(db, "reprod_sums", -1, flags, NULL, NULL, rows_step,
                                     rows_final);
    }
    if (rc == SQLITE_OK) {
        rc = sqlite3_create_function(db, "reprod_xor", 2, flags, NULL, xor_two, NULL,
                                     NULL);
    }
    if (rc == SQLITE_OK) {
        rc = sqlite3_create_function(db, "reprod_xor", 1, flags, NULL, NULL, xor_step,
                                     rows_final);
    }
    return rc;
}
